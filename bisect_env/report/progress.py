"""Progress of a run: plain lines for logs and pipes, a live view on a terminal."""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from bisect_env.engine.disk import size
from bisect_env.engine.progress import Reporter
from bisect_env.environments.records import Environment, Lock, Unavailable
from bisect_env.matrix.cells import Cell
from bisect_env.report.rows import cut
from bisect_env.trials.records import Outcome, Side, TrialRecord
from bisect_env.verdicts.records import Verdict
from bisect_env.verdicts.verdict import without_environment
from bisect_env.words import counted

STYLES = {
    "clean": "green",
    "failed": "red",
    "hang": "magenta",
    "oom": "yellow",
    "wrong": "red",
    "import-failed": "yellow",
    "skipped": "dim",
    "infra": "cyan",
}
SIGNATURE, REASON = 120, 300
"""Most characters of a fault and of a reason in a line; the table and `bisect-env show` have all."""
PHASES = {"resolve": "Resolving", "build": "Building", "trials": "Trials"}
AHEAD = {"resolve": ("environment", "to resolve"), "build": ("environment", "to build"), "trials": ("trial", "at most")}
"""What a phase counts, and what is to become of it."""


class LineReporter(Reporter):
    """One line an event, flushed at once; no colour and no cursor movement."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.began = time.monotonic()
        self.total, self.done = 0, 0
        self.lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        """Nothing is left on the screen that would have to be cleared."""

    def _say(self, text: str) -> None:
        minutes, seconds = divmod(int(time.monotonic() - self.began), 60)
        with self.lock:
            self.console.print(f"{minutes:3d}:{seconds:02d}  {text}", markup=False, highlight=False, soft_wrap=True)

    def note(self, text: str) -> None:
        """Print the note as it is."""
        self._say(text)

    def phase(self, name: str, total: int) -> None:
        """Announce the phase and how much is ahead."""
        self.total, self.done = total, 0
        thing, ahead = AHEAD[name]
        self._say(f"{PHASES[name]}: {counted(total, thing)} {ahead}")

    def resolved(self, label: str, result: Lock | Unavailable, seconds: float) -> None:
        """Say what was found, or why nothing was."""
        self._say(resolved_line(label, result, seconds))

    def building(self, label: str, lock: Lock) -> None:
        """Say what is being built, since it may take minutes."""
        download = f" of {size(lock.download_bytes)}" if lock.download_bytes else ""
        self._say(f"building {label}: {distributions(lock)}{download}")

    def built(self, label: str, result: Environment | Unavailable, seconds: float) -> None:
        """Say that it stands, or why it does not."""
        self._say(built_line(label, result, seconds))

    def trial_ended(self, cell: Cell, record: TrialRecord, note: str) -> None:
        """One line a trial."""
        self.done += 0 if note else 1
        # Rounds come when all trials are done, and are none of them.
        place = f"[{self.done}/{self.total}] " if self.total and record.side is not Side.ROUNDS else ""
        self._say(f"{place}{trial_line(cell, record, note)}")

    def cell_finished(self, cell: Cell, verdict: Verdict) -> None:
        """The verdict, as soon as it is known."""
        early = " (stopped early: it is certain)" if verdict.stopped_early else ""
        self._say(f"{cell.id}: {verdict.text}{early}")


class LiveReporter(LineReporter):
    """A progress bar below the lines that last: environments, failures and verdicts."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self.progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self.task = self.progress.add_task("", total=None)
        self.tally: Counter[str] = Counter()

    def __enter__(self) -> Self:
        self.progress.start()
        return self

    def __exit__(self, *exc: object) -> None:
        """Take the bar away; the lines stay."""
        self.progress.stop()

    def phase(self, name: str, total: int) -> None:
        """Restart the bar for the phase."""
        self.total, self.done = total, 0
        self.progress.reset(self.task, total=total, description=PHASES[name])

    def resolving(self, label: str) -> None:
        """Name what is being resolved."""
        self.progress.update(self.task, description=f"Resolving {label}")

    def resolved(self, label: str, result: Lock | Unavailable, seconds: float) -> None:
        """Advance; only failures stay on the screen."""
        self.progress.advance(self.task)
        if isinstance(result, Unavailable) or result.notes or result.marks:
            super().resolved(label, result, seconds)

    def building(self, label: str, lock: Lock) -> None:
        """Name what is being built."""
        super().building(label, lock)
        self.progress.update(self.task, description=f"Building {label}")

    def built(self, label: str, result: Environment | Unavailable, seconds: float) -> None:
        """Advance, and say it."""
        self.progress.advance(self.task)
        super().built(label, result, seconds)

    def trial_started(self, cell: Cell, side: Side, number: int, of: int) -> None:
        """Name the trial that runs."""
        self.progress.update(self.task, description=f"{cell.id} {side} {number}/{of} {self._tally()}")

    def trial_ended(self, cell: Cell, record: TrialRecord, note: str) -> None:
        """Advance; trials that were not clean stay on the screen."""
        if not note:
            self.tally[record.outcome] += 1
            self.progress.advance(self.task)
        if note or record.outcome is not Outcome.CLEAN:
            super().trial_ended(cell, record, note)

    def _tally(self) -> str:
        parts = [f"[{STYLES[name]}]{count} {name}[/]" for name, count in sorted(self.tally.items())]
        return f"({', '.join(parts)})" if parts else ""


def resolved_line(label: str, result: Lock | Unavailable, seconds: float) -> str:
    """What resolving a request came to."""
    if isinstance(result, Unavailable):
        return f"{without_environment(result).headline} {label}: {result.reason}: {cut(result.message, REASON)}"
    remarks = "; ".join((*result.marks, *result.notes))
    variant = f", {result.cuda}" if result.cuda else ""
    return f"resolved {label}: {distributions(result)}{variant}, in {seconds:.1f} s" + (
        f" ({remarks})" if remarks else ""
    )


def distributions(lock: Lock) -> str:
    """How many distributions a lock installs, in words."""
    if lock.base is not None and not lock.pins:
        return "the base itself"
    return f"{len(lock.pins)} distribution{'s' * (len(lock.pins) != 1)}{' over the base' * (lock.base is not None)}"


def built_line(label: str, result: Environment | Unavailable, seconds: float) -> str:
    """What building an environment came to."""
    if isinstance(result, Unavailable):
        return f"{without_environment(result).headline} {label}: {cut(result.message, REASON)}"
    return f"built {label} in {seconds:.1f} s"


def trial_line(cell: Cell, record: TrialRecord, note: str) -> str:
    """One trial in a line: what, how it ended, how long it took."""
    text = f"{cell.id} {record.side}: {record.outcome} in {record.seconds:.1f} s"
    if record.failures:
        text += f": {cut(str(record.failures[0].signature), SIGNATURE)}"
    elif record.message and not note:
        text += f": {cut(record.message, SIGNATURE)}"
    return f"{text} ({cut(note, REASON)})" if note else text
