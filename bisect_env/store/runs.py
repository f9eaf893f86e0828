"""Runs, and the trials that are being run."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from bisect_env.store.codec import decode, encode
from bisect_env.store.connection import Connection
from bisect_env.store.ids import new_run_id


@dataclass(frozen=True)
class StoredRun:
    """One call of a command that ran trials."""

    id: str
    matrix_name: str
    matrix_path: str
    argv: tuple[str, ...]
    seed: int
    versions: tuple[tuple[str, str], ...]
    """Of this program, uv and the like, and facts of the host."""
    started: float
    """Unix time."""
    ended: float | None = None
    """None while it runs, and when it was killed."""
    status: str = ""
    trials: int = 0
    """Threaded trials planned for each cell; 0 where an older version did not say."""
    controls: int = 0
    """Trials planned for each control of each cell."""
    solo: int | None = None
    """Those of the solo control, where they are not ``controls`` as well."""
    stop_early: bool = True
    """Whether a cell could end at an earlier look."""


@dataclass(frozen=True)
class InFlight:
    """A trial that was being run."""

    trial_id: str
    folder: Path
    pid: int
    """Process of the run."""


class Runs(Connection):
    """The part of the store that knows of runs."""

    def start_run(
        self,
        matrix_name: str,
        matrix_path: Path | str,
        argv: Sequence[str],
        seed: int,
        versions: Mapping[str, str] | Sequence[tuple[str, str]],
        trials: int = 0,
        controls: int = 0,
        solo: int | None = None,
        stop_early: bool = True,
        run_id: str | None = None,
    ) -> str:
        """Note that a run begins; gives its id, which is ``run_id`` for a run that another store knows.

        Credentials in URLs of ``argv`` are left out.
        """
        pairs = versions.items() if isinstance(versions, Mapping) else versions
        run = StoredRun(
            id=new_run_id() if run_id is None else run_id,
            matrix_name=matrix_name,
            matrix_path=str(matrix_path),
            argv=tuple(argv),
            seed=seed,
            versions=tuple((k, v) for k, v in pairs),
            started=time.time(),
            trials=trials,
            controls=controls,
            solo=solo,
            stop_early=stop_early,
        )
        with self._write() as db:
            row = (run.id, matrix_name, run.started, encode(run))
            db.execute("INSERT INTO runs (id, matrix, started, body) VALUES (?, ?, ?, ?)", row)
        return run.id

    def end_run(self, run_id: str, status: str) -> None:
        """Note how a run ended, for example ``completed`` or ``interrupted``."""
        with self._write() as db:
            db.execute("UPDATE runs SET ended = ?, status = ? WHERE id = ?", (time.time(), status, run_id))

    def run(self, run_id: str) -> StoredRun | None:
        """The run with this whole id."""
        rows = self._read("SELECT body, ended, status FROM runs WHERE id = ?", (run_id,))
        return _stored(*rows[0]) if rows else None

    def runs(self, matrix_name: str | None = None) -> list[StoredRun]:
        """All runs, or those of one matrix; the latest first."""
        query = "SELECT body, ended, status FROM runs WHERE ? IS NULL OR matrix = ? ORDER BY started DESC"
        return [_stored(*row) for row in self._read(query, (matrix_name, matrix_name))]

    def note_in_flight(self, trial_id: str, folder: Path, pid: int | None = None) -> None:
        """Note that ``pid`` (this process) is about to run a trial in ``folder``, so that a later run can clear up."""
        owner = os.getpid() if pid is None else pid
        row = (trial_id, str(folder), owner, _process_started(owner) or 0.0, *_here())
        with self._write() as db:
            db.execute("INSERT OR REPLACE INTO in_flight VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def clear_in_flight(self, trial_id: str) -> None:
        """The trial ended, or what it left behind was removed."""
        with self._write() as db:
            db.execute("DELETE FROM in_flight WHERE trial_id = ?", (trial_id,))

    def in_flight(self) -> list[InFlight]:
        """Every trial that was noted and not cleared, of this host and of others."""
        rows = self._read("SELECT trial_id, folder, pid FROM in_flight", ())
        return [InFlight(trial_id, Path(folder), pid) for trial_id, folder, pid in rows]

    def stale_in_flight(self) -> list[InFlight]:
        """Trials whose run is dead, for certain: those of another host or container are not judged from here."""
        host, boot, namespace = _here()
        stale = []
        query = "SELECT trial_id, folder, pid, process_started, boot, pid_namespace FROM in_flight WHERE host = ?"
        for trial_id, folder, pid, started, their_boot, their_namespace in self._read(query, (host,)):
            same_namespace = (their_boot, their_namespace) == (boot, namespace)
            # The number may have been given to another process since; the start time tells the two apart.
            dead = their_boot != boot or (same_namespace and _process_started(pid) != started)
            if dead:
                stale.append(InFlight(trial_id, Path(folder), pid))
        return stale


def _stored(body: str, ended: float | None, status: str) -> StoredRun:
    return replace(decode(StoredRun, body), ended=ended, status=status)


def _here() -> tuple[str, str, int]:
    """Host, boot and pid namespace: a process number means something only within all three."""
    boot, namespace = "", 0
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    with suppress(OSError):
        namespace = Path("/proc/self/ns/pid").stat().st_ino
    return socket.gethostname(), boot, namespace


def _process_started(pid: int) -> float | None:
    """Start of a process in clock ticks since the boot, which setting the clock does not move; None when it is dead."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The name in parentheses may hold spaces and parentheses; proc(5): state is the 3rd field, the start the 22nd.
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in ("Z", "X") else float(fields[19])
