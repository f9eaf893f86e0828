"""Trials, runs, and what is in flight."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bisect_env.errors import InfrastructureError
from bisect_env.store.database import Store
from bisect_env.store.ids import new_run_id, new_trial_id
from bisect_env.trials.records import Outcome, Side
from tests.store.samples import A2, H200, cell, trial

KEY = cell().key


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "store.sqlite") as opened:
        yield opened


@pytest.fixture
def run_id(store: Store) -> str:
    return store.start_run("matrix", Path("m.yaml"), ["matrix"], 3, {"uv": "0.9"})


def names(store: Store) -> list[str]:
    return [stored.record.id for stored in store.trials(KEY, "aaaa1111", "hash")]


def test_trials_come_back_whole_and_in_the_order_they_started(store: Store, run_id: str) -> None:
    first = trial("t1", side=Side.SOLO, outcome=Outcome.FAILED, started=5.0, output="x" * 5000)
    store.put_trial(trial("t2", started=9.0), KEY, run_id, 4, "hash")
    store.put_trial(first, KEY, run_id, 3, "hash")
    found = store.trials(KEY, "aaaa1111", "hash")
    assert [(stored.record.id, stored.block, stored.run_id) for stored in found] == [
        ("t1", 3, run_id),
        ("t2", 4, run_id),
    ]
    assert found[0].record == first
    assert store.trial("t1") == found[0]
    assert store.trial("t") is None


def test_the_latest_of_a_reproducer_wherever_they_ran(store: Store, run_id: str) -> None:
    for number in range(5):
        store.put_trial(trial(f"t{number}", address=f"{number}" * 8), f"cell {number}", run_id, 0, "hash")
    store.put_trial(trial("alone", side=Side.SERIAL), KEY, run_id, 0, "hash")
    store.put_trial(trial("other"), KEY, run_id, 0, "another version of it")
    assert [stored.record.id for stored in store.latest("hash", Side.THREADS, 3)] == ["t4", "t3", "t2"]
    store.retire(["cell 4"])
    assert [stored.record.id for stored in store.latest("hash", Side.THREADS, 2)] == ["t3", "t2"]
    assert store.latest("nothing", Side.THREADS, 3) == []


def test_cell_environment_and_reproducer_are_never_pooled(store: Store, run_id: str) -> None:
    store.put_trial(trial("t1"), KEY, run_id, 0, "hash")
    store.put_trial(trial("t2"), KEY, run_id, 0, "another version of it")
    store.put_trial(trial("t3", address="bbbb"), KEY, run_id, 0, "hash")
    store.put_trial(trial("t4"), "another cell", run_id, 0, "hash")
    assert names(store) == ["t1"]
    assert {stored.record.id for stored in store.trials_of_cell(KEY)} == {"t1", "t2", "t3"}


def test_what_they_ran_on_comes_back_with_them(store: Store, run_id: str) -> None:
    """Whoever counts them tells them apart by it."""
    every = [(), (H200,), (A2,), (H200, A2)]
    for number, devices in enumerate(every):
        store.put_trial(trial(f"t{number}", devices=devices), KEY, run_id, 0, "hash")
    assert [stored.record.devices for stored in store.trials(KEY, "aaaa1111", "hash")] == every


def test_trials_of_a_run_are_those_of_all_its_cells(store: Store, run_id: str) -> None:
    other = store.start_run("m", "m.yaml", [], 0, {})
    store.put_trial(trial("t1", started=2.0), KEY, run_id, 0, "hash")
    store.put_trial(trial("t2", started=1.0), "another cell", run_id, 0, "another reproducer")
    store.put_trial(trial("t3"), KEY, other, 0, "hash")
    store.retire([KEY])
    assert [stored.record.id for stored in store.trials_of_run(run_id)] == ["t2", "t1"]


def test_fresh_retires_and_keeps(store: Store, run_id: str) -> None:
    store.put_trial(trial("t1"), KEY, run_id, 0, "hash")
    store.put_trial(trial("t2"), "other", run_id, 0, "hash")
    assert store.retire([KEY, "unknown"]) == 1
    assert store.retire([KEY]) == 0
    store.put_trial(trial("t3"), KEY, run_id, 0, "hash")
    assert names(store) == ["t3"]
    assert store.trial("t1") is not None
    assert [stored.record.id for stored in store.trials_of_cell(KEY)] == ["t1", "t3"]
    assert [stored.record.id for stored in store.trials("other", "aaaa1111", "hash")] == ["t2"]


def test_a_trial_needs_its_run_and_is_counted_once(store: Store, run_id: str) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        store.put_trial(trial("t1"), KEY, "no such run", 0, "hash")
    store.put_trial(trial("t1"), KEY, run_id, 0, "hash")
    with pytest.raises(sqlite3.IntegrityError):
        store.put_trial(trial("t1"), KEY, run_id, 0, "hash")
    assert names(store) == ["t1"]


def test_runs_are_kept_with_how_they_ended(store: Store) -> None:
    first = store.start_run("a", Path("/m/a.yaml"), ["matrix", "a.yaml"], 2**70, [("uv", "0.9")])
    second = store.start_run("b", "b.yaml", [], 0, {})
    store.end_run(first, "completed")
    found = store.run(first)
    assert found is not None
    assert (found.matrix_path, found.argv, found.seed, found.versions) == (
        "/m/a.yaml",
        ("matrix", "a.yaml"),
        2**70,
        (("uv", "0.9"),),
    )
    assert found.status == "completed"
    assert found.ended is not None
    assert found.ended >= found.started > 0
    assert [run.id for run in store.runs()] == [second, first]
    assert [(run.id, run.ended, run.status) for run in store.runs("b")] == [(second, None, "")]
    assert store.run("nothing") is None


def test_only_trials_of_dead_processes_are_stale(store: Store, tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    store.note_in_flight("mine", tmp_path / "mine")
    store.note_in_flight("theirs", tmp_path / "theirs", child.pid)
    assert store.stale_in_flight() == []
    child.kill()
    until = time.monotonic() + 10
    while not (stale := store.stale_in_flight()):  # A zombie is dead too.
        assert time.monotonic() < until
    child.wait()
    assert [(left.trial_id, left.folder, left.pid) for left in stale] == [("theirs", tmp_path / "theirs", child.pid)]
    store.clear_in_flight("theirs")
    assert store.stale_in_flight() == []
    store.clear_in_flight("mine")


def test_a_process_number_used_again_is_another_process(store: Store, tmp_path: Path) -> None:
    store.note_in_flight("old", tmp_path)
    with store._write() as db:
        db.execute("UPDATE in_flight SET process_started = process_started - 1")
    assert [left.trial_id for left in store.stale_in_flight()] == ["old"]


@pytest.mark.parametrize(
    ("column", "value", "stale"), [("boot", "another", True), ("pid_namespace", 1, False), ("host", "another", False)]
)
def test_what_cannot_be_judged_from_here_is_left_alone(
    store: Store, tmp_path: Path, column: str, value: object, stale: bool
) -> None:
    store.note_in_flight("x", tmp_path, 2**22 + os.getpid())
    assert store.stale_in_flight()
    with store._write() as db:
        db.execute(f"UPDATE in_flight SET {column} = ?", (value,))
    assert bool(store.stale_in_flight()) is stale


def test_ids_are_short_readable_and_differ() -> None:
    trials = {new_trial_id() for _ in range(2000)}
    assert len(trials) == 2000
    assert all(len(name) == 10 and name[0] == "t" and name.isalnum() and name.islower() for name in trials)
    assert len(new_run_id()) == 7
    assert not any(set(name[1:]) & set("01ilo") for name in trials)


def test_a_damaged_trial_says_so(store: Store, run_id: str) -> None:
    store.put_trial(trial("t1"), KEY, run_id, 0, "hash")
    with store._write() as db:
        db.execute("UPDATE trials SET body = x'0102'")
    with pytest.raises(InfrastructureError, match="damaged trial"):
        store.trial("t1")
