"""Where cells stand: each in one place of one grid, whatever the axes are."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from bisect_env.matrix.cells import Condition
from bisect_env.report.html.layout import WIDEST, Grid, grids
from tests.report.build import AXES, Judged, laptop, row, under

PACKAGES, CONDITIONS = ("torch", "cuda", "transformers"), ("pattern", "cache", "mitigation")


def test_packages_are_rows_and_columns_and_the_rest_of_the_page_is_not_needed() -> None:
    (grid,) = grids(laptop(), AXES)
    assert (grid.rows, grid.column, grid.title) == (("torch",), "transformers", ())
    assert grid.across == ("4.52.4", "5.8.1")
    assert [levels for levels, _ in grid.lines] == [("2.11.0",), ("2.14.1",), ("2.15.0",)]
    last = grid.lines[-1][1]
    assert last[0] == () and len(last[1]) == 1


def test_each_way_that_trials_run_has_a_grid_of_its_own() -> None:
    shown = [under(cell, "cache", state) for state in ("cold", "warm") for cell in laptop()[:4]]
    found = grids(shown, (*AXES, "cache"))
    assert [grid.title for grid in found] == [("cache cold",), ("cache warm",)]
    assert all(grid.column == "transformers" for grid in found)


def test_many_levels_go_down_the_side() -> None:
    names = [f"m{number}" for number in range(WIDEST + 1)]
    cells = [row(torch, "5.6.0", "......") for torch in ("2.11.0", "2.14.1")]
    (grid,) = grids([under(cell, "mitigation", name) for cell in cells for name in names], (*AXES, "mitigation"))
    assert (grid.rows, grid.column) == (("mitigation",), "torch")


def test_one_axis_alone_is_a_list() -> None:
    (grid,) = grids([row(torch, "5.6.0", "......") for torch in ("2.11.0", "2.14.1")], AXES)
    assert (grid.rows, grid.column, len(grid.lines)) == (("torch",), "", 2)
    assert grids([], AXES) == ()


@st.composite
def matrices(draw: st.DrawFn) -> list[Judged]:
    """Cells with some levels of some axes, several of the same levels among them."""
    base = row("2.11.0", "5.6.0", "......")
    names = PACKAGES + CONDITIONS
    combinations = draw(st.lists(st.tuples(*(st.integers(0, 8) for _ in names)), min_size=1, max_size=30))
    found = []
    for number, levels in enumerate(combinations):
        named = tuple((name, str(level)) for name, level in zip(names, levels, strict=True) if level)
        condition = Condition.of({**dict(named), "threads": 2} if named else {"threads": 2})
        values = {key: value for key, value in condition.values if key not in PACKAGES}
        cell = replace(base.cell, id=f"c{number}", levels=named, condition=Condition.of(values))
        found.append(replace(base, cell=cell))
    return found


@given(matrices())
def test_every_cell_stands_in_one_place_that_its_levels_name(cells: list[Judged]) -> None:
    found = grids(cells, PACKAGES + CONDITIONS)
    placed = [(grid, levels, at, cell) for grid in found for levels, at, cell in places(grid)]
    assert sorted(cell.cell.id for *_, cell in placed) == sorted(cell.cell.id for cell in cells)
    for grid, levels, at, cell in placed:
        own = dict(cell.cell.levels)
        assert tuple(own.get(axis, "") for axis in grid.rows) == levels
        assert not grid.column or own.get(grid.column, "") == grid.across[at]
        assert all(f"{axis} {level}" not in grid.title or own.get(axis) == level for axis, level in own.items())


def places(grid: Grid) -> list[tuple[tuple[str, ...], int, Judged]]:
    return [
        (levels, at, cell)  # type: ignore[misc]
        for levels, line in grid.lines
        for at, place in enumerate(line)
        for cell in place
    ]
