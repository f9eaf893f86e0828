"""What ``torch.utils.collect_env`` prints: of any age, pasted in any way, and never more than it says."""

from __future__ import annotations

import re

import pytest

from bisect_env.errors import BadInput
from bisect_env.snapshots.reading import read_text
from bisect_env.snapshots.records import Snapshot
from tests.snapshots.posted import COLLECT_ENV, OLD_COLLECT_ENV


def versions(snapshot: Snapshot) -> dict[str, list[tuple[str, str | None]]]:
    found: dict[str, list[tuple[str, str | None]]] = {}
    for each in snapshot.distributions:
        found.setdefault(each.name, []).append((each.manager, each.version))
    return found


def test_a_report() -> None:
    found = read_text(COLLECT_ENV, "bad.txt")
    assert (found.form, found.origin) == ("torch's collect_env", "bad.txt")
    assert (found.python, found.platform, found.cuda) == ("3.12.9", "Ubuntu 22.04.5 LTS (x86_64)", "cu126")
    assert found.driver == "570.124.06"
    assert found.gpus == ("NVIDIA H200", "NVIDIA H200 (MIG 1g.18gb)")
    assert found.unread == () and found.partial and found.cache is None
    assert any("transformers" in sentence for sentence in found.missing)


def test_the_halves_of_pip_and_conda_are_both_there_where_they_disagree() -> None:
    found = versions(read_text(COLLECT_ENV, "x"))
    assert found["numpy"] == [("conda", "2.1.3"), ("pip", "2.1.2")]
    assert found["torch"] == [("conda", "2.7.0"), ("pip", "2.7.0+cu126")]
    assert found["nvidia-cublas-cu12"] == [("pip", "12.6.4.1")]
    assert found["torch-scatter"] == [("pip", "2.1.2+pt27cu126")]
    assert found["strange"] == [("pip", "1.1+ubuntu0.2")]


def test_the_allocator_is_the_one_variable_that_it_covers() -> None:
    found = read_text(COLLECT_ENV, "x")
    assert found.variables == (("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"),)
    assert found.covered == ("PYTORCH_CUDA_ALLOC_CONF",)
    unset = read_text(COLLECT_ENV.replace("config: expandable_segments:True", "config: N/A"), "x")
    assert unset.variables == () and unset.covered == ("PYTORCH_CUDA_ALLOC_CONF",)
    assert read_text(OLD_COLLECT_ENV, "x").variables is None


def test_an_old_one_of_windows_and_conda() -> None:
    found = read_text(OLD_COLLECT_ENV, "x")
    assert (found.python, found.cuda, found.driver) == ("3.9", "cu117", "528.24")
    assert found.gpus == ("NVIDIA GeForce RTX 3080 Ti",)
    assert versions(found)["torch"] == [("conda", "1.13.1")]
    assert versions(found)["blas"] == [("conda", "1.0")]
    assert found.unread == ()


@pytest.mark.parametrize(
    "pasted",
    [
        COLLECT_ENV.replace("\n", "\r\n"),
        "\n".join(f"> {line}" for line in COLLECT_ENV.split("\n")),
        "\n".join(f"    {line}" for line in COLLECT_ENV.split("\n")),
        f"<details>\n<summary>env</summary>\n\n```text\n{COLLECT_ENV}```\n</details>\n",
        f"(venv) me@gpu3:~$ python -m torch.utils.collect_env\n{COLLECT_ENV}(venv) me@gpu3:~$ ",
        "\ufeff" + COLLECT_ENV.replace("PyTorch version", "\x1b[1mPyTorch version"),
    ],
    ids=["windows", "quoted", "indented", "markdown", "prompt", "terminal"],
)
def test_pasted(pasted: str) -> None:
    plain, found = read_text(COLLECT_ENV, "x"), read_text(pasted, "x")
    assert (found.distributions, found.gpus, found.python) == (plain.distributions, plain.gpus, plain.python)
    assert found.unread == ()


def test_a_build_without_cuda_and_one_for_amd() -> None:
    cpu = COLLECT_ENV.replace("PyTorch: 12.6", "PyTorch: None").replace("+cu126", "+cpu")
    assert read_text(cpu, "x").cuda == "cpu"
    amd = COLLECT_ENV.replace("CUDA used to build PyTorch: 12.6", "CUDA used to build PyTorch: N/A").replace(
        "ROCM used to build PyTorch: N/A", "ROCM used to build PyTorch: 6.4.43482-0f2d60242"
    )
    assert read_text(amd, "x").cuda == "rocm6.4"


def test_without_its_packages_it_says_so() -> None:
    cut = COLLECT_ENV[: COLLECT_ENV.index("Versions of")]
    found = read_text(cut, "x")
    assert versions(found) == {"torch": [("pip", "2.7.0+cu126")]}
    assert any("before its list of packages" in sentence for sentence in found.missing)
    untold = cut + "Versions of relevant libraries:\n[pip3] Could not collect\n[conda] Could not collect\n"
    assert any("could not collect" in sentence for sentence in read_text(untold, "x").missing)


def test_what_does_not_belong_to_it_is_listed() -> None:
    found = read_text(COLLECT_ENV + "[pip3] torch something\nWe use torch 2.8 on another host.\n", "x")
    assert [(each.line, each.text) for each in found.unread] == [
        (COLLECT_ENV.count("\n") + 1, "torch something"),
        (COLLECT_ENV.count("\n") + 2, "We use torch 2.8 on another host."),
    ]


def test_two_reports_in_one_text_are_a_question() -> None:
    both = COLLECT_ENV + "\n\nand the bad one:\n" + COLLECT_ENV.replace("2.7.0", "2.8.0")
    with pytest.raises(BadInput, match=r"2 reports in one text") as error:
        read_text(both, "issue.txt")
    assert re.search(r"issue.txt#1 for the one at line 3 \(PyTorch version: 2.7.0\+cu126\)", str(error.value))
    assert "issue.txt#2" in str(error.value) and "2.8.0" in str(error.value)


def test_one_field_with_two_values() -> None:
    with pytest.raises(BadInput, match=r"line 33: Nvidia driver version: 1, and 570.124.06 before"):
        read_text(COLLECT_ENV.replace("CPU:", "Nvidia driver version: 1\nCPU:", 1), "x")


def test_two_versions_of_one() -> None:
    with pytest.raises(BadInput, match=r"numpy 1.0, and numpy 2.1.2 at line \d+"):
        read_text(COLLECT_ENV + "[pip3] numpy==1.0\n", "x")


@pytest.mark.parametrize("text", ["PyTorch version: Could not collect\nIs debug build: N/A\n", "PyTorch version:\n"])
def test_nothing_in_it(text: str) -> None:
    with pytest.raises(BadInput):
        read_text(text, "x")
