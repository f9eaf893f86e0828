"""What a gate tells whoever is watching: empty hooks again, and the engine's events passed on to them."""

from __future__ import annotations

from bisect_env.engine import progress
from bisect_env.engine.progress import Reporter as EngineReporter
from bisect_env.gate.records import Announcement
from bisect_env.matrix.cells import Cell
from bisect_env.trials.records import Side


class Reporter(EngineReporter):
    """Silent; subclasses override what they show. Except for builds, all hooks are called from one thread.

    Of the engine's hooks all but ``phase`` and ``cell_finished`` are called too.
    """

    def announced(self, announcement: Announcement) -> None:
        """What was fixed beforehand; before the first trial."""

    def stands(self, block: int, blocks: int, bad: tuple[int, int], trials: tuple[int, int]) -> None:
        """After every block: threaded trials of baseline and candidate so far, and how many of them went wrong."""

    def remaining(self, seconds: float) -> None:
        """About how long the blocks still take, by the trials so far; before every :meth:`stands`."""


class Forward(progress.Forward):
    """The engine's events as they are, without what a gate has no use for."""

    def __init__(self, reporter: Reporter, blocks: int, controls: int) -> None:
        super().__init__(reporter)
        self._blocks, self._controls = blocks, controls
        self.trial_started = self._of_the_gate  # type: ignore[method-assign]

    def _of_the_gate(self, cell: Cell, side: Side, number: int, of: int) -> None:
        planned = {Side.THREADS: self._blocks, Side.SERIAL: self._controls}.get(side, of)
        self._reporter.trial_started(cell, side, number, planned)
