"""Locks, environments, and why there is none."""

from __future__ import annotations

import time

from bisect_env.environments.records import Environment, Lock, Reason, Unavailable
from bisect_env.store.codec import decode, encode
from bisect_env.store.connection import Connection

TRANSIENT = frozenset({Reason.INDEX_UNREACHABLE, Reason.CREDENTIALS, Reason.OFFLINE, Reason.INTERPRETER, Reason.BASE})
"""Reasons that the user mends outside the matrix file: the network, a token, ``--offline``, an interpreter to install,
the base environment. What is stored about them may be over."""


class Environments(Connection):
    """The part of the store that knows of environments."""

    def put_lock(self, request_key: str, lock: Lock | Unavailable, seconds: float) -> None:
        """Keep what a request resolved to, in place of what was kept before, and the seconds that it took."""
        address = lock.address if isinstance(lock, Lock) else None
        reason = None if isinstance(lock, Lock) else lock.reason.value
        row = (request_key, address, reason, seconds, time.time(), encode(lock))
        with self._write() as db:
            db.execute("INSERT OR REPLACE INTO locks VALUES (?, ?, ?, ?, ?, ?)", row)

    def lock(self, request_key: str, retry_transient: bool = False) -> Lock | Unavailable | None:
        """What the request resolved to; None when it has to be resolved.

        Args:
            request_key: ``EnvironmentRequest.key``.
            retry_transient: treat a failure that may be over (``TRANSIENT``) as not known.
        """
        for reason, body in self._read("SELECT reason, body FROM locks WHERE request_key = ?", (request_key,)):
            found = _lock_or_reason(reason, body)
            return found if isinstance(found, Lock) else _unless_transient(found, retry_transient)
        return None

    def locks(self) -> list[Lock | Unavailable]:
        """What every request resolved to."""
        return [_lock_or_reason(reason, body) for reason, body in self._read("SELECT reason, body FROM locks", ())]

    def forget_lock(self, request_key: str) -> None:
        """Have the request resolved anew the next time."""
        with self._write() as db:
            db.execute("DELETE FROM locks WHERE request_key = ?", (request_key,))

    def put_environment(self, environment: Environment, seconds: float) -> None:
        """Keep a built environment, and the seconds that it took."""
        row = (environment.lock.address, seconds, time.time(), encode(environment))
        with self._write() as db:
            db.execute("INSERT OR REPLACE INTO environments VALUES (?, ?, ?, ?)", row)

    def environment(self, address: str) -> Environment | None:
        """The environment as it was when it was built; whether it is still there is for the disk to say."""
        rows = self._read("SELECT body FROM environments WHERE address = ?", (address,))
        return decode(Environment, rows[0][0]) if rows else None

    def build_seconds(self, most: int) -> list[float]:
        """How long the environments took that were built last, the latest first, of up to ``most``."""
        query = "SELECT seconds FROM environments ORDER BY stored DESC LIMIT ?"
        return [float(seconds) for (seconds,) in self._read(query, (most,))]

    def put_unavailable(self, cell_key: str, address: str | None, reason: Unavailable) -> None:
        """Keep why a cell has no environment that works: its build or its import failed."""
        row = (cell_key, address or "", reason.reason.value, time.time(), encode(reason))
        with self._write() as db:
            db.execute("INSERT OR REPLACE INTO unavailable VALUES (?, ?, ?, ?, ?)", row)

    def unavailable(
        self, cell_key: str, address: str | None = None, retry_transient: bool = False
    ) -> Unavailable | None:
        """Why the cell has no environment at this address, as :meth:`put_unavailable` kept it; None when nothing is
        known, after :meth:`Trials.retire`, and, if asked for, when it may be over (``TRANSIENT``)."""
        query = "SELECT body FROM unavailable WHERE cell_key = ? AND address = ?"
        rows = self._read(query, (cell_key, address or ""))
        return _unless_transient(decode(Unavailable, rows[0][0]), retry_transient) if rows else None


def _lock_or_reason(reason: str | None, body: str) -> Lock | Unavailable:
    return decode(Lock, body) if reason is None else decode(Unavailable, body)


def _unless_transient(found: Unavailable, retry_transient: bool) -> Unavailable | None:
    return None if retry_transient and found.reason in TRANSIENT else found
