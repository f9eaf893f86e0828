"""The tables, as a list of migrations: entry n leads from version n to n + 1. Never change one that was released.

Every statement ends with its line: they are run one by one, in a single transaction.
"""

from __future__ import annotations

APPLICATION_ID = 0x62736E76
"""SQLite's mark of the file's owner: ``bsnv``."""

_FIRST = """
CREATE TABLE runs (
    id TEXT PRIMARY KEY,
    matrix TEXT NOT NULL,
    started REAL NOT NULL,
    ended REAL,
    status TEXT NOT NULL DEFAULT '',
    body TEXT NOT NULL
);

CREATE TABLE cells (
    matrix TEXT NOT NULL,
    id TEXT NOT NULL,
    key TEXT NOT NULL,
    stored REAL NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (matrix, id, key)
);
CREATE INDEX cells_by_id ON cells (id);
CREATE INDEX cells_by_key ON cells (key);

-- reason is NULL for a lock, else why there is none.
CREATE TABLE locks (
    request_key TEXT PRIMARY KEY,
    address TEXT,
    reason TEXT,
    seconds REAL NOT NULL,
    stored REAL NOT NULL,
    body TEXT NOT NULL
);

CREATE TABLE environments (
    address TEXT PRIMARY KEY,
    seconds REAL NOT NULL,
    stored REAL NOT NULL,
    body TEXT NOT NULL
);

-- address is '' when there is no lock.
CREATE TABLE unavailable (
    cell_key TEXT NOT NULL,
    address TEXT NOT NULL,
    reason TEXT NOT NULL,
    stored REAL NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (cell_key, address)
);

-- devices is a JSON list of the models it ran on; body is JSON, compressed by zlib.
CREATE TABLE trials (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    run_id TEXT NOT NULL REFERENCES runs (id),
    cell_key TEXT NOT NULL,
    environment TEXT NOT NULL,
    reproducer TEXT NOT NULL,
    side TEXT NOT NULL,
    outcome TEXT NOT NULL,
    block INTEGER NOT NULL,
    started REAL NOT NULL,
    devices TEXT NOT NULL,
    superseded INTEGER NOT NULL DEFAULT 0,
    body BLOB NOT NULL
);
CREATE INDEX trials_of_a_cell ON trials (cell_key, environment, reproducer, superseded, started);
CREATE INDEX trials_of_a_run ON trials (run_id);

CREATE TABLE in_flight (
    trial_id TEXT PRIMARY KEY,
    folder TEXT NOT NULL,
    pid INTEGER NOT NULL,
    process_started REAL NOT NULL,
    host TEXT NOT NULL,
    boot TEXT NOT NULL,
    pid_namespace INTEGER NOT NULL
);
"""

MIGRATIONS: tuple[str, ...] = (_FIRST,)
VERSION = len(MIGRATIONS)
