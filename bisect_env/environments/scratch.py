"""Scratch folders that outlive nobody: what a killed process left, the next one removes.

The system holds a lock as long as its holder lives, across containers that share ``/tmp`` too, where a process id says
nothing.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "bisect-env-scratch-"
LOCK = ".in-use"
NEWBORN = 60.0
"""Seconds within which a folder that is just being made may not have its lock yet."""


@contextmanager
def scratch(parent: Path | None = None) -> Iterator[Path]:
    """An empty folder (but for the lock) in ``parent`` or the system's temporary folder, removed at the end."""
    parent = Path(tempfile.gettempdir()) if parent is None else parent
    _sweep(parent)
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=parent) as name, (Path(name) / LOCK).open("w") as lock:
        # Where the disk knows no locks, no other process gets one either, and nothing is swept.
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield Path(name)


def _sweep(parent: Path) -> None:
    for folder in parent.glob(f"{PREFIX}*"):
        # Somebody else's, gone meanwhile, or in use: none of it is a trouble of this process.
        with suppress(OSError):
            found = folder.lstat()
            if found.st_uid != os.getuid() or time.time() - found.st_mtime < NEWBORN:
                continue
            with (folder / LOCK).open("r+") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder)
