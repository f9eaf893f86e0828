"""A gate while it runs: on a terminal a bar with what has gone wrong on each side, elsewhere one line an event."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console

from bisect_env.gate.progress import Reporter
from bisect_env.gate.records import Announcement
from bisect_env.matrix.cells import Cell
from bisect_env.report.progress import LineReporter, LiveReporter
from bisect_env.trials.records import Outcome, Side, TrialRecord
from bisect_env.words import lasting

EVERY = 10
"""Blocks between two lines that say how it stands, where nothing new went wrong."""


class GateLines(LineReporter, Reporter):
    """One line an event, flushed at once; no colour and no cursor movement."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self.told = (0, 0)
        self.left = ""
        self.said: tuple[str, ...] = ()

    def announced(self, announcement: Announcement) -> None:
        """Every sentence on a line; of what is said anew once trials have told their time, what is new."""
        self.said = _said(announcement, self.said, self._say)

    def stands(self, block: int, blocks: int, bad: tuple[int, int], trials: tuple[int, int]) -> None:
        """How it stands: when something went wrong, and now and then."""
        if bad != self.told or block % EVERY == 0 or block == blocks:
            self.told = bad
            self._say(f"block {block} of {blocks}: {standing(bad, trials)}{self.left}")

    def remaining(self, seconds: float) -> None:
        """Remembered for the next line."""
        self.left = f"; about {lasting(seconds)} of trials left" if seconds else ""


class GateLive(LiveReporter, Reporter):
    """A bar for the blocks, below the lines that last."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self.stand, self.left = "", ""
        self.said: tuple[str, ...] = ()

    def announced(self, announcement: Announcement) -> None:
        """Every sentence on a line, which stays; the bar counts blocks from now on."""
        self.said = _said(announcement, self.said, self._say)
        self.progress.reset(self.task, total=announcement.blocks, description="Trials")

    def trial_started(self, cell: Cell, side: Side, number: int, of: int) -> None:
        """Name the trial that runs, and how it stands."""
        self.progress.update(self.task, description=f"{cell.id} {side} {number}/{of} {self.stand}{self.left}")

    def trial_ended(self, cell: Cell, record: TrialRecord, note: str) -> None:
        """Only trials that were not clean, or are not counted, stay on the screen; the bar has blocks."""
        if note or record.outcome is not Outcome.CLEAN:
            LineReporter.trial_ended(self, cell, record, note)

    def stands(self, block: int, blocks: int, bad: tuple[int, int], trials: tuple[int, int]) -> None:
        """Move the bar."""
        self.stand = f"({standing(bad, trials)})"
        self.progress.update(self.task, completed=block, total=blocks)

    def remaining(self, seconds: float) -> None:
        """Shown beside the bar."""
        self.left = f" about {lasting(seconds)} left" if seconds else ""


def _said(announcement: Announcement, before: tuple[str, ...], say: Callable[[str], None]) -> tuple[str, ...]:
    for sentence in announcement.sentences:
        if sentence not in before:
            say(sentence)
    return announcement.sentences


def standing(bad: tuple[int, int], trials: tuple[int, int]) -> str:
    """How many threaded trials went wrong on each side: ``went wrong: baseline 0 of 12, candidate 1 of 12``."""
    return f"went wrong: baseline {bad[0]} of {trials[0]}, candidate {bad[1]} of {trials[1]}"
