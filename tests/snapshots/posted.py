"""Reports as people post them, written for the tests: all packages in them are made up in their combinations."""

from __future__ import annotations

COLLECT_ENV = """\
<frozen runpy>:128: RuntimeWarning: 'torch.utils.collect_env' found in sys.modules after import of package 'torch.utils'
Collecting environment information...
PyTorch version: 2.7.0+cu126
Is debug build: False
CUDA used to build PyTorch: 12.6
ROCM used to build PyTorch: N/A

OS: Ubuntu 22.04.5 LTS (x86_64)
GCC version: (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0
Clang version: Could not collect
CMake version: version 3.31.6
Libc version: glibc-2.35

Python version: 3.12.9 | packaged by conda-forge | (main, Mar  4 2025, 22:48:41) [GCC 13.3.0] (64-bit runtime)
Python platform: Linux-5.15.0-134-generic-x86_64-with-glibc2.35
Is CUDA available: True
CUDA runtime version: 12.6.85
CUDA_MODULE_LOADING set to: LAZY
GPU models and configuration: 
GPU 0: NVIDIA H200
GPU 1: NVIDIA H200
  MIG 1g.18gb     Device  0: (UUID: MIG-0f0f)

Nvidia driver version: 570.124.06
cuDNN version: Probably one of the following:
/usr/lib/x86_64-linux-gnu/libcudnn.so.9.5.1
/usr/lib/x86_64-linux-gnu/libcudnn_adv.so.9.5.1
HIP runtime version: N/A
MIOpen runtime version: N/A
Is XNNPACK available: True
Caching allocator config: expandable_segments:True

CPU:
Architecture:                         x86_64
CPU(s):                               192
Model name:                           Some CPU @ 2.0GHz
Vulnerability Spectre v1:             Mitigation; usercopy/swapgs barriers

Versions of relevant libraries:
[pip3] numpy==2.1.2
[pip3] nvidia-cublas-cu12==12.6.4.1
[pip3] pytorch-triton==3.3.0
[pip3] torch==2.7.0+cu126
[pip3] torch_scatter==2.1.2+pt27cu126
[pip3] strange==1.1+ubuntu0.2
[conda] numpy                     2.1.3                    py312h58c1407_0    conda-forge
[conda] nvidia-cublas-cu12        12.6.4.1                 pypi_0    pypi
[conda] torch                     2.7.0                    pypi_0    pypi
"""  # noqa: W291

OLD_COLLECT_ENV = """\
PyTorch version: 1.13.1
Is debug build: False
CUDA used to build PyTorch: 11.7

OS: Microsoft Windows 10 Pro
Python version: 3.9 (64-bit runtime)
Is CUDA available: True
GPU models and configuration: GPU 0: NVIDIA GeForce RTX 3080 Ti
Nvidia driver version: 528.24
cuDNN version: C:\\Program Files\\NVIDIA GPU Computing Toolkit\\CUDA\\v11.7\\bin\\cudnn_ops_infer64_8.dll

Versions of relevant libraries:
[pip] numpy==1.23.5
[conda] blas                      1.0                         mkl
[conda] pytorch                   1.13.1          py3.9_cuda11.7_cudnn8_0    pytorch
[conda] pytorch-cuda              11.7                 h67b0de4_1    pytorch
"""

VLLM = """\
INFO 05-16 18:10:30 [__init__.py:248] Automatically detected platform cuda.
Collecting environment information...
==============================
        System Info
==============================
OS                           : Ubuntu 24.04.2 LTS (x86_64)
GCC version                  : (Ubuntu 13.3.0-6ubuntu2~24.04) 13.3.0
Clang version                : Could not collect
CMake version                : version 4.0.2
Libc version                 : glibc-2.39

==============================
       PyTorch Info
==============================
PyTorch version              : 2.7.1+cu128
Is debug build               : False
CUDA used to build PyTorch   : 12.8
ROCM used to build PyTorch   : N/A
XPU used to build PyTorch    : N/A

==============================
      Python Environment
==============================
Python version               : 3.12.3 (main, Feb  4 2025, 14:48:35) [GCC 13.3.0] (64-bit runtime)
Python platform              : Linux-6.8.0-x86_64-with-glibc2.39

==============================
       CUDA / GPU Info
==============================
Is CUDA available            : True
CUDA runtime version         : 12.8.93
CUDA_MODULE_LOADING set to   : LAZY
GPU models and configuration : 
GPU 0: NVIDIA A100-SXM4-80GB
GPU 1: NVIDIA A100-SXM4-80GB

Nvidia driver version        : 575.51.03
cuDNN version                : Could not collect
HIP runtime version          : N/A
MIOpen runtime version       : N/A
Is XNNPACK available         : True

==============================
          CPU Info
==============================
Architecture:                         x86_64
Model name:                           Some CPU

==============================
Versions of relevant libraries
==============================
[pip3] flashinfer-python==0.2.6
[pip3] torch==2.7.1+cu128
[pip3] transformers==4.53.0
[conda] Could not collect

==============================
         vLLM Info
==============================
ROCM Version                 : Could not collect
vLLM Version                 : 0.9.1.dev12+g46e9aac (git sha: 46e9aac)
vLLM Build Flags:
  CUDA Archs: Not Set; ROCm: Disabled; XPU: Disabled
GPU Topology:
  	GPU0	GPU1	CPU Affinity	NUMA Affinity
GPU0	 X 	NV12	0-63	0
GPU1	NV12	 X 	0-63	0

Legend:

  X    = Self
  NV#  = Connection traversing a bonded set of # NVLinks

==============================
     Environment Variables
==============================
NVIDIA_VISIBLE_DEVICES=all
NCCL_DEBUG=
VLLM_HOST=http://me:geheim@10.0.0.1:8000/
NCCL_SECRET=not for you
CUDA_MODULE_LOADING=LAZY
CUDA_MODULE_LOADING=LAZY
"""  # noqa: W291, E101

