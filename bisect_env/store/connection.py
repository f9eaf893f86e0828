"""The store's file: opened, brought to this version's tables, read and written in transactions.

A commit is on the disk before it returns (``synchronous=FULL``): a GPU host that goes down hard loses the trial in
flight and nothing else, and a few milliseconds for each trial of seconds are no price for that.
"""

from __future__ import annotations

import re
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bisect_env.errors import BadInput, BisectEnvError, InfrastructureError
from bisect_env.store.schema import APPLICATION_ID, MIGRATIONS
from bisect_env.store.snapshot import snapshot

BUSY_SECONDS = 30.0
"""How long a statement waits for another process's transaction."""

_NETWORK = re.compile(
    r"nfs\d?|cifs|smb\d?|smbfs|lustre|gpfs|beegfs\w*|ceph|fuse\..*|9p|afs|glusterfs|pvfs2|orangefs|wekafs"
)
"""Filesystems that several hosts may share, by the name that the kernel mounts them under."""


class Connection:
    """One SQLite connection, usable from every thread of the process that opened it.

    Args:
        path: the file; made, with its folders, when it is missing.
        migrations: tables of this version.
        read_only: work on a snapshot of the file, which has to be there: neither it nor its folder is touched.

    Raises:
        BadInput: the file belongs to a newer version, or to another program.
        InfrastructureError: it is damaged, or cannot be opened or written.
    """

    def __init__(self, path: Path, migrations: Sequence[str] = MIGRATIONS, read_only: bool = False) -> None:
        self.path = path
        self._read_only = read_only
        self._lock = threading.RLock()
        with self._explained():
            self._db = snapshot(path, BUSY_SECONDS) if read_only else self._connected()
            try:
                self._prepare(migrations)
            except BaseException:
                self._db.close()
                raise

    def _connected(self) -> sqlite3.Connection:
        path = self.path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InfrastructureError(
                f"{path.parent}: the folder for the store cannot be made: {error.strerror}. "
                "Run in a folder that you may write to"
            ) from error
        return sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)

    def close(self) -> None:
        """Close the file; what was committed stays."""
        with self._lock:
            self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _prepare(self, migrations: Sequence[str]) -> None:
        version = self._check(migrations)
        self._db.execute("PRAGMA foreign_keys=ON")
        self._db.execute("PRAGMA synchronous=FULL")
        if not self._read_only:
            self._choose_journal()
        if version < len(migrations):
            self._migrate(migrations)
        if self._read_only:
            self._db.execute("PRAGMA query_only=ON")

    def _check(self, migrations: Sequence[str]) -> int:
        """The file's version, 0 when it is new."""
        # In one transaction: between two of these, another process may make its tables.
        self._db.execute("BEGIN")
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        (owner,) = self._db.execute("PRAGMA application_id").fetchone()
        (tables,) = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        self._db.execute("COMMIT")
        if owner != APPLICATION_ID and (owner or version or tables):
            found = "an SQLite database of another program"
            raise BadInput(self.path, "", found, "a store of bisect-env, or no file here; it was left as it is")
        if version > len(migrations):
            raise BadInput(
                self.path,
                "",
                f"a store of version {version}, while this bisect-env knows versions up to {len(migrations)}",
                "the newer bisect-env that wrote it, or another project folder; it was left as it is",
            )
        return int(version)

    def _choose_journal(self) -> None:
        """WAL lets readers and a writer work side by side, but needs shared memory, which hosts do not share."""
        wanted = "delete" if _on_network(self.path) else "wal"
        until = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                (mode,) = self._db.execute("PRAGMA journal_mode").fetchone()
                if mode != wanted:
                    self._db.execute(f"PRAGMA journal_mode={wanted}")  # Where WAL is refused, the old mode stays.
                return
            except sqlite3.OperationalError as error:
                # The change needs the file for itself, and does not wait for it by itself.
                if _code(error) not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                    raise
                if time.monotonic() > until:
                    return
                time.sleep(0.02)

    def _migrate(self, migrations: Sequence[str]) -> None:
        with self._write():
            (version,) = self._db.execute("PRAGMA user_version").fetchone()  # Another process may have been quicker.
            for script in migrations[version:]:
                for statement in _statements(script):
                    self._db.execute(statement)
            self._db.execute(f"PRAGMA user_version={len(migrations)}")
            self._db.execute(f"PRAGMA application_id={APPLICATION_ID}")

    @contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        """A transaction: all of it, or nothing when it raises or the process dies."""
        with self._lock, self._explained():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # A full disk has rolled back already.
                    self._db.execute("ROLLBACK")
                raise

    def _read(self, query: str, values: Sequence[object] = ()) -> list[Any]:
        """All rows of a query."""
        with self._lock, self._explained():
            return self._db.execute(query, values).fetchall()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """SQLite's errors in words that say what to do. Mistakes in our own statements pass through as they are."""
        try:
            yield
        except sqlite3.Error as error:
            explained = self._explanation(error)
            if explained is None:
                raise
            raise explained from error

    def _explanation(self, error: sqlite3.Error) -> BisectEnvError | None:
        code, path = _code(error), self.path
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            return InfrastructureError(
                f"{path}: the store is damaged ({error}). Nothing was deleted. To start anew, move it aside "
                f"(mv {path} {path}.damaged, and {path}-wal with it if there is one); what can still be read comes out "
                f'of it with: sqlite3 {path}.damaged ".recover" | sqlite3 {path}'
            )
        if code == sqlite3.SQLITE_FULL:
            return InfrastructureError(f"{path}: the disk is full, what was to be stored is not. Make room, then go on")
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
            if self._read_only:
                return InfrastructureError(f"{path}: the store cannot be read ({error}). Check the rights of the file")
            return InfrastructureError(
                f"{path}: the store cannot be opened for writing ({error}). Check the rights of the file and of its "
                "folder and that the disk is not full, or run in another project folder"
            )
        if code == sqlite3.SQLITE_IOERR:
            return InfrastructureError(f"{path}: the disk does not read or write ({error}). Is it full, or failing?")
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return InfrastructureError(
                f"{path}: another process has kept the store locked for {BUSY_SECONDS:.0f} s; "
                f"see who has it open (fuser {path}) and try again"
            )
        return None


def _code(error: sqlite3.Error) -> int:
    """The primary result code; errors of the module itself have none."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _statements(script: str) -> Iterator[str]:
    """The statements of a script, one by one: ``executescript`` would commit the transaction it runs in."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _on_network(path: Path) -> bool:
    try:
        mounts = Path("/proc/self/mountinfo").read_text(errors="surrogateescape")
    except OSError:
        return False
    return _NETWORK.fullmatch(filesystem_of(path.resolve(), mounts)) is not None


def filesystem_of(path: Path, mounts: str) -> str:
    """Type of the filesystem that holds an absolute path, from the text of ``/proc/self/mountinfo`` (proc(5))."""
    best, found = -1, ""
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split()
        if len(fields) < 5 or not after:
            continue
        point = Path(re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), fields[4]))
        # Of two mounts on one point, the later one is seen.
        if path.is_relative_to(point) and len(point.parts) >= best:
            best, found = len(point.parts), after.split()[0]
    return found
