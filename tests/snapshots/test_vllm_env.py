"""vLLM's ``collect_env``, with its sections and, as it was before, without them."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest

from bisect_env.errors import BadInput
from bisect_env.snapshots.reading import read_text
from bisect_env.snapshots.records import Snapshot
from tests.snapshots.posted import COLLECT_ENV, OLD_VLLM, VLLM


def test_sections() -> None:
    found = read_text(VLLM, "x")
    assert found.form == "vLLM's collect_env"
    assert (found.python, found.platform, found.cuda) == ("3.12.3", "Ubuntu 24.04.2 LTS (x86_64)", "cu128")
    assert (found.driver, found.gpus) == ("575.51.03", ("NVIDIA A100-SXM4-80GB",) * 2)
    assert {each.name: each.version for each in found.distributions} == {
        "flashinfer-python": "0.2.6",
        "torch": "2.7.1+cu128",
        "transformers": "4.53.0",
        "vllm": "0.9.1.dev12+g46e9aac",
    }
    assert found.unread == () and found.partial


def test_variables_without_their_secrets() -> None:
    found = read_text(VLLM, "x")
    assert found.variables == (
        ("NCCL_DEBUG", ""),
        ("NCCL_SECRET", "***"),
        ("NVIDIA_VISIBLE_DEVICES", "all"),
        ("VLLM_HOST", "http://***@10.0.0.1:8000/"),
    )
    assert "NCCL*" in found.covered and "TRITON*" not in found.covered
    assert "geheim" not in repr(found) and "not for you" not in repr(found)


def test_what_torch_sets_itself_is_not_told() -> None:
    def covered(found: Snapshot, name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in found.covered)

    found = read_text(VLLM, "x")
    assert not covered(found, "CUDA_MODULE_LOADING")
    assert all(
        covered(found, name) for name in ("CUDA_LAUNCH_BLOCKING", "CUDA_MPS_PIPE_DIRECTORY", "CUDA_HOME", "CUDAX")
    )
    eager = read_text(VLLM.replace("CUDA_MODULE_LOADING=LAZY", "CUDA_MODULE_LOADING=EAGER"), "x")
    assert ("CUDA_MODULE_LOADING", "EAGER") in (eager.variables or ())


def test_before_the_sections() -> None:
    found = read_text(OLD_VLLM, "x")
    assert found.form == "vLLM's collect_env"
    assert found.variables == (("LD_LIBRARY_PATH", "/usr/local/nvidia/lib"),)
    assert found.of("vllm")[0].version == "0.6.1.post2" and found.of("torch")[0].version == "2.4.0"
    assert (found.cuda, found.gpus, found.unread) == ("cu121", ("NVIDIA L40S",), ())


def test_variables_that_are_not_told_are_not_unset() -> None:
    assert read_text(OLD_VLLM[: OLD_VLLM.index("LD_LIB")], "x").variables is None
    assert read_text(VLLM[: VLLM.index("NVIDIA_VIS")], "x").variables == ()
    assert read_text(VLLM[: VLLM.index("===", VLLM.index("NV#"))], "x").variables is None


def test_a_version_that_is_none_is_none() -> None:
    assert read_text(VLLM.replace("0.9.1.dev12+g46e9aac (git sha: 46e9aac)", "N/A (dev)"), "x").of("vllm") == ()


@pytest.mark.parametrize("second", [VLLM, OLD_VLLM.replace("2.4.0", "2.5.0")])
def test_two_reports(second: str) -> None:
    first = VLLM if second is VLLM else OLD_VLLM
    with pytest.raises(BadInput, match="2 reports in one text"):
        read_text(first + second, "x")


def test_torchs_own_is_not_vllms() -> None:
    assert read_text(COLLECT_ENV, "x").form == "torch's collect_env"
