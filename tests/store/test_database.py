"""The file itself: several writers, kills, versions, damage, and disks that do not do as they should."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from bisect_env.errors import BadInput, InfrastructureError
from bisect_env.store import connection
from bisect_env.store.connection import filesystem_of
from bisect_env.store.database import Store
from bisect_env.store.schema import MIGRATIONS, VERSION
from tests.store.samples import cell, trial

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload([__name__])


def _fill(path: Path, name: str, count: int) -> None:
    with Store(path) as store:
        run_id = store.start_run(name, "m.yaml", [], 0, {})
        for number in range(count):
            store.put_trial(trial(f"{name}-{number}"), "key", run_id, number, "hash")
            store.put_cells([cell(f"{name}-{number}")], name)


def test_many_processes_open_and_write_at_once(tmp_path: Path) -> None:
    """From the very first moment, so that making the tables is raced for as well."""
    path = tmp_path / "store.sqlite"
    workers = [PROCESSES.Process(target=_fill, args=(path, f"p{number}", 25)) for number in range(5)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0] * 5
    with Store(path) as store:
        assert len(store.trials("key", "aaaa1111", "hash")) == 125
        assert len(store.runs()) == 5
        assert store._read("PRAGMA integrity_check") == [("ok",)]
        assert store._read("PRAGMA journal_mode") == [("wal",)]


def test_threads_share_a_store(tmp_path: Path) -> None:
    with Store(tmp_path / "store.sqlite") as store:
        run_id = store.start_run("m", "m", [], 0, {})
        errors: list[BaseException] = []

        def work(name: int) -> None:
            try:
                for number in range(20):
                    store.put_trial(trial(f"{name}-{number}"), "key", run_id, 0, "hash")
                    store.trials("key", "aaaa1111", "hash")
            except BaseException as error:  # noqa: BLE001 - handed to the main thread
                errors.append(error)

        threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not errors
        assert len(store.trials("key", "aaaa1111", "hash")) == 80


def _write_until_killed(path: Path, said: Connection, name: str) -> None:
    with Store(path) as store:
        run_id = store.start_run(name, "m", [], 0, {})
        for number in range(10**6):
            store.put_trial(trial(f"{name}-{number}", output="x" * 4000), "key", run_id, number, "hash")
            said.send_bytes(f"{name}-{number}".encode())


def test_kill_9_loses_nothing_that_was_stored(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    promised: set[str] = set()
    for kill in range(12):
        heard, said = PROCESSES.Pipe(duplex=False)
        worker = PROCESSES.Process(target=_write_until_killed, args=(path, said, f"k{kill}"))
        worker.start()
        said.close()
        promised.add(heard.recv_bytes().decode())
        time.sleep(0.003 * kill)
        worker.kill()
        worker.join()
        with contextlib.suppress(EOFError, ConnectionResetError):
            while True:
                promised.add(heard.recv_bytes().decode())
        heard.close()
        with Store(path) as store:
            kept = {stored.record.id for stored in store.trials("key", "aaaa1111", "hash")}
            assert promised <= kept
            # At most the one in flight beyond what was said to be stored, in each of the runs so far.
            assert len(kept - promised) <= kill + 1
            assert store._read("PRAGMA integrity_check") == [("ok",)]
    assert len(promised) > 12


def test_opening_again_finds_the_same_version(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    for _ in range(2):
        with Store(path) as store:
            assert store._read("PRAGMA user_version") == [(VERSION,)]
            assert store._read("PRAGMA synchronous") == [(2,)]
            assert store._read("PRAGMA foreign_keys") == [(1,)]


def test_an_older_store_is_brought_up_to_date_and_keeps_its_content(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    _fill(path, "old", 2)
    newer = (*MIGRATIONS, "ALTER TABLE trials ADD COLUMN extra TEXT NOT NULL DEFAULT '';\nCREATE TABLE more (x);\n")
    with connection.Connection(path, newer) as opened:
        assert opened._read("SELECT extra FROM trials") == [("",), ("",)]
    with connection.Connection(path, newer) as opened:
        assert opened._read("PRAGMA user_version") == [(VERSION + 1,)]


def test_a_migration_that_fails_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    _fill(path, "old", 1)
    with pytest.raises(sqlite3.OperationalError):
        connection.Connection(path, (*MIGRATIONS, "CREATE TABLE more (x);\nCREATE TABLE runs (y);\n"))
    with Store(path) as store:
        assert store._read("SELECT name FROM sqlite_master WHERE name = 'more'") == []
        assert len(store.trials("key", "aaaa1111", "hash")) == 1


def test_a_newer_store_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    _fill(path, "new", 1)
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version=99")
    before = path.read_bytes()
    with pytest.raises(BadInput, match=f"version 99, while this bisect-env knows versions up to {VERSION}"):
        Store(path)
    assert path.read_bytes() == before


def test_another_programs_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE mine (x)")
        db.commit()
    before = path.read_bytes()
    with pytest.raises(BadInput, match="another program"):
        Store(path)
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    path.write_bytes(b"precious results, not a database\n" * 100)
    before = path.read_bytes()
    with pytest.raises(InfrastructureError, match=r"damaged.*Nothing was deleted.*move it aside.*\.recover"):
        Store(path)
    assert path.read_bytes() == before


def test_damage_in_the_middle_is_found_when_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    _fill(path, "x", 60)
    data = bytearray(path.read_bytes())
    for place in range(4096 * 2, len(data), 7):
        data[place] = 0xA5
    path.write_bytes(data)
    with pytest.raises(InfrastructureError, match="Nothing was deleted"), Store(path) as store:
        store.trials("key", "aaaa1111", "hash")
    assert path.read_bytes() == bytes(data)


def test_a_folder_in_the_place_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="cannot be opened"):
        Store(tmp_path)


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InfrastructureError, match="folder for the store cannot be made"):
        Store(tmp_path / "file" / "store.sqlite")


@contextlib.contextmanager
def mounted(place: Path, options: str) -> Iterator[Path]:
    """A small disk of its own; skips where this user may not mount one."""
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"a tmpfs cannot be mounted here: {done.stderr.strip() or done.returncode}")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_is_said_and_nothing_stored_is_lost(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "size=1m") as disk:
        path = disk / "store.sqlite"
        kept: list[str] = []
        store = Store(path)
        run_id = store.start_run("m", "m", [], 0, {})
        with pytest.raises(InfrastructureError, match=r"disk is full|Is it full"):
            for number in range(2000):
                output = os.urandom(2000).hex()
                store.put_trial(trial(f"t{number}", output=output, started=number), "key", run_id, number, "hash")
                kept.append(f"t{number}")
        assert len(kept) > 20
        assert [stored.record.id for stored in store.trials("key", "aaaa1111", "hash")] == kept
        store.close()
        with Store(path) as again:
            assert [stored.record.id for stored in again.trials("key", "aaaa1111", "hash")] == kept
            assert again._read("PRAGMA integrity_check") == [("ok",)]


def test_a_disk_full_from_the_start(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "size=64k") as disk:
        (disk / "filler").write_bytes(b"x" * (48 << 10))
        with pytest.raises(InfrastructureError, match=r"full"):
            Store(disk / "store.sqlite")


def test_a_read_only_disk(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "size=1m") as disk:
        _fill(disk / "store.sqlite", "x", 1)
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        with pytest.raises(InfrastructureError, match=r"cannot be opened for writing.*another project folder"):
            _fill(disk / "store.sqlite", "y", 1)
        with pytest.raises(InfrastructureError, match="cannot be made"):
            Store(disk / "sub" / "store.sqlite")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere; test_a_read_only_disk serves for root")
def test_a_read_only_folder(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(InfrastructureError, match="cannot be opened"):
            Store(tmp_path / "store.sqlite")
    finally:
        tmp_path.chmod(0o700)


MOUNTS = r"""
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /home rw,relatime shared:2 - nfs4 server:/home rw,vers=4.2
31 30 8:2 / /home/local\040disk rw - xfs /dev/sdb1 rw
32 22 0:41 / /scratch rw master:3 shared:4 - lustre mds@tcp:/scratch rw
33 32 0:42 / /scratch rw - tmpfs tmpfs rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/etc/x", "ext4"),
        ("/home/me/project/store.sqlite", "nfs4"),
        ("/homely", "ext4"),
        ("/home/local disk/p", "xfs"),
        ("/scratch/p", "tmpfs"),
    ],
)
def test_the_filesystem_of_a_path(path: str, kind: str) -> None:
    assert filesystem_of(Path(path), MOUNTS) == kind


