"""vLLM's ``collect_env.py``: torch's report with more in it, in sections since 0.9, without them before."""

from __future__ import annotations

import re

from bisect_env.snapshots import several
from bisect_env.snapshots.forms import collect_env
from bisect_env.snapshots.records import Snapshot, Target
from bisect_env.snapshots.variables import public

NAME = "vLLM's collect_env"
SECTIONED = re.compile(r"[>\s]*System Info\s*$")
PLAIN = re.compile(r"[>\s]*PyTorch version\s*:")
COVERED = (
    *("TORCH*", "PYTORCH*", "NCCL*", "CUDA[!_]*", "CUDA_[!M]*", "CUDA_M[!O]*", "CUBLAS*", "CUDNN*", "OMP_*", "MKL_*"),
    *("NVIDIA*", "VLLM_*"),
)
"""What every version of the script prints, secrets apart, but for ``CUDA_MODULE_LOADING``; it knows some names more."""
OF_TORCH = ("CUDA_MODULE_LOADING", "LAZY")
"""Older versions of torch set it themselves with the first use of CUDA: that it is there does not tell who did."""
_OWN = re.compile(r"(?m)^[> \t]*(?:vLLM Version\s*:|vLLM Build Flags\s*:|vLLM Info\s*$)")
_SPELT = re.compile(r"(?m)^[> \t]*(?:PyTorch version|Is debug build|Python platform) {2,}:")
_WANTED = "what `python -m vllm.collect_env` prints, whole"


def recognise(text: str) -> float:
    """By vLLM's own fields, or by its spelling of torch's."""
    return 1.0 if _OWN.search(text) or _SPELT.search(text) else 0.0


def read(text: str, origin: str, host: Target) -> Snapshot:
    """The snapshot, which knows of some packages only. Raises BadInput: several reports, or nothing in it."""
    opening = SECTIONED if several.beginnings(text, SECTIONED) else PLAIN
    several.only(text, opening, origin, collect_env.MARKS)
    report = collect_env.parse(text, origin)
    told = "variables" in report.sections or bool(report.variables)
    missing = ["It lists packages around torch and transformers only; the compile cache is not in it."]
    if told:
        missing.append(
            "Of environment variables it prints those of torch, NCCL, CUDA, OpenMP, MKL and vLLM, none named like a "
            "secret; some of them vLLM sets itself when it is imported."
        )
    else:
        missing.append("Environment variables are not in it.")
    return collect_env.snapshot(
        report,
        origin,
        NAME,
        missing=missing,
        variables=public(each for each in report.variables if each != OF_TORCH) if told else None,
        covered=COVERED,
        wanted=_WANTED,
    )
