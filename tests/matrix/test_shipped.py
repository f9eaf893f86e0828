"""The matrix files that come with the tool load, without a network, and ask what their comments say."""

from __future__ import annotations

import pytest

from bisect_env.matrix import shipped
from bisect_env.matrix.cells import Matrix
from bisect_env.matrix.loading import load


def matrix(name: str) -> Matrix:
    return load(shipped.matrices_folder() / f"{name}.yaml")


def test_every_shipped_file_is_tested_here() -> None:
    assert {path.stem for path in shipped.matrices_folder().glob("*.yaml")} == {"cpu", "gpu", "incident"}


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


@pytest.mark.parametrize("name", ["cpu", "gpu", "incident"])
def test_each_says_which_question_it_answers(name: str) -> None:
    text = (shipped.matrices_folder() / f"{name}.yaml").read_text(encoding="utf-8")
    assert text.startswith("# Question: ")
