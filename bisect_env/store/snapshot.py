"""A store as it is at one moment, in memory: read from a file that is never written to, and nothing beside it is made.

For results brought home from another host: the file may be read-only or on read-only media, and its lock files, which
SQLite makes beside a database in WAL mode even to read it, would be left behind.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

WAL = 2
"""The file's write version (sqlite.org/fileformat2.html, byte 18) in WAL mode."""


def snapshot(path: Path, timeout: float) -> sqlite3.Connection:
    """A connection to a copy in memory of the store at ``path``, usable from every thread.

    A run that writes meanwhile is not disturbed, and what it has committed is seen.

    Args:
        path: the file; what lies beside it as ``-wal`` (of a run that lives, or was killed) is read too.
        timeout: seconds to wait for another process's lock.

    Raises:
        sqlite3.Error: it cannot be read.
    """
    with _opened(path, timeout) as source:
        copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        try:
            source.backup(copy)
        except BaseException:
            copy.close()
            raise
    return copy


@contextmanager
def _opened(path: Path, timeout: float) -> Iterator[sqlite3.Connection]:
    wal, shared = (path.with_name(path.name + ending) for ending in ("-wal", "-shm"))
    if wal.exists() and not shared.exists():
        # Carried here without the other one, which SQLite would make again.
        with tempfile.TemporaryDirectory(prefix="bisect-env-") as folder:
            for file in (path, wal):
                shutil.copyfile(file, Path(folder, file.name))
            with closing(sqlite3.connect(Path(folder, path.name), timeout=timeout)) as source:
                yield source
        return
    # In WAL mode, who has the file open has a -wal: without one nobody writes, and no lock is needed.
    mode = "immutable=1" if not wal.exists() and _in_wal_mode(path) else "mode=ro"
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", timeout=timeout, uri=True)) as source:
        yield source


def _in_wal_mode(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(19)[18:] == bytes([WAL])
