"""``executor`` of a matrix file, and ``partition`` under its conditions."""

from __future__ import annotations

import pytest

from bisect_env.errors import BadInput
from bisect_env.matrix.cells import Matrix
from bisect_env.matrix.executor import ExecutorChoice
from tests.matrix.conftest import Loader

BASE = "axes: {torch: [2.11.0, 2.13.0]}\nreproducer: racer\n"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", ExecutorChoice()),
        ("executor: local", ExecutorChoice("local")),
        ("executor: {local: }", ExecutorChoice("local")),
        ("executor: slurm", ExecutorChoice("slurm")),
        (
            "executor: {slurm: {partition: a100, time: 2:00:00, extra: {reservation: r}}}",
            ExecutorChoice("slurm", {"partition": "a100", "time": "2:00:00", "extra": {"reservation": "r"}}),
        ),
    ],
)
def test_the_choice_is_kept_as_it_was_written(loaded: Loader, line: str, expected: ExecutorChoice) -> None:
    assert loaded(BASE + line).executor == expected


@pytest.mark.parametrize(
    ("line", "found", "wanted"),
    [
        ("executor: slrum", "'slrum'", "slurm"),
        ("executor: {slurm: gpu}", "'gpu'", "a mapping"),
        ("executor: {local: {jobs: 4}}", "local, which has none", "at_once"),
        ("executor: [slurm]", "a list", "{slurm: {partition"),
        ("executor: {slurm: {}, local: {}}", "2 keys", "local, slurm, or"),
        ("conditions: {partition: 'a,b'}", "'a,b'", "one partition"),
        ("conditions: {partition: [null]}", "partition has no value", "a value"),
        ("axes: {partition: [a, b]}", "'partition' is a condition", "conditions: {partition: [...]}"),
    ],
)
def test_what_is_none_is_said_with_its_line(loaded: Loader, line: str, found: str, wanted: str) -> None:
    base = "reproducer: racer\n" if line.startswith("axes") else BASE
    with pytest.raises(BadInput) as told:
        loaded(base + line)
    assert found in told.value.found
    assert wanted in told.value.wanted
    assert told.value.place.startswith("line ")


def test_partitions_are_levels_of_the_cells(loaded: Loader) -> None:
    matrix: Matrix = loaded(BASE + "conditions: {partition: [v100, a100]}\nreference: {torch: 2.11.0}\n")
    assert [cell.id for cell in matrix.cells] == [
        "torch-2.11.0_v100",
        "torch-2.11.0_a100",
        "torch-2.13.0_v100",
        "torch-2.13.0_a100",
    ]
    assert len({cell.key for cell in matrix.cells}) == 4
    assert len({cell.request.key for cell in matrix.cells}) == 2
    assert [cell.condition.partition for cell in matrix.cells] == ["v100", "a100"] * 2
    # Each is compared with its own partition's reference.
    references = [matrix.reference_of(cell) for cell in matrix.cells]
    assert [each and each.id for each in references] == ["torch-2.11.0_v100", "torch-2.11.0_a100"] * 2


def test_without_a_partition_the_cells_stay_as_they_were(loaded: Loader) -> None:
    plain, one = loaded(BASE), loaded(BASE + "conditions: {partition: a100}")
    assert "partition" not in plain.cells[0].condition.as_dict()
    assert plain.cells[0].condition.partition is None
    assert plain.cells[0].key != one.cells[0].key
    # Where it runs is no part of a cell, unless the cell names it.
    elsewhere = loaded(BASE + "executor: {slurm: {partition: a100}}")
    assert [cell.key for cell in elsewhere.cells] == [cell.key for cell in plain.cells]


def test_a_command_of_ones_own_has_partitions_too(loaded: Loader) -> None:
    text = BASE.replace("reproducer: racer", "reproducer: {command: [python, -c, pass]}")
    matrix = loaded(text + "conditions: {partition: [1, 2]}")
    assert [cell.condition.partition for cell in matrix.cells] == ["1", "2"] * 2
    assert all(isinstance(cell.condition.get("partition", 0), str) for cell in matrix.cells)
