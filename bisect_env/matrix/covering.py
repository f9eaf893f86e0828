"""Some of the cells of a matrix in few words: by the levels that they have and no other cell has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bisect_env.matrix.cells import Cell


def described(some: Sequence[Cell], every: Sequence[Cell]) -> str | None:
    """``torch=2.11.0, cuda=cu128|cu130``; None where no levels pick out these cells and no others.

    Args:
        some: of ``every``, at least one.
        every: the cells of a matrix, or of the part of it that is looked at.
    """
    if len(some) == 1:
        return some[0].id
    axes = dict.fromkeys(axis for cell in every for axis, _ in cell.levels)
    wanted = {axis: tuple(dict.fromkeys(_level(cell, axis) for cell in some)) for axis in axes}
    if _picked(wanted, every) != len(some):
        return None
    # From the last axis on, so that torch, which stands first, is what is left to tell cells by.
    for axis in reversed(axes):
        fewer = {name: levels for name, levels in wanted.items() if name != axis}
        if _picked(fewer, every) == len(some):
            wanted = fewer
    return ", ".join(f"{axis}={'|'.join(levels)}" for axis, levels in wanted.items()) or "all"


def _picked(wanted: Mapping[str, Sequence[str]], every: Sequence[Cell]) -> int:
    """How many cells have one of these levels on each axis."""
    return sum(all(_level(cell, axis) in levels for axis, levels in wanted.items()) for cell in every)


def _level(cell: Cell, axis: str) -> str:
    """Empty where the cell has none: one that ``include`` added names not every axis."""
    return dict(cell.levels).get(axis, "")
