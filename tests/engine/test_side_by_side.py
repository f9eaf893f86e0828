"""Several trials at a time: everything once, on cores of its own, told from one thread, and gone when it is ended."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import sqlite3
import threading
import time
import zlib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from bisect_env.engine import measuring, trialing
from bisect_env.engine.places import split
from bisect_env.trials import gpu, leases, machine
from bisect_env.trials.records import Device
from tests.support.engine import measured
from tests.support.nvml import Pretended
from tests.support.racing import World, placed

BODY = "axes: {torch: [2.11.0, 2.14.1], transformers: [5.8.1]}\ntrials: 4\ncontrols: 4\nat_once: 2\n"


@pytest.fixture
def small(world: World) -> World:
    """A racing and a clean cell, two trials at a time."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one CPU core: no two trials at a time")
    world.torch("2.11.0", race=1.0)
    world.torch("2.14.1")
    world.transformers("5.8.1")
    world.matrix(BODY)
    return world


def records(world: World) -> list[dict[str, object]]:
    database = sqlite3.connect(world.store / "store.sqlite")
    try:
        return [json.loads(zlib.decompress(body)) for (body,) in database.execute("SELECT body FROM trials")]
    finally:
        database.close()


def test_everything_once_on_cores_of_its_own(small: World) -> None:
    results, listener = measured(small)
    assert [result.verdict.text for result in results] == ["RACE 4/4", "FULL"]
    trials = small.trials()
    assert len(trials) == 2 * 4 * 3 and len(set(placed(trials))) == len(trials)
    stored = records(small)
    halves = [list(cores) for cores in split(machine.neighbours(machine.cores()), 2)]
    assert {record["at_once"] for record in stored} == {2}
    assert sorted({tuple(record["cores"]) for record in stored}) == sorted(map(tuple, halves))  # type: ignore[arg-type]
    assert listener.most_at_once == 2 and listener.threads == {threading.get_ident()}
    # On one half of the cores nothing overlaps.
    for cores in halves:
        times = sorted((r["started"], r["started"] + r["seconds"]) for r in stored if r["cores"] == cores)
        assert all(end <= start + 0.05 for (_, end), (start, _) in pairwise(times))
    assert "trials ran 2 at a time" in results[0].verdict.marks


def test_more_at_once_than_cores_is_refused(small: World) -> None:
    refused = small.run("matrix", "matrix.yaml", "--at-once", "4000")
    assert refused.returncode == 2 and "4000 trials at once" in refused.stderr and "at most" in refused.stderr
    assert not small.trials()


def test_killed_again_and_again(small: World) -> None:
    kept: list[tuple[str, str, str, int, str]] = []
    for seconds in (1.5, 2.2, 1.0):
        process = small.start("matrix", "matrix.yaml")
        time.sleep(seconds)
        process.kill()
        process.communicate()
        deadline = time.monotonic() + 10
        while small.processes():
            assert time.monotonic() < deadline
            time.sleep(0.03)
        trials = small.trials()
        assert trials[: len(kept)] == kept
        kept = trials
    finished = small.run("matrix", "matrix.yaml")
    assert finished.returncode == 0, finished.stderr
    assert re.search(r"2\.11\.0 +RACE 4/4", finished.stdout) and re.search(r"2\.14\.1 +FULL", finished.stdout)
    trials = small.trials()
    assert len(trials) == 2 * 4 * 3 and len(set(placed(trials))) == len(trials)
    assert list((small.store / "trials").iterdir()) == []


def test_ctrl_c_ends_all_and_loses_only_what_ran(small: World) -> None:
    small.torch("2.14.1", seconds=0.3)
    process = small.start("matrix", "matrix.yaml")
    deadline = time.monotonic() + 60
    while len(small.trials()) < 3 or len(list((small.store / "trials").iterdir())) < 2:
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130 and time.monotonic() - began < 5 and "Traceback" not in stderr
    assert not small.processes() and list((small.store / "trials").iterdir()) == []
    assert small.run("matrix", "matrix.yaml").returncode == 0
    assert len(set(placed(small.trials()))) == len(small.trials()) == 2 * 4 * 3


def test_a_hang_is_confirmed_also_when_two_hang_at_a_time(small: World) -> None:
    small.torch("2.11.0", hang=1.0)
    small.matrix(BODY.replace("2.11.0, 2.14.1", "2.11.0") + "limits: {silence: 0.7, first_silence: 3}\n")
    finished = small.run("matrix", "matrix.yaml")
    assert finished.returncode == 0 and "HANG 4/4" in finished.stdout, finished.stderr
    outcomes = [outcome for _, _, side, _, outcome in small.trials(counted=False) if side == "threads"]
    assert outcomes.count("hang") == 4 and 1 <= outcomes.count("infra") <= 2
    assert outcomes[-1] == "hang" and not small.processes()


