"""What `bisect-env bundle` shows while it goes on, and the summary at its end."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from bisect_env.bundles.collect import Bundle
from bisect_env.bundles.progress import Reporter
from bisect_env.bundles.records import MANIFEST, TOOL
from bisect_env.bundles.resolving import Resolved
from bisect_env.bundles.sources import Source
from bisect_env.engine.disk import size
from bisect_env.report.progress import REASON
from bisect_env.report.rows import cut
from bisect_env.words import counted

WORDS = {
    "resolve": ("Resolving", "environment", "to resolve"),
    "fetch": ("Fetching", "wheel", "to fetch"),
    "write": ("Writing", "part", "to write"),
}
LARGE = 50_000_000
"""Bytes of a wheel that has a line of its own."""
EVERY = 10.0
"""Seconds between two lines on bytes that arrive."""


class LineReporter(Reporter):
    """One line an event, flushed at once; no colour and no cursor movement."""

    def __init__(self, console: Console) -> None:
        self.console, self.began = console, time.monotonic()
        self.lock = threading.Lock()
        self.name, self.total, self.so_far, self.said = "", 0, 0, 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        """Nothing is left on the screen that would have to be cleared."""

    def note(self, text: str) -> None:
        """Print the note as it is."""
        minutes, seconds = divmod(int(time.monotonic() - self.began), 60)
        self.console.print(f"{minutes:3d}:{seconds:02d}  {text}", markup=False, highlight=False, soft_wrap=True)

    def phase(self, name: str, count: int, total_bytes: int) -> None:
        """Announce the phase and how much is ahead."""
        verb, what, to = WORDS[name]
        with self.lock:
            self.name, self.total, self.so_far, self.said = verb, total_bytes, 0, time.monotonic()
        self.note(f"{verb}: {counted(count, what)} {to}" + (f", {size(total_bytes)}" if total_bytes else ""))

    def resolved(self, result: Resolved, seconds: float) -> None:
        """Say what was found, or why nothing was."""
        self.note(resolved_line(result, seconds))

    def arrived(self, count: int) -> None:
        """Now and then, say how far it is."""
        with self.lock:
            self.so_far += count
            now = time.monotonic()
            due = now - self.said > EVERY
            if due:
                self.said = now
        if due:
            self.note(f"{self.name}: {size(self.so_far)} of {size(self.total)}")

    def fetched(self, source: Source, seconds: float) -> None:
        """Name the large ones."""
        if (source.size or 0) >= LARGE:
            self.note(f"fetched {source.filename}: {size(source.size or 0)} in {seconds:.1f} s")


class LiveReporter(LineReporter):
    """A bar of bytes below the lines that last."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), DownloadColumn())
        self.bar = Progress(*columns, TransferSpeedColumn(), TimeRemainingColumn(), console=console, transient=True)
        self.task = self.bar.add_task("", total=None)

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(self, *exc: object) -> None:
        """Take the bar away; the lines stay."""
        self.bar.stop()

    def phase(self, name: str, count: int, total_bytes: int) -> None:
        """Restart the bar for the phase."""
        verb, what, to = WORDS[name]
        self.bar.reset(self.task, total=total_bytes or None, description=f"{verb} ({counted(count, what)} {to})")

    def arrived(self, count: int) -> None:
        """Advance the bar."""
        self.bar.advance(self.task, count)


def resolved_line(result: Resolved, seconds: float) -> str:
    """What resolving a request for the target came to."""
    locked = result.locked
    cells = locked.cells[0] + (f" and {len(locked.cells) - 1} more" if len(locked.cells) > 1 else "")
    if locked.lock is None:
        why = locked.unavailable
        return f"NOT BUNDLED {cells}: " + ("" if why is None else f"{why.reason}: {cut(why.message, REASON)}")
    lock = locked.lock
    remarks = "; ".join((*lock.marks, *lock.notes))
    variant = f", {lock.cuda}" if lock.cuda else ""
    text = f"resolved {cells}: {len(lock.pins)} wheels{variant}, in {seconds:.1f} s"
    return f"{text} ({remarks})" if remarks else text


def summary(bundle: Bundle, folder: Path, part_bytes: int, seconds: float) -> str:
    """What is in the bundle, what was left out, and where to go on."""
    made = bundle.manifest
    missing = [each for each in bundle.resolved if each.locked.lock is None]
    cells = sum(len(each.locked.cells) for each in bundle.resolved)
    unresolved = sum(len(each.locked.cells) for each in missing)
    now = {sha256 for each in bundle.resolved for sha256 in each.locked.wheels}
    wheels = [wheel for wheel in made.wheels if wheel.sha256 in now]
    left_out = [wheel for wheel in wheels if not wheel.pieces]
    installed = [wheel for wheel in left_out if wheel.installed]
    total = sum(count for _, count in made.part_bytes)
    lines = [
        f"{folder}: {cells - unresolved} of {cells} cells, {len(wheels)} wheels, in {seconds:.0f} s.",
        f"  parts    {len(made.part_bytes)} ({size(total)}), new of them {bundle.new_parts} ({size(bundle.new_bytes)})",
        f"  tool     {len(made.tool)} wheels ({size(bundle.tool_bytes)}), for Python {made.target.python} on "
        f"{made.target.platform}",
        f"  fetched  {size(bundle.fetched_bytes)}",
    ]
    if left_out:
        lines.append(
            f"  left out {len(left_out)} wheels ({size(sum(wheel.size for wheel in left_out))}) that the target has: "
            f"{len(installed)} installed, {len(left_out) - len(installed)} from earlier bundles"
        )
    lines += [f"  {resolved_line(each, 0.0)}" for each in missing]
    large = [name for name, _ in made.tool if (folder / TOOL / name).stat().st_size > part_bytes]
    if large:
        lines.append(f"  Larger than a part, since the tool's wheels go whole: {', '.join(large)}")
    lines += [f"  {note}" for note in bundle.notes]
    lines.append(
        f"Carry {MANIFEST}, tool/, project/ and the parts over (in the order of SHA256SUMS for the first cells first); "
        f"{folder / 'README.txt'} has the commands for the target."
    )
    return "\n".join(lines)
