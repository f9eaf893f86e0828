"""One row a torch, whatever else the cells differ in; rows of their own where what is known differs."""

from __future__ import annotations

from dataclasses import replace

from bisect_env.inspection.facts import Fact, Facts, unknown
from bisect_env.inspection.inspected import Cost
from bisect_env.inspection.records import Scope
from bisect_env.matrix.cells import Cell
from bisect_env.report.static_facts import Shared, Told, folded, table
from tests.report.build import cell

WIDE = Facts(
    Fact(Scope.PROCESS, "flag"),
    Fact(Scope.PROCESS, "compiling", held=True),
    Fact(Scope.PROCESS, "override"),
    Fact(Scope.PROCESS, "current_meta", held=True),
)
OWN = replace(WIDE, tracing=Fact(Scope.THREAD, "flag"), masks=Fact(Scope.ABSENT, "annotates nothing", held=False))


def cells(torch: str, *cudas: str) -> list[Cell]:
    """Two cells for each variant."""
    found = [(cuda, cell(torch, transformers)) for cuda in cudas for transformers in ("5.6.0", "5.8.1")]
    return [
        replace(one, id=f"{one.id}_{cuda}", levels=(("torch", torch), ("cuda", cuda), *one.levels[2:]))
        for cuda, one in found
    ]


def drawn(rows: tuple[Told, ...]) -> str:
    return table(Shared(rows, Cost(2, 0, 1, 1.0)), 120)


def test_one_row_a_torch() -> None:
    found = [
        (one, "2.11.0+cu128" if "cu128" in one.id else "2.11.0+cu130", WIDE)
        for one in cells("2.11.0", "cu128", "cu130")
    ]
    found += [(one, "2.14.1+cu130", OWN) for one in cells("2.14.1", "cu130")]
    rows = folded(found)
    assert [(row.torch, row.levels, len(row.cells)) for row in rows] == [
        ("2.11.0", "torch=2.11.0", 4),
        ("2.14.1+cu130", "torch=2.14.1", 2),
    ]
    assert sorted(cell for row in rows for cell in row.cells) == sorted(cell.id for cell, _, _ in found)
    text = drawn(rows)
    assert "torch=2.11.0 (4 cells)  2.11.0        process-wide  process-wide in compiles  process-wide" in text
    assert "torch=2.14.1 (2 cells)  2.14.1+cu130  per thread" in text
    assert [line.rpartition("  ")[2] for line in text.splitlines()[2:4]] == ["process-wide, obeyed", "none"]


def test_a_row_for_each_combination_where_they_differ() -> None:
    """The same version, built in two ways: of a fork's wheel, say."""
    found = [(one, "2.11.0", OWN if "cu128" in one.id else WIDE) for one in cells("2.11.0", "cu128", "cu130")]
    assert [row.levels for row in folded(found)] == ["cuda=cu128", "cuda=cu130"]


def test_cells_that_no_levels_pick_out_are_listed() -> None:
    found = [(one, "2.11.0", WIDE) for one in cells("2.11.0", "cu128", "cu130")]
    found[1] = (found[1][0], "", unknown("no such version"))
    found[2] = (found[2][0], "", unknown("no such version"))
    rows = folded(found)
    assert [row.levels for row in rows] == [None, None]
    text = drawn(rows)
    assert "2 cells [2]" in text and f"[2] cells: {found[0][0].id}, {found[3][0].id}" in text
    assert "unknown [1]" in text and "[1] no such version" in text
    assert f"[3] cells: {found[1][0].id}, {found[2][0].id}" in text