def test_one_warm_up_before_the_others_of_its_cell(small: World) -> None:
    small.torch("2.14.1", seconds=0.2)
    small.matrix(
        "axes: {torch: [2.14.1], transformers: [5.8.1]}\nconditions: {cache: [warm, cold]}\n"
        "trials: 2\ncontrols: 2\nat_once: 2\n"
    )
    results, listener = measured(small)
    warm = next(result for result in results if result.cell.condition.cache == "warm")
    sides = [(what, side) for what, cell, side in listener.told if cell == warm.cell.id]
    assert sides[:2] == [("started", "warmup"), ("ended", "warmup")]
    assert sides.count(("started", "warmup")) == 1 and listener.most_at_once == 2
    assert all(sample.record.cache_hits == 1 for sample in warm.samples if sample.record.side != "warmup")


@pytest.fixture
def two_cards(nvml: Pretended, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Pretended:
    monkeypatch.setenv("BISECT_ENV_LEASES", str(tmp_path / "leases"))
    nvml.mig = []
    return nvml


def test_gpus_are_leased_once_and_given_in_turn(
    small: World, two_cards: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[int] = []
    real = leases.lease

    def lease(count: int, *args: object, **more: object) -> object:
        taken.append(count)
        return real(count, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(leases, "lease", lease)
    results, _ = measured(small)
    assert [result.verdict.text for result in results] == ["RACE 4/4", "FULL"]
    assert taken[0] == 2 and len([count for count in taken if count]) == 1
    used = [sample.record.devices[0].index for result in results for sample in result.samples]
    assert len(used) == 24 and 9 <= used.count(0) <= 15


def test_somebody_elses_work_makes_those_beside_it_infrastructure(
    small: World, two_cards: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen at one look, while another trial of ours is on the same GPU, and gone afterwards."""
    two_cards.cards = 1
    monkeypatch.setattr(gpu, "_on_the_host", lambda: True)
    monkeypatch.setattr(leases, "BUSY_AGAIN", 0.1)
    real, in_company = gpu.foreign_processes, itertools.count()

    def look(devices: Sequence[Device], own: Sequence[int] = ()) -> tuple[str, ...]:
        two_cards.processes = [1] if own and next(in_company) == 4 else []
        return real(devices, own, settle=0)

    monkeypatch.setattr(gpu, "foreign_processes", look)
    results, _ = measured(small)
    assert [result.verdict.text for result in results] == ["RACE 4/4", "FULL"]
    infra = [s.record for r in results for s in r.samples if s.record.outcome == "infra"]
    assert 1 <= len(infra) <= 2 and all("somebody else used the GPU meanwhile" in record.message for record in infra)
    assert len(set(placed(small.trials()))) == len(small.trials()) == 24


def test_a_throttled_trial_is_run_again_and_the_last_one_counts(small: World, two_cards: Pretended) -> None:
    small.matrix("axes: {torch: [2.14.1], transformers: [5.8.1]}\ntrials: 1\ncontrols: 1\nsolo: 0\n")
    two_cards.throttle = lambda: 0x40
    results, _ = measured(small)
    outcomes: dict[str, list[str]] = {}
    for _, _, side, _, outcome in small.trials(counted=False):
        outcomes.setdefault(side, []).append(outcome)
    again = ["infra"] * (measuring.RETRIES - 1)
    assert outcomes == {"threads": [*again, "clean"], "serial": [*again, "clean"]}
    first = results[0].samples[0].record
    name = f"gpu{first.devices[0].index}"
    assert first.message == f"the GPU was slowed down: {name}: hardware thermal slowdown"
    assert dict(first.host)[f"{name} throttle before"] == "hardware thermal slowdown"


@pytest.mark.parametrize("at_once", [1, 2])
def test_a_finished_cell_is_profiled_once_beside_the_others(small: World, two_cards: Pretended, at_once: int) -> None:
    small.matrix(BODY.replace("at_once: 2", f"at_once: {at_once}"))
    results, listener = measured(small, protocol=True)
    sides = [[sample.record.side for sample in result.samples] for result in results]
    assert [found.count("profile") for found in sides] == [0, 1], "a racing cell needs none"
    assert sides[1][-1] == "profile" and listener.most_at_once == at_once
    told = listener.told.index(("started", results[1].cell.id, "profile"))
    before = [item for item in listener.told[:told] if item[1] == results[1].cell.id]
    assert before.count(("ended", results[1].cell.id, "threads")) == 4
    again, _ = measured(small, protocol=True)
    assert [len(result.samples) for result in again] == [len(found) for found in sides]


def test_out_of_memory_beside_others_is_tried_again_alone(small: World, two_cards: Pretended) -> None:
    two_cards.cards = 1
    small.torch("2.14.1", large=str(small.folder / "room"))
    small.matrix("axes: {torch: [2.14.1], transformers: [5.8.1]}\ntrials: 4\ncontrols: 1\nsolo: 0\nat_once: 2\n")
    results, _ = measured(small)
    assert results[0].verdict.text == "FULL" and results[0].verdict.threads is not None
    assert results[0].verdict.threads.n == 4
    crowded = [sample.record for sample in results[0].samples if sample.record.outcome == "infra"]
    assert crowded and {record.message for record in crowded} == {trialing.BESIDE_OTHERS}
