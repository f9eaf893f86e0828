"""``--cell``: the part of a matrix that a command is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatch

from bisect_env.errors import BadInput
from bisect_env.matrix.cells import Matrix


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
