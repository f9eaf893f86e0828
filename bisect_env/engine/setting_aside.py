"""Cells of which a trial was given up: set aside, so that the others are measured, until nothing comes to a result."""

from __future__ import annotations

from bisect_env.errors import InfrastructureError
from bisect_env.matrix.cells import Cell
from bisect_env.trials.records import TrialRecord
from bisect_env.words import counted

IN_VAIN = 3
"""Cells set aside one after the other, without a result of any trial between: the trouble is everybody's."""
GOES_ON = "What was measured so far is kept: the same command goes on from there."


class SetAside:
    """The cells that one run has set aside.

    Args:
        may: whether any is; otherwise the first trial that is given up ends the run.
    """

    def __init__(self, may: bool) -> None:
        self._may = may
        self._why: dict[str, tuple[Cell, str]] = {}
        self._in_vain = 0

    def __contains__(self, key: str) -> bool:
        """Whether the cell of this key is."""
        return key in self._why

    def measured(self) -> None:
        """A trial came to a result."""
        self._in_vain = 0

    def given_up(self, cell: Cell, record: TrialRecord) -> None:
        """Nothing further of this cell is tried.

        Raises:
            InfrastructureError: nothing further of any cell is worth to be tried.
        """
        if cell.key in self._why:
            return
        why = f"a trial failed for a reason that says nothing about the cell: {record.message}"
        asked = record.aborted and record.exit_status is not None  # The command itself wants the run to end.
        self._in_vain += 1
        if not self._may or asked or self._in_vain >= IN_VAIN:
            before = f"{counted(len(self._why), 'cell')} before it came to nothing, too. " if self._why else ""
            raise InfrastructureError(f"{cell.id}: {why}\n  {before}{GOES_ON}")
        self._why[cell.key] = cell, why

    def told(self) -> None:
        """Says of a run that is at its end that something is missing.

        Raises:
            InfrastructureError: a cell was set aside.
        """
        if self._why:
            cells = "\n".join(f"  {cell.id}: {why}" for cell, why in self._why.values())
            raise InfrastructureError(f"set aside, and not measured to the end:\n{cells}\n  {GOES_ON}")
