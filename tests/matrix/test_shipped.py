"""The matrix files that come with the tool load, without a network, and ask what their comments say."""

from __future__ import annotations

from fnmatch import fnmatch

import pytest

from bisect_env.matrix import shipped
from bisect_env.matrix.cells import Matrix
from bisect_env.matrix.loading import load
from bisect_env.matrix.options import read_options


def matrix(name: str) -> Matrix:
    return load(shipped.matrices_folder() / f"{name}.yaml")


def test_every_shipped_file_is_tested_here() -> None:
    assert {path.stem for path in shipped.matrices_folder().glob("*.yaml")} == {
        "cpu",
        "gpu",
        "h200",
        "incident",
        "mitigations",
        "two-gpus",
        "two-gpus-mitigations",
    }


def test_cpu() -> None:
    cpu = matrix("cpu")
    assert [cell.id for cell in cpu.cells] == [
        "torch-2.11.0_transformers-4.52.4",
        "torch-2.11.0_transformers-5.8.1",
        "torch-2.14.1_transformers-4.52.4",
        "torch-2.14.1_transformers-5.8.1",
    ]
    request = cpu.cells[0].request
    assert request.requirements == ("numpy", "torch==2.11.0", "transformers==4.52.4")
    assert (request.cuda, request.as_of) == (None, "release")
    assert (request.index.torch_backend, request.index.torch_fallback) == ("cpu", True)
    assert (cpu.trials, cpu.controls) == (6, 6)


def test_gpu() -> None:
    gpu = matrix("gpu")
    variants = {(dict(cell.levels)["torch"], cell.request.cuda) for cell in gpu.cells}
    assert variants == {
        ("2.10.0", "cu128"),
        ("2.10.0", "cu130"),
        ("2.11.0", "cu128"),
        ("2.11.0", "cu130"),
        ("2.13.0", "cu130"),
        ("2.14.1", "cu130"),
    }
    assert all(gpu.reference_of(cell) is not None for cell in gpu.cells)


def test_incident() -> None:
    incident = matrix("incident")
    assert len(incident.cells) == 8
    assert {cell.condition.cache for cell in incident.cells} == {"warm", "cold"}
    assert {cell.condition.threads for cell in incident.cells} == {3}
    assert all(incident.reference_of(cell) is not None for cell in incident.cells)


def test_h200() -> None:
    h200 = matrix("h200")
    pairs = [(dict(cell.levels)["transformers"], dict(cell.levels)["attention"]) for cell in h200.cells]
    assert len(h200.cells) == 30 and len({cell.request.key for cell in h200.cells}) == 24
    assert {version for version, attention in pairs if attention == "torch"} == {"5.6.0"}
    assert [dict(cell.levels)["torch"] for cell in h200.cells][::5] == [
        "2.11.0",
        "2.14.1",
        "2.13.0",
        "2.10.0",
        "2.12.1",
        "2.15.0",
    ], "the order in which they are wanted"
    assert (h200.trials, h200.controls, h200.solo, h200.at_once, h200.stop_early) == (12, 6, 0, 10, False)
    assert all(cell.request.as_of is None and cell.condition.get("pattern", "") == "mixed" for cell in h200.cells)
    assert all(h200.reference_of(cell) is not None for cell in h200.cells)


def test_mitigations() -> None:
    found = matrix("mitigations")
    mitigation = read_options(shipped.reproducers_folder() / "dflash.py")["mitigation"]
    for torch in ("2.11.0", "2.14.1"):
        cold = [cell for cell in found.cells if cell.id.startswith(f"torch-{torch}_") and cell.id.endswith("_cold")]
        assert {cell.condition.get("mitigation", "") for cell in cold} == set(mitigation.choices)
    other = [cell for cell in found.cells if cell.condition.cache != "cold"]
    assert [cell.id for cell in other] == [
        f"torch-2.11.0_transformers-5.6.0_none_{cache}" for cache in ("warm", "stale")
    ]
    assert not found.reference, "each is compared with the same environment without a mitigation"
    source = found.stale_source_of(other[1])
    assert source is not None and source.id == "torch-2.14.1_transformers-5.6.0_none_cold"
    assert {fnmatch(cell.id, "torch-2.11.0_*_cold") for cell in found.cells[:9]} == {True}, "as its comment says"


def test_two_gpus() -> None:
    two = matrix("two-gpus")
    assert {(cell.condition.threads, cell.condition.get("gpus", 1)) for cell in two.cells} == {(2, 2)}
    assert len({cell.request.key for cell in two.cells}) == 2
    assert all(two.reference_of(cell) is not None for cell in two.cells)


@pytest.mark.parametrize("name", ["cpu", "gpu", "h200", "incident", "mitigations", "two-gpus"])
def test_each_says_which_question_it_answers(name: str) -> None:
    text = (shipped.matrices_folder() / f"{name}.yaml").read_text(encoding="utf-8")
    assert text.startswith("# Question: ")


def test_the_cell_without_a_mitigation_is_the_same_in_both_files_on_two_gpus() -> None:
    there = {cell.key for cell in matrix("two-gpus").cells}
    plain = [cell for cell in matrix("two-gpus-mitigations").cells if dict(cell.levels)["mitigation"] == "none"]
    assert len(plain) == 2 and all(cell.key in there for cell in plain)
