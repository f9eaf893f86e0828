"""A bisection while it runs: on a terminal the suspects as bars, elsewhere one line an event."""

from __future__ import annotations

import time
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from bisect_env.bisection.progress import Reporter
from bisect_env.bisection.records import Levels, Observation, Stage
from bisect_env.environments.records import Lock, Unavailable
from bisect_env.matrix.cells import Cell
from bisect_env.report.bisection_words import outcome, place, probability
from bisect_env.report.progress import REASON, SIGNATURE, LineReporter, resolved_line
from bisect_env.report.rows import cut
from bisect_env.trials.records import Side, TrialRecord
from bisect_env.words import counted, lasting

STAGES = {
    Stage.ENDS: "Both ends",
    Stage.FACTORS: "Which difference",
    Stage.SPLIT: "Which of those that moved together",
    Stage.VERSIONS: "Which version",
    Stage.COMMITS: "Which commit",
    Stage.CONFIRM: "Confirming on fresh trials",
}
BARS, IN_A_LINE = 8, 3
"""Suspects shown as bars, and in a line."""
NAME = 44
"""Most characters of a suspect's name beside its bar."""


class BisectionLines(LineReporter, Reporter):
    """One line an event, flushed at once; no colour and no cursor movement."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self.names: tuple[str, ...] = ()
        self.now: Stage | None = None
        self.suspects: tuple[tuple[str, float], ...] = ()
        self.confidence = 1.0
        self.trials, self.builds, self.seconds = 0, 0, 0.0
        self.left: tuple[float, float] | None = None

    def stage(self, stage: Stage, suspects: tuple[str, ...]) -> None:
        """Announce it, and how many suspects there are."""
        self.names = suspects if stage is Stage.FACTORS else ()
        self.suspects, self.left = (), None
        self.now = stage
        among = f": {counted(len(suspects), 'suspect')}" if stage not in (Stage.ENDS, Stage.CONFIRM) else ""
        self._say(f"{STAGES[stage]}{among}")

    def batch_started(self, stage: Stage, point: Levels, size: int) -> None:
        """Say what is about to be tried."""
        self._say(f"{counted(size, 'trial')}: {self._where(stage, point)}")

    def batch_ended(self, observation: Observation) -> None:
        """Say what it came to."""
        self._say(f"{self._where(observation.stage, observation.point)}: {outcome(observation)}")

    def posterior(self, stage: Stage, suspects: tuple[tuple[str, float], ...], confidence: float) -> None:
        """The likeliest suspects, on a line; those of an earlier stage have been told."""
        if stage is not self.now:
            return
        self.suspects, self.confidence = suspects, confidence
        named = [f"{cut(name, NAME)} {probability(chance)}" for name, chance in suspects[:IN_A_LINE]]
        spent = f"; {self.effort()}" if self.trials else ""
        if named:
            self._say(f"suspects: {', '.join(named)}{spent}")

    def spent(self, trials: int, builds: int, seconds: float) -> None:
        """Remembered for the next look."""
        self.trials, self.builds, self.seconds = trials, builds, seconds

    def remaining(self, seconds: float | None) -> None:
        """Remembered, with the moment at which it was true."""
        self.left = None if seconds is None else (seconds, time.monotonic())

    def resolved(self, label: str, result: Lock | Unavailable, seconds: float) -> None:
        """Only what cannot be resolved, or is remarkable: there may be hundreds."""
        if isinstance(result, Unavailable) or result.notes or result.marks:
            self._say(resolved_line(label, result, seconds))

    def trial_ended(self, cell: Cell, record: TrialRecord, note: str) -> None:
        """One line a trial, under those of the batches that take turns."""
        self._say(f"  {cell.id}: {trial_words(record, note)}")

    def _where(self, stage: Stage, levels: Levels) -> str:
        return place(stage, levels, self.names)

    def effort(self) -> str:
        """What was spent so far, and what the stage may still take: ``12 trials, 4 environments built, 3 min``."""
        said = f"{counted(self.trials, 'trial')}, {counted(self.builds, 'environment')} built, {lasting(self.seconds)}"
        if self.left is None:
            return said
        seconds, when = self.left
        left = max(0.0, seconds - (time.monotonic() - when))
        return f"{said}; about {lasting(left)} left in this stage"


class BisectionLive(BisectionLines):
    """The suspects as bars, below the lines that last: stages, batches, what cannot be built."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self.doing = Spinner("dots", "")
        # Drawn anew at every refresh, so that the time left counts down during a long trial.
        self.live = Live(get_renderable=self.view, console=console, transient=True, refresh_per_second=4)

    def __enter__(self) -> Self:
        self.live.start()
        return self

    def __exit__(self, *exc: object) -> None:
        """Take the bars away; the lines stay."""
        self.live.stop()

    def posterior(self, stage: Stage, suspects: tuple[tuple[str, float], ...], confidence: float) -> None:
        """Move the bars."""
        if stage is self.now:
            self.suspects, self.confidence = suspects, confidence

    def batch_started(self, stage: Stage, point: Levels, size: int) -> None:
        """Name what is tried."""
        self._do(f"{counted(size, 'trial')}: {self._where(stage, point)}")

    def resolving(self, label: str) -> None:
        """Name what is being resolved."""
        self._do(f"resolving {label}")

    def building(self, label: str, lock: Lock) -> None:
        """Say it, and name it."""
        super().building(label, lock)
        self._do(f"building {label}")

    def trial_started(self, cell: Cell, side: Side, number: int, of: int) -> None:
        """Name the trial that runs."""
        self._do(f"trial {number} of {of}: {cell.id}")

    def trial_ended(self, cell: Cell, record: TrialRecord, note: str) -> None:
        """Only trials that are not counted stay on the screen: the batch has a line of its own."""
        if note:
            super().trial_ended(cell, record, note)

    def _do(self, text: str) -> None:
        self.doing.update(text=Text(cut(text, max(20, self.console.width - 4))))

    def view(self) -> Group:
        """What stands below the lines now."""
        bars = Table.grid(padding=(0, 1))
        width = max(8, min(40, self.console.width - NAME - 12))
        for name, chance in self.suspects[:BARS]:
            sure = chance >= self.confidence
            bar = ProgressBar(total=1.0, completed=chance, width=width, complete_style="green" if sure else "yellow")
            bars.add_row(Text(cut(name, NAME)), bar, Text(probability(chance)))
        rest = self.suspects[BARS:]
        if rest:
            share = probability(sum(chance for _, chance in rest))
            bars.add_row(Text(f"{len(rest)} more"), Text(""), Text(share))
        title = [Text(STAGES[self.now], style="bold")] if self.now else []
        return Group(*title, *([bars] if self.suspects else []), Text(self.effort(), style="dim"), self.doing)


def trial_words(record: TrialRecord, note: str) -> str:
    """A trial on a line: how it ended, after how long, and by what."""
    said = f"{record.outcome} in {record.seconds:.1f} s"
    if record.failures:
        said += f": {cut(str(record.failures[0].signature), SIGNATURE)}"
    elif record.message and not note:
        said += f": {cut(record.message, SIGNATURE)}"
    return f"{said} ({cut(note, REASON)})" if note else said
