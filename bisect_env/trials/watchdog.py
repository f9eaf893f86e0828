"""When a trial has taken too long: over its imports, between two events, or in all."""

from __future__ import annotations

import json
import stat
from dataclasses import dataclass
from pathlib import Path

from bisect_env.matrix.cells import Limits


@dataclass(frozen=True)
class Expiry:
    """A limit that was passed."""

    limit: str
    """``import``, ``silence`` or ``total``."""
    seconds: float


@dataclass(frozen=True)
class Progress:
    """How far a trial is. Times are of one monotonic clock, in seconds."""

    started: float
    ready: bool = False
    last_event: float = 0.0
    """When the events file last grew."""


def expired(progress: Progress, now: float, limits: Limits, silence: float, protocol: bool) -> Expiry | None:
    """The limit that has passed, None when there is none.

    Until `ready` a trial imports, which is silent by nature and has a limit of its own. A command without the protocol
    is silent for good reasons (its output may be buffered), so that only the whole time counts.
    """
    if now - progress.started >= limits.trial:
        return Expiry("total", limits.trial)
    if progress.ready and now - progress.last_event >= silence:
        return Expiry("silence", silence)
    if protocol and not progress.ready and now - progress.started >= limits.import_time:
        return Expiry("import", limits.import_time)
    return None


class EventsWatch:
    """Follows an events file: cheap enough to be asked many times a second."""

    def __init__(self, path: Path, now: float) -> None:
        self._path, self._size = path, 0
        self.progress = Progress(started=now)

    def look(self, now: float) -> Progress:
        """The progress as of ``now``."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return self.progress
        size = found.st_size
        # A command of the user's own may have made anything of it.
        if size != self._size and stat.S_ISREG(found.st_mode):
            # Only until `ready` is it read: a handful of lines.
            ready = self.progress.ready or _has_ready(self._path.read_bytes())
            self._size = size
            self.progress = Progress(self.progress.started, ready, now)
        return self.progress


def _has_ready(content: bytes) -> bool:
    for line in content.splitlines():
        try:
            if json.loads(line)["event"] == "ready":
                return True
        except (ValueError, KeyError, TypeError):
            continue
    return False
