"""A store that is only read: every way in which a file can have been left, and nothing is made beside it."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from bisect_env.errors import BadInput, InfrastructureError
from bisect_env.store.database import Store
from tests.store.samples import cell, lock, trial

CELL = cell()


def fill(store: Store, name: str = "t1") -> None:
    run_id = store.start_run("m", "m.yaml", [], 0, {})
    store.put_cells([CELL], "m")
    store.put_lock(CELL.request.key, lock(), 0.1)
    store.put_trial(trial(name), CELL.key, run_id, 0, "hash")


def names(path: Path) -> list[str]:
    with Store(path, read_only=True) as store:
        return [stored.record.id for stored in store.trials_of_cell(CELL.key)]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def carried(source: Path, to: Path, *endings: str) -> Path:
    """A copy of a store in a folder of its own, with what lay beside it."""
    to.mkdir()
    for ending in ("", *endings):
        shutil.copy(f"{source}{ending}", to / f"{source.name}{ending}")
    return to / source.name


def test_a_closed_one(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    with Store(path) as store:
        fill(store)
    path.chmod(0o444)
    before = contents(tmp_path)
    assert list(before) == ["store.sqlite"] and names(path) == ["t1"] and contents(tmp_path) == before


@pytest.mark.parametrize("endings", [("-wal",), ("-wal", "-shm")], ids=" ".join)
def test_of_a_killed_run(tmp_path: Path, endings: tuple[str, ...]) -> None:
    with Store(tmp_path / "store.sqlite") as store:
        fill(store)  # What a kill leaves: the trial is in the -wal alone.
        path = carried(tmp_path / "store.sqlite", tmp_path / "home", *endings)
    main = (tmp_path / "home" / "store.sqlite-wal").read_bytes()
    assert names(path) == ["t1"]
    assert (path.parent / "store.sqlite-wal").read_bytes() == main
    assert sorted(contents(path.parent)) == sorted(["store.sqlite", *(f"store.sqlite{ending}" for ending in endings)])


def test_of_a_run_that_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    with Store(path) as store:
        fill(store)
        with Store(path, read_only=True) as seen:
            store.put_trial(trial("t2"), CELL.key, store.runs()[0].id, 1, "hash")
            assert [stored.record.id for stored in seen.trials_of_cell(CELL.key)] == ["t1"], "one moment"
        assert names(path) == ["t1", "t2"]


def test_without_wal(tmp_path: Path) -> None:
    """As on a filesystem that hosts share."""
    path = tmp_path / "store.sqlite"
    with Store(path) as store:
        fill(store)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode=delete")
    before = contents(tmp_path)
    assert names(path) == ["t1"] and contents(tmp_path) == before


def test_an_older_version_is_migrated_in_memory_alone(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    path.touch()  # Version 0: no tables yet.
    assert names(path) == [] and path.read_bytes() == b""


def test_from_several_threads(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    with Store(path) as store:
        fill(store)
    found: list[int] = []
    with Store(path, read_only=True) as seen:
        threads = [threading.Thread(target=lambda: found.append(len(seen.trials_of_cell(CELL.key)))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [1] * 4


def test_it_takes_nothing_in(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    with Store(path) as store:
        fill(store)
    with Store(path, read_only=True) as seen, pytest.raises(InfrastructureError, match=r"read only|cannot be read"):
        fill(seen, "t2")
    assert names(path) == ["t1"]


def test_what_is_none(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.sqlite")) as db:
        db.execute("CREATE TABLE x (y)")
    with pytest.raises(BadInput, match="another program"):
        Store(tmp_path / "other.sqlite", read_only=True)
    (tmp_path / "text").write_text("not a database, and long enough to be read as one" * 20)
    with pytest.raises(InfrastructureError, match="damaged"):
        Store(tmp_path / "text", read_only=True)
    with pytest.raises(FileNotFoundError):
        Store(tmp_path / "missing", read_only=True)
    assert not (tmp_path / "missing").exists()
