"""One builder an address, and what dead builders left.

On one host by a lock of the system, which is free again as soon as its holder dies. Where hosts share the folder by a
claim (:mod:`bisect_env.environments.claims`): such a lock may not reach from one of them to another, or never answer.
Whoever uses the lock respects claims too, so that a host on which a command works never disturbs what jobs build.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
from filelock import FileLock, Timeout

from bisect_env.environments import trees
from bisect_env.environments.claims import SUFFIX, Claims, Watch, taken
from bisect_env.environments.places import LOCKS, UNFINISHED, environments_folder
from bisect_env.errors import InfrastructureError

POLL = 0.1
"""Seconds between two looks at a lock that somebody else holds, and at ``stop``."""

PATIENCE = 5.0
"""Seconds that a killed process may take to end; longer is a disk that does not answer."""


@contextmanager
def held(
    root: Path,
    address: str,
    timeout: float = 0.0,
    stop: threading.Event | None = None,
    claims: Claims | None = None,
) -> Iterator[bool]:
    """Holds an address against other threads and processes; yields False when that was not possible in time.

    Args:
        timeout: seconds; 0 asks once.
        stop: ends the waiting.
        claims: how it is held among hosts that share the folder; None: on this host alone.

    Raises:
        InfrastructureError: it cannot be claimed, or the claim was lost while this process did not run.
    """
    folder = environments_folder(root) / LOCKS
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if claims is None:
            raise
        raise InfrastructureError(f"{folder}: no address can be claimed here: {error.strerror}") from error
    if claims is None:
        with _locked(folder, address, timeout, stop) as mine:
            yield mine
        return
    claim = None
    try:
        with taken(folder, address, claims, timeout, stop) as claim:
            yield claim is not None
    except Exception as error:
        if claim is not None and claim.lost:
            raise _lost(address, claims) from error
        raise
    if claim is not None and claim.lost:
        raise _lost(address, claims)


@contextmanager
def _locked(folder: Path, address: str, timeout: float, stop: threading.Event | None) -> Iterator[bool]:
    """By a lock. Its file stays: to remove it would let two holders in. It is bound to the open file, so that a killed
    holder lets go of it at once, whatever it started.
    """
    lock = FileLock(folder / f"{address}.lock", thread_local=False)
    watch = Watch(Claims())
    deadline = time.monotonic() + timeout
    while True:
        with suppress(Timeout):
            lock.acquire(timeout=0, poll_interval=POLL)
            if watch.free(folder / f"{address}{SUFFIX}"):
                break
            lock.release()
        if time.monotonic() >= deadline or (stop is not None and stop.is_set()):
            yield False
            return
        time.sleep(POLL)
    try:
        yield True
    finally:
        lock.release()


def _lost(address: str, claims: Claims) -> InfrastructureError:
    return InfrastructureError(
        f"environment {address}: this process did not run for {claims.staleness:.0f} s or more while it built it, and "
        "another one took over: what that one builds can be used, by trying again"
    )


def sweep(root: Path, own: str | None = None, claims: Claims | None = None) -> None:
    """Removes what builders that are dead left unfinished. ``own`` is an address that the caller holds.

    A folder is left over when its address can be held: no process numbers are compared, which mean nothing on a
    folder shared by several hosts. With ``claims`` only those of ``own`` are looked at: a claim does not tell whether a
    host builds another address under a lock.
    """
    for folder in environments_folder(root).glob(f"{UNFINISHED}*"):
        address = folder.name.removeprefix(UNFINISHED).split("-")[0]
        if address == own:
            _remove(folder)
            continue
        if claims is not None:
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
