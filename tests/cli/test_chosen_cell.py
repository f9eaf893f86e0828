"""A cell by what a user calls it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bisect_env.cli.chosen_cell import chosen, measured_with
from bisect_env.errors import BadInput
from bisect_env.matrix.cells import Condition
from bisect_env.store.database import Store
from tests.store.samples import cell

MATRIX = Path("m.yaml")


def with_threads(name: str, torch: str, threads: int) -> object:
    return replace(
        cell(name, torch=torch),
        levels=(("torch", torch), ("threads", str(threads))),
        condition=Condition.of({"threads": threads, "cache": "cold"}),
    )


CELLS = [
    with_threads("torch-2.11.0", "2.11.0", 2),
    with_threads("torch-2.11.0_threads-3", "2.11.0", 3),
    with_threads("torch-2.14.1", "2.14.1", 2),
]


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("torch-2.11.0", 0),  # whole, although it begins another one's
        ("torch-2.11.0_", 1),
        ("torch-2.14", 2),
        (CELLS[2].key, 2),  # type: ignore[attr-defined]
        (CELLS[1].key[:8], 1),  # type: ignore[attr-defined]
        ("torch=2.14.1", 2),
        ("torch=2.11.0, threads=3", 1),
        ("torch=2.14.1,cache=cold", 2),
    ],
)
def test_an_id_a_beginning_a_key_or_levels(name: str, place: int) -> None:
    assert chosen(name, CELLS, MATRIX) == CELLS[place]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("torch-2", "'torch-2' fits 3 cells of m.yaml"),
        ("torch=2.11.0", "fits 2 cells"),
        ("torch-2.14.2", "torch-2.14.1 (the nearest)"),
        ("torch=2.12.0", "m.yaml has no cell 'torch=2.12.0'"),
        ("troch=2.11.0", "no axis is called 'troch'"),
        ("torch=", "'torch=' is no level"),
        ("torch=2.11.0,3", "'3' is no level"),
    ],
)
def test_what_fits_none_or_several(name: str, says: str) -> None:
    with pytest.raises(BadInput) as refused:
        chosen(name, CELLS, MATRIX)  # type: ignore[arg-type]
    assert says in str(refused.value)


def test_the_matrix_that_it_was_measured_with_while_its_file_is_there(tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    with Store(tmp_path / "store.sqlite") as store:
        store.put_cells([cell("torch-2.11.0")], "m")
        store.start_run("m", file, [], 0, {})
        assert measured_with(store, "torch-2.11.0") is None
        file.touch()
        assert measured_with(store, "torch-2") == file
        assert measured_with(store, "torch=2.11.0") is None and measured_with(store, "other") is None
