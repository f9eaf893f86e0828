"""Trials: every one with its evidence, never changed after it was stored, never deleted."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bisect_env.errors import InfrastructureError
from bisect_env.store.codec import decode, encode
from bisect_env.store.connection import Connection
from bisect_env.trials.records import Side, TrialRecord


@dataclass(frozen=True)
class StoredTrial:
    """A trial with its place in the plan."""

    record: TrialRecord
    block: int
    """Trials of one block, over all cells, ran interleaved: throughput is compared within a block only."""
    run_id: str


_COLUMNS = "body, block, run_id"


class Trials(Connection):
    """The part of the store that knows of trials."""

    def put_trial(self, record: TrialRecord, cell_key: str, run_id: str, block: int, reproducer_hash: str) -> None:
        """Keep a finished trial.

        Raises:
            InfrastructureError: the disk is full or does not write.
        """
        # Level 1: tracebacks, step times and output shrink to a quarter, and higher levels gain little on them.
        body = zlib.compress(encode(record).encode(), 1)
        models = json.dumps(sorted({device.name for device in record.devices}))
        row = (
            record.id,
            run_id,
            cell_key,
            record.environment,
            reproducer_hash,
            record.side.value,
            record.outcome.value,
            block,
            record.started,
            models,
            body,
        )
        with self._write() as db:
            db.execute(
                "INSERT INTO trials (id, run_id, cell_key, environment, reproducer, side, outcome, block, started,"
                " devices, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                row,
            )

    def trials(self, cell_key: str, environment_address: str, reproducer_hash: str) -> list[StoredTrial]:
        """A cell's trials of all sides and outcomes, by the time they started, without superseded ones.

        Args:
            cell_key: ``Cell.key``.
            environment_address: ``Lock.address``.
            reproducer_hash: content hash of the reproducer.
        """
        rows = self._read(
            f"SELECT {_COLUMNS} FROM trials WHERE cell_key = ? AND environment = ? AND reproducer = ?"  # noqa: S608
            " AND superseded = 0 ORDER BY started, seq",
            (cell_key, environment_address, reproducer_hash),
        )
        return [_stored(row) for row in rows]

    def reproducers(self, cell_key: str, environment_address: str) -> list[str]:
        """Content hashes of the reproducers that a cell's trials in an environment ran, the latest first."""
        query = (
            "SELECT reproducer FROM trials WHERE cell_key = ? AND environment = ? AND superseded = 0"
            " GROUP BY reproducer ORDER BY max(started) DESC"
        )
        return [name for (name,) in self._read(query, (cell_key, environment_address))]

    def latest(self, reproducer_hash: str, side: Side, most: int) -> list[StoredTrial]:
        """Of one side of a reproducer, in any cell, the trials that came last, the latest first, of up to ``most``."""
        rows = self._read(
            f"SELECT {_COLUMNS} FROM trials WHERE reproducer = ? AND side = ? AND superseded = 0"  # noqa: S608
            " ORDER BY seq DESC LIMIT ?",
            (reproducer_hash, side.value, most),
        )
        return [_stored(row) for row in rows]

    def trial(self, trial_id: str) -> StoredTrial | None:
        """The trial with this whole id, superseded or not."""
        rows = self._read(f"SELECT {_COLUMNS} FROM trials WHERE id = ?", (trial_id,))  # noqa: S608
        return _stored(rows[0]) if rows else None

    def trials_of_cell(self, cell_key: str) -> list[StoredTrial]:
        """All that a cell ever had, of any environment and reproducer, superseded ones included; oldest first."""
        query = f"SELECT {_COLUMNS} FROM trials WHERE cell_key = ? ORDER BY started, seq"  # noqa: S608
        return [_stored(row) for row in self._read(query, (cell_key,))]

    def trials_of_run(self, run_id: str) -> list[StoredTrial]:
        """All that a run measured, of any cell, superseded ones included; oldest first."""
        query = f"SELECT {_COLUMNS} FROM trials WHERE run_id = ? ORDER BY started, seq"  # noqa: S608
        return [_stored(row) for row in self._read(query, (run_id,))]

    def retire(self, cell_keys: Iterable[str]) -> int:
        """Count none of the cells' trials from now on (they are kept), and forget why an environment failed.

        Returns:
            How many trials were counted until now.
        """
        retired = 0
        with self._write() as db:
            for key in cell_keys:
                query = "UPDATE trials SET superseded = 1 WHERE cell_key = ? AND superseded = 0"
                retired += db.execute(query, (key,)).rowcount
                db.execute("DELETE FROM unavailable WHERE cell_key = ?", (key,))
        return retired


def _stored(row: Sequence[Any]) -> StoredTrial:
    body, block, run_id = row
    try:
        text = zlib.decompress(body)
    except zlib.error as error:
        raise InfrastructureError(f"the store holds a damaged trial ({error}); --fresh measures anew") from error
    return StoredTrial(decode(TrialRecord, text), block, run_id)
