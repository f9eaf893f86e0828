"""A process that neither says anything nor computes is stuck: no longer limit would change that.

A slow compile is silent too, but uses a core. Telling the two apart ends a deadlock after seconds, where silence alone
must be borne for several times the longest compile, and then confirmed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable

import psutil

STILL_SECONDS = 20.0
"""So long without an event and without computing, and a trial hangs."""
STILL_SHARE = 0.02
"""Share of a core below which a process family does not compute: heartbeats, pollers and this watch's own readings."""
EVERY_SECONDS = 2.0
"""Between two readings of the CPU times: they cost some milliseconds."""


def cpu_seconds(family: Iterable[psutil.Process]) -> float:
    """CPU time of processes so far, that of their ended children included."""
    used = 0.0
    for process in family:
        with contextlib.suppress(psutil.Error):
            used += sum(process.cpu_times()[:4])
    return used


class Stillness:
    """Since when a process has been still. Times are of one monotonic clock, in seconds."""

    def __init__(self, now: float, used: Callable[[], float]) -> None:
        """Begin at ``now``; ``used`` reads the CPU seconds of the process's family."""
        self._used, self._since, self._looked = used, now, now
        self._at_first: float | None = None

    def seconds(self, now: float, last_event: float) -> float:
        """How long there has been neither an event nor computing, as of the last reading.

        A process that an event shows to be alive is not read at all.
        """
        if last_event > self._since:
            self._since, self._at_first = last_event, None
        if now - self._looked < EVERY_SECONDS or now - self._since < EVERY_SECONDS:
            return 0.0
        self._looked, used = now, self._used()
        # A process that ended took its time along: that is a change as well.
        if self._at_first is None or abs(used - self._at_first) > STILL_SHARE * STILL_SECONDS:
            self._since, self._at_first = now, used
        return now - self._since
