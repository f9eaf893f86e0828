"""One builder an address: a lock that the system releases when its holder dies, and what dead builders left."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
from filelock import FileLock, Timeout

from bisect_env.environments import trees
from bisect_env.environments.places import LOCKS, UNFINISHED, environments_folder

POLL = 0.1
"""Seconds between two looks at a lock that somebody else holds, and at ``stop``."""

PATIENCE = 5.0
"""Seconds that a killed process may take to end; longer is a disk that does not answer."""


@contextmanager
def held(root: Path, address: str, timeout: float = 0.0, stop: threading.Event | None = None) -> Iterator[bool]:
    """Holds an address against other threads and processes; yields False when that was not possible in time.

    ``timeout`` in seconds; 0 asks once. ``stop`` ends the waiting. The lock's file stays: to remove it would let two
    holders in. It is bound to the open file, so that a killed holder lets go of it at once, whatever it started.
    """
    folder = environments_folder(root) / LOCKS
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / f"{address}.lock", thread_local=False)
    deadline = time.monotonic() + timeout
    while True:
        try:
            lock.acquire(timeout=0, poll_interval=POLL)
            break
        except Timeout:
            if time.monotonic() >= deadline or (stop is not None and stop.is_set()):
                yield False
                return
            time.sleep(POLL)
    try:
        yield True
    finally:
        lock.release()


def sweep(root: Path, own: str | None = None) -> None:
    """Removes what builders that are dead left unfinished. ``own`` is an address that the caller holds.

    A folder is left over when its address can be held: no process numbers are compared, which mean nothing on a
    folder shared by several hosts.
    """
    for folder in environments_folder(root).glob(f"{UNFINISHED}*"):
        address = folder.name.removeprefix(UNFINISHED).split("-")[0]
        if address == own:
            _remove(folder)
            continue
        with held(root, address) as free:
            if free:
                _remove(folder)


def _remove(folder: Path) -> None:
    """Removes a leftover, after ending the uv that still writes into it: it has outlived the builder that was killed.

    The folder's name is unique, so a process with that path among its arguments is the one.
    """
    for process in psutil.process_iter(["cmdline"]):
        if any(str(folder) in argument for argument in process.info["cmdline"] or ()):
            with suppress(psutil.Error):
                process.kill()
                process.wait(timeout=PATIENCE)
    trees.remove(folder)
