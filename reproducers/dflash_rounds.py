"""When a timed round may begin: at once, or when the runner says so, in turn with other environments' processes.

Standard library only.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from trial_events import Events

POLL_SECONDS = 0.005


class Turns:
    """The turns that the runner gives through the folder ``BISECT_ENV_TURNS``; without it ``rounds`` back to back."""

    def __init__(self, events: Events, rounds: int) -> None:
        folder = os.environ.get("BISECT_ENV_TURNS")
        self._events, self._rounds, self._folder = events, rounds, Path(folder) if folder else None

    def begins(self, index: int, stopping: Callable[[], bool]) -> bool:
        """Wait for the turn of round ``index`` (from 0): True to begin it, False when there are no more rounds.

        One thread polls; the others wait at a barrier, so that a waiting process leaves CPU and GPU to the others.
        """
        if self._folder is None:
            return index < self._rounds
        self._events.emit("waiting", round=index)
        while not stopping():
            if (self._folder / str(index)).exists():
                return True
            if (self._folder / "end").exists():
                return False
            time.sleep(POLL_SECONDS)
        return False
