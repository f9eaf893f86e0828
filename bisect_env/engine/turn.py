"""Whose turn it is to build and measure in a store: one run's at a time.

Two runs of one store would disturb each other's throughput, and would both run the trials that each finds missing. The
second one waits, and then counts what the first has stored. It is an ``flock``, which the system releases however its
holder dies; who holds it stands in the file, for the message alone.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bisect_env.errors import BisectEnvError, ExitCode

FILE = "turn.lock"
POLL = 0.1
"""Seconds between two looks at a turn that somebody else has."""


class Stopped(BisectEnvError):
    """The wait was ended by the stop event."""

    exit_code = ExitCode.INTERRUPTED


@contextmanager
def turn(root: Path, about: str, stop: threading.Event, tell: Callable[[str], None]) -> Iterator[bool]:
    """Hold the turn of the store under ``root``; yields True when it had to be waited for.

    Args:
        about: what others are told of the holder, such as a run's id.
        stop: ends the wait when set.
        tell: gets a line that names the holder, when that changes.

    Raises:
        Stopped: ``stop`` was set.
    """
    said = ""
    # Not inherited by what the holder starts: a child that outlives it would keep the turn.
    fd = os.open(root / FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        while not _taken(fd):
            holder = os.pread(fd, 1 << 10, 0).decode(errors="replace").strip() or "another run"
            if holder != said:
                said = holder
                tell(
                    f"waiting for {holder}, which measures in {root}: one run at a time, so that neither disturbs the "
                    "other (--store DIR is a store of its own)"
                )
            if stop.wait(POLL):
                raise Stopped(f"stopped while waiting for {holder}")
        name = f"{about} (pid {os.getpid()}, since {time.strftime('%H:%M:%S')})".encode()
        os.ftruncate(fd, 0)
        os.pwrite(fd, name, 0)
        yield bool(said)
    finally:
        os.close(fd)


def _taken(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
