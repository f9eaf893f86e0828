"""Where each cell of a matrix stands: packages as rows and columns, and a grid for each way its trials run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bisect_env.report.rows import Row, level, varying

WIDEST = 6
"""Columns at which a grid is turned, where it then gets narrower."""

Levels = tuple[str, ...]


@dataclass(frozen=True)
class Grid:
    """One table: a place for each row and column, which holds the cells with these levels."""

    title: Levels
    """Axes and levels that all its cells have in common and the next grid's have not: ``cache cold``."""
    rows: tuple[str, ...]
    """Axes down the side."""
    column: str
    """The axis across; empty: there is none."""
    across: Levels
    """Its levels; one empty level where there is none."""
    lines: tuple[tuple[Levels, tuple[tuple[Row, ...], ...]], ...]
    """Levels of the side's axes, and for each level across the cells there: mostly one, none where the matrix has
    left the combination out."""


def grids(rows: Sequence[Row], axes: Sequence[str]) -> tuple[Grid, ...]:
    """All rows, each in one place of one grid; levels in the order in which the matrix has them."""
    if not rows:
        return ()
    shown = varying(rows, axes)
    if len(shown) == 1:
        return (_grid((), shown, "", rows),)
    conditions = [axis for axis in shown if _is_condition(axis, rows)]
    packages = [axis for axis in shown if axis not in conditions]
    inner = [*packages, *conditions][: max(2, len(packages))]
    groups: dict[Levels, list[Row]] = {}
    outer = [axis for axis in shown if axis not in inner]
    for row in rows:
        groups.setdefault(tuple(level(row, axis) for axis in outer), []).append(row)
    return tuple(_turned(tuple(zip(outer, levels, strict=True)), inner, group) for levels, group in groups.items())


def _is_condition(axis: str, rows: Sequence[Row]) -> bool:
    """Whether the axis says how trials run, and not what is installed."""
    return any(axis in row.cell.condition.as_dict() or axis in dict(row.cell.variables) for row in rows)


def _turned(common: tuple[tuple[str, str], ...], axes: Sequence[str], rows: Sequence[Row]) -> Grid:
    """The axis with the levels that fit goes across, the last one if it does."""
    title = tuple(f"{axis} {found}" for axis, found in common if found)
    counts = {axis: len({level(row, axis) for row in rows}) for axis in axes}
    across = axes[-1]
    if counts[across] > WIDEST:
        across = min(reversed(axes), key=lambda axis: (counts[axis] > WIDEST, counts[axis] == 1))
    return _grid(title, tuple(axis for axis in axes if axis != across), across, rows)


def _grid(title: Levels, side: tuple[str, ...], across: str, rows: Sequence[Row]) -> Grid:
    columns = tuple(dict.fromkeys(level(row, across) for row in rows)) if across else ("",)
    places: dict[Levels, dict[str, list[Row]]] = {}
    for row in rows:
        line = places.setdefault(tuple(level(row, axis) for axis in side), {})
        line.setdefault(level(row, across) if across else "", []).append(row)
    lines = tuple(
        (levels, tuple(tuple(found.get(column, ())) for column in columns)) for levels, found in places.items()
    )
    return Grid(title, side, across, columns, lines)