OLD_VLLM = """\
PyTorch version: 2.4.0+cu121
Is debug build: False
CUDA used to build PyTorch: 12.1
Python version: 3.10.12 (main) [GCC 11.4.0] (64-bit runtime)
GPU models and configuration: GPU 0: NVIDIA L40S
Nvidia driver version: 550.54.14

CPU:
Model name: x

Versions of relevant libraries:
[pip3] torch==2.4.0
[pip3] transformers==4.45.1
ROCM Version: Could not collect
Neuron SDK Version: N/A
vLLM Version: 0.6.1.post2
vLLM Build Flags:
CUDA Archs: Not Set; ROCm: Disabled; Neuron: Disabled
GPU Topology:
GPU0	CPU Affinity	NUMA Affinity	GPU NUMA ID
GPU0	 X 	0-31	0		N/A

Legend:

  X    = Self

LD_LIBRARY_PATH=/usr/local/nvidia/lib
CUDA_MODULE_LOADING=LAZY
"""

TRANSFORMERS = """\
Copy-and-paste the text below in your GitHub issue and FILL OUT the two last points.

- `transformers` version: 4.52.1
- Platform: Linux-6.8.0-57-generic-x86_64-with-glibc2.35
- Python version: 3.12.3
- Huggingface_hub version: 0.32.0
- Safetensors version: 0.5.3
- Accelerate version: 1.7.0
- Accelerate config: 	- compute_environment: LOCAL_MACHINE
	- distributed_type: MULTI_GPU
	- mixed_precision: bf16
- DeepSpeed version: not installed
- PyTorch version (GPU?): 2.6.0+cu124 (True)
- Tensorflow version (GPU?): not installed (NA)
- Flax version (CPU?/GPU?/TPU?): not installed (NA)
- Using distributed or parallel set-up in script?: <fill in>
- Using GPU in script?: <fill in>
- GPU type: NVIDIA H100 80GB HBM3
"""

LIGHTNING = """\
<details>
  <summary>Current environment</summary>

* CUDA:
\t- GPU:
\t\t- NVIDIA GeForce RTX 4090
\t\t- NVIDIA GeForce RTX 4090
\t- available:         True
\t- version:           12.8
* Lightning:
\t- lightning-utilities: 0.14.2
\t- torch:             2.7.1+cu128
\t- torchmetrics:      1.7.0
* Packages:
\t- absl-py:           2.0.0
\t- autorom.accept-rom-license: 0.6.1
\t- broken:            None
\t- lightning-utilities: 0.14.2
\t- raytorch:          0.1.0+aeaaf25
\t- torch:             2.7.1+cu128
\t- torchmetrics:      1.7.0
\t- transformers:      4.52.1
* System:
\t- OS:                Linux
\t- architecture:
\t\t- 64bit
\t\t- ELF
\t- processor:         x86_64
\t- python:            3.11.5
\t- release:           5.15.0-91-generic
\t- version:           #101-Ubuntu SMP Tue Nov 14 13:30:08 UTC 2023

</details>
"""

OLD_LIGHTNING = """\
* CUDA:
        - GPU:
        - available:         False
        - version:           None
* Packages:
        - numpy:             1.18.1
        - pyTorch_debug:     False
        - pyTorch_version:   1.7.0
        - pytorch-lightning: 1.0.4
* System:
        - OS:                Darwin
        - python:            3.8.5
"""

CONDA = """\
(base) me@host:~$ conda list -n train
# packages in environment at /opt/conda/envs/train:
#
# Name                    Version                   Build  Channel
_libgcc_mutex             0.1                        main  
ca-certificates           2025.2.25            h06a4308_0  
numpy                     1.26.4          py311h64a7726_0    conda-forge
numpy                     2.1.2                    pypi_0    pypi
openssl                   1.1.1w               h7f8727e_0  
python                    3.11.8          hab00c5b_0_cpython    conda-forge
pytorch                   2.1.0           py3.11_cuda12.1_cudnn8.9.2_0    pytorch
mine                      0.1.dev3                  dev_0    <develop>
torch-scatter             2.1.2+pt21cu121          pypi_0    pypi
"""  # noqa: W291