def test_no_wal_on_a_network_filesystem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "store.sqlite"
    _fill(path, "local", 1)
    monkeypatch.setattr(connection, "filesystem_of", lambda path, mounts: "nfs4")
    _fill(path, "network", 1)
    with Store(path) as store:
        assert store._read("PRAGMA journal_mode") == [("delete",)]
        assert len(store.trials("key", "aaaa1111", "hash")) == 2
    assert {entry.name for entry in tmp_path.iterdir()} == {"store.sqlite"}


def test_a_locked_store_is_waited_for_and_then_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "store.sqlite"
    Store(path).close()
    monkeypatch.setattr(connection, "BUSY_SECONDS", 0.2)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other, Store(path) as store:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(InfrastructureError, match="another process has kept the store locked"):
            store.start_run("m", "m", [], 0, {})
        other.execute("ROLLBACK")
        assert store.start_run("m", "m", [], 0, {})


def test_a_cell_is_read_quickly_out_of_a_large_store(tmp_path: Path) -> None:
    """One cell's 50 trials of 4 kB output each, among 2,000; the plan uses the index, whatever the machine's speed."""
    path = tmp_path / "store.sqlite"
    with Store(path) as store:
        run_id = store.start_run("m", "m", [], 0, {})
        store._db.execute("PRAGMA synchronous=OFF")
        for number in range(2000):
            record = trial(f"t{number}", output="line of output\n" * 280, started=number)
            store.put_trial(record, f"key{number % 40}", run_id, number, "hash")
        (plan,) = store._read(
            "EXPLAIN QUERY PLAN SELECT body FROM trials WHERE cell_key = ? AND environment = ? AND reproducer = ?"
            " AND superseded = 0 ORDER BY started, seq",
            ("key7", "aaaa1111", "hash"),
        )
        assert "trials_of_a_cell" in plan[-1]
        store.trials("key1", "aaaa1111", "hash")
        began = time.perf_counter()
        assert len(store.trials("key7", "aaaa1111", "hash")) == 50
        assert time.perf_counter() - began < 0.2
    assert path.stat().st_size < 8 << 20


def test_importing_the_store_brings_in_nothing_slow() -> None:
    program = "import sys, bisect_env.store.database; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert not {"scipy", "rich", "tabulate", "pynvml", "yaml", "asyncio"} & set(done.stdout.split())
