"""A lock that tells who waits for it, gets it and gives it back."""

from __future__ import annotations

from typing import Any

from witness_lanes import Lane, Lanes, clock


class WatchedLock:
    """Stands for a lock, reentrant or not. A wait is told only when there is one."""

    def __init__(self, inner: Any, lanes: Lanes, state: str) -> None:
        self._inner, self._lanes, self._state = inner, lanes, state
        self._owner: Lane | None = None
        self._deep = 0
        """Times that the owner holds it; only the owner changes it."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """As the lock's own."""
        lane = self._lanes.here()
        waited = ""
        if not self._inner.acquire(blocking=False):
            if not blocking:
                return False
            owner = self._owner
            start = clock()
            self._lanes.event(lane, start, self._state, "wait", f"held by {owner.name}" if owner else "")
            lane.stood, lane.waits = 0.0, start
            try:
                got = self._inner.acquire(True, timeout)
            finally:
                lane.waits = None  # a signal's handler may have raised
            if not got:
                return False
            waited = f"after {clock() - start:.6f} s"
        self._deep += 1
        if self._deep == 1:
            self._owner = lane
            self._lanes.event(lane, clock(), self._state, "acquire", waited)
        return True

    def release(self) -> None:
        """As the lock's own."""
        owner = self._owner
        # Told before it is given back: holds of two threads never overlap in the log.
        if self._deep == 1 and owner is not None:
            self._owner = None
            self._lanes.event(owner, clock(), self._state, "release")
        if self._deep:
            self._deep -= 1
        self._inner.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def watched_lock(inner: Any, lanes: Lanes, state: str) -> WatchedLock:
    """The lock that stands for ``inner``."""
    return WatchedLock(inner, lanes, state)
