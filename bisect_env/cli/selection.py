"""``--cell``, ``--trials`` and ``--controls``: which part of a matrix, and what is planned of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatch

import click

from bisect_env.cli.common import Command
from bisect_env.cli.option_parts import Number
from bisect_env.errors import BadInput
from bisect_env.matrix.cells import Matrix


def selection_options(function: Command) -> Command:
    """Adds ``--cell``, ``--trials``, ``--controls`` and ``--max-race-rate``."""
    for option in (
        click.option(
            "--max-race-rate",
            type=Number(0, 1, min_open=True),
            default=0.05,
            show_default=True,
            help="Recommend only cells whose race rate is shown to be below this.",
        ),
        click.option(
            "--controls", type=click.IntRange(1), help="Trials of each control per cell, instead of the file's."
        ),
        click.option(
            "--trials", type=click.IntRange(1), help="Threaded trials per cell, instead of the file's; and of controls."
        ),
        click.option(
            "--cell", "patterns", multiple=True, metavar="GLOB", help="Only cells whose id matches; repeatable."
        ),
    ):
        function = option(function)
    return function


def narrowed(matrix: Matrix, patterns: Sequence[str], trials: int | None, controls: int | None) -> Matrix:
    """The matrix with the command line's cells and counts.

    Raises:
        BadInput: no cell matches.
    """
    matrix = selected(matrix, patterns)
    if trials is not None:
        matrix = replace(matrix, trials=trials)
    if controls is None and trials is None:
        return matrix
    # A solo control that the file leaves out stays out.
    solo = 0 if matrix.solo == 0 else None
    return replace(matrix, controls=controls if controls is not None else trials or matrix.controls, solo=solo)


def selected(matrix: Matrix, patterns: Sequence[str]) -> Matrix:
    """The matrix with the cells whose id matches a pattern, and those they are compared with; all without patterns.

    Raises:
        BadInput: no cell matches.
    """
    if not patterns:
        return matrix
    kept = {cell.id: cell for cell in matrix.cells if any(fnmatch(cell.id, pattern) for pattern in patterns)}
    if not kept:
        known = "\n    ".join(cell.id for cell in matrix.cells)
        raise BadInput("--cell", "", f"no cell matches {', '.join(patterns)}", f"one of\n    {known}")
    # A reference cell is needed to compare with, whether or not it was named.
    for cell in list(kept.values()):
        reference = matrix.reference_of(cell)
        if reference is not None:
            kept.setdefault(reference.id, reference)
    left_out = tuple(cell for cell in matrix.cells if cell.id not in kept)
    return replace(matrix, cells=tuple(cell for cell in matrix.cells if cell.id in kept), left_out=left_out)
