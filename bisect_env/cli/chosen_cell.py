"""One cell by what a user calls it: its id or key, the beginning of one, or its levels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bisect_env.errors import BadInput
from bisect_env.matrix.cells import Cell
from bisect_env.matrix.problems import nearest, shown
from bisect_env.store.database import Store

MOST = 20
"""Cells that a message lists."""


def chosen(name: str, cells: Sequence[Cell], matrix: Path) -> Cell:
    """The only cell that ``name`` fits.

    Args:
        name: a cell's id or key or the beginning of one (a whole one fits alone), or ``torch=2.11.0,threads=3``.
        cells: of a matrix.
        matrix: its file, for the message.

    Raises:
        BadInput: it fits none, or several.
    """
    found = _by_levels(name, cells) if "=" in name else _by_name(name, cells)
    if len(found) == 1:
        return found[0]
    listed = "\n    ".join(cell.id for cell in (found or cells)[:MOST])
    more = len(found or cells) - MOST
    listed += f"\n    and {more} more" if more > 0 else ""
    if found:
        raise BadInput("CELL", "", f"{shown(name)} fits {len(found)} cells of {matrix}", f"one of\n    {listed}")
    near = nearest(name, [cell.id for cell in cells])
    wanted = f"{f'{near} (the nearest); ' if near else ''}one of\n    {listed}"
    raise BadInput("CELL", "", f"{matrix} has no cell {shown(name)}", wanted)


def measured_with(store: Store, name: str) -> Path | None:
    """The matrix file, still there, of the last run that had a cell of this name; None when there is none."""
    if "=" in name:
        return None
    for stored in store.cells(name):
        for run in store.runs(stored.matrix):
            if Path(run.matrix_path).is_file():
                return Path(run.matrix_path)
    return None


def _by_name(name: str, cells: Sequence[Cell]) -> list[Cell]:
    whole = [cell for cell in cells if name in (cell.id, cell.key)]
    return whole or [cell for cell in cells if cell.id.startswith(name) or cell.key.startswith(name)]


def _by_levels(name: str, cells: Sequence[Cell]) -> list[Cell]:
    wanted = []
    for part in name.split(","):
        axis, _, level = (text.strip() for text in part.partition("="))
        if not axis or not level:
            raise BadInput("CELL", "", f"{shown(part)} is no level", "AXIS=LEVEL,AXIS=LEVEL: torch=2.11.0,threads=3")
        wanted.append((axis, level))
    axes = {axis for cell in cells for axis, _ in _facts(cell)}
    for axis, _ in wanted:
        if axis not in axes:
            near = nearest(axis, axes)
            raise BadInput("CELL", "", f"no axis is called {shown(axis)}", near or f"one of {', '.join(sorted(axes))}")
    return [cell for cell in cells if set(wanted) <= _facts(cell)]


def _facts(cell: Cell) -> set[tuple[str, str]]:
    """Its levels, and its condition, of which some may be no axis."""
    return {*cell.levels, *((key, str(value)) for key, value in cell.condition.values)}
