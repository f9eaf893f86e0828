"""Being told to end: at once where something looks for it, and by force a moment later where nothing does."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""Slurm sends the first of them at a time limit, at a preemption and at ``scancel``, and kills after ``KillWait``."""
BY_ITSELF = 0.5
"""Seconds in which whoever looks at the stop event has ended; what does not look is interrupted after them."""


@contextmanager
def told_to_end(stop: threading.Event) -> Iterator[None]:
    """Sets ``stop`` at a signal to end, and raises KeyboardInterrupt in the body when it goes on after ``BY_ITSELF``.

    Further signals change nothing. For the main thread, which no other alarm may wait for.
    """

    def tell(number: int, frame: FrameType | None) -> None:
        if not stop.is_set():
            stop.set()
            signal.setitimer(signal.ITIMER_REAL, BY_ITSELF)

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    previous = {number: signal.signal(number, tell) for number in SIGNALS}
    previous[signal.SIGALRM] = signal.signal(signal.SIGALRM, interrupt)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in previous.items():
            signal.signal(number, handler)
