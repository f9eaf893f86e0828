"""When a trial has taken too long: over its imports, between two events, or in all."""

from __future__ import annotations

import contextlib
import stat
from dataclasses import dataclass, replace
from pathlib import Path

from bisect_env.matrix.cells import Limits
from bisect_env.trials.events import read

END = "end"
"""Name of the file in the folder of turns that ends the rounds."""


@dataclass(frozen=True)
class Expiry:
    """A limit that was passed."""

    limit: str
    """``import``, ``silence``, ``still`` or ``total``."""
    seconds: float


@dataclass(frozen=True)
class Progress:
    """How far a trial is. Times are of one monotonic clock, in seconds."""

    started: float
    ready: bool = False
    last_event: float = 0.0
    """When the events file last grew, or when the process was last seen waiting for its turn."""
    waited: float = 0.0
    """Seconds in all that it waited for its turn: they are no time of its own."""


def expired(progress: Progress, now: float, limits: Limits, silence: float, protocol: bool) -> Expiry | None:
    """The limit that has passed, None when there is none.

    Until `ready` a trial imports, which is silent by nature and has a limit of its own. A command without the protocol
    is silent for good reasons (its output may be buffered), so that only the whole time counts.
    """
    if now - progress.started - progress.waited >= limits.trial:
        return Expiry("total", limits.trial)
    if progress.ready and now - progress.last_event >= silence:
        return Expiry("silence", silence)
    if protocol and not progress.ready and now - progress.started >= limits.import_time:
        return Expiry("import", limits.import_time)
    return None


class EventsWatch:
    """Follows an events file: cheap enough to be asked many times a second."""

    def __init__(self, path: Path, now: float, turns: Path | None = None) -> None:
        """Follow ``path`` from ``now`` on; ``turns`` is the folder in which the process is told to begin a round."""
        self._path, self._turns = path, turns
        self._size = self._read = 0
        self._looked = now
        self.waiting: int | None = None
        """Round that the process last said to wait for, with ``turns``; it may have begun since."""
        self.progress = Progress(started=now)

    @property
    def idle(self) -> bool:
        """Whether the process waits for a turn that nobody has given it yet."""
        if self._turns is None or self.waiting is None:
            return False
        return not ((self._turns / str(self.waiting)).exists() or (self._turns / END).exists())

    def look(self, now: float) -> Progress:
        """The progress as of ``now``."""
        with contextlib.suppress(FileNotFoundError):
            found = self._path.stat()
            size = found.st_size
            # A command of the user's own may have made anything of it.
            if size != self._size and stat.S_ISREG(found.st_mode):
                self._size = size
                # Without turns it is read until `ready` only: a handful of lines.
                if self._turns is not None or not self.progress.ready:
                    self._take(size)
                self.progress = replace(self.progress, last_event=now)
        if self.idle:
            waited = self.progress.waited + now - self._looked
            self.progress = replace(self.progress, last_event=now, waited=waited)
        self._looked = now
        return self.progress

    def _take(self, size: int) -> None:
        """Read the whole lines that are new; all of them where the file was begun again."""
        self._read = self._read if self._read <= size else 0
        with self._path.open("rb") as file:
            file.seek(self._read)
            content = file.read()
        whole = content.rfind(b"\n") + 1
        self._read += whole
        said = read(content[:whole].decode(errors="replace"))
        if said.ready is not None:
            self.progress = replace(self.progress, ready=True)
        if said.waiting is not None:
            self.waiting = said.waiting
