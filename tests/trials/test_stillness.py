from __future__ import annotations

import itertools
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisect_env.trials import runner, stillness
from bisect_env.trials.records import Outcome
from bisect_env.trials.stillness import EVERY_SECONDS, STILL_SECONDS, STILL_SHARE, Stillness, cpu_seconds
from tests.trials.scripts import run_script


def longest(readings: list[float], events: set[int]) -> float:
    """Longest stillness over readings ``EVERY_SECONDS`` apart; ``events`` are the readings that an event precedes."""
    used = iter(readings)
    watch, last, most = Stillness(0.0, lambda: next(used)), 0.0, 0.0
    for index in range(len(readings)):
        now = (index + 1) * EVERY_SECONDS
        last = now - 0.1 if index in events else last
        most = max(most, watch.seconds(now, last))
    return most


def test_neither_event_nor_computing_is_stillness() -> None:
    assert longest([5.0] * 15, set()) == 14 * EVERY_SECONDS >= STILL_SECONDS


@given(st.lists(st.floats(0.021, 4.0), min_size=20, max_size=40))
def test_what_uses_more_than_its_share_is_never_still(shares: list[float]) -> None:
    used, readings = 0.0, []
    for share in shares:
        used += share * EVERY_SECONDS
        readings.append(used)
    assert min(shares) > STILL_SHARE
    assert longest(readings, set()) < STILL_SECONDS + EVERY_SECONDS


@given(st.sets(st.integers(0, 29)))
def test_every_event_begins_the_count_anew(events: set[int]) -> None:
    ends = [-1, *sorted(events), 30]
    gap = max(later - earlier for earlier, later in itertools.pairwise(ends))
    assert longest([1.0] * 30, events) <= gap * EVERY_SECONDS


def test_what_an_ended_child_used_is_counted() -> None:
    burn = """
import resource, subprocess, sys
subprocess.run([sys.executable, "-c", "sum(range(5 * 10**7))"])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime, flush=True)
sys.stdin.read()
"""
    command = [sys.executable, "-c", burn]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        childs = float(process.stdout.readline())
        family = [psutil.Process(process.pid)]
        assert childs > 0.05
        assert cpu_seconds(family) >= childs - 0.02  # in ticks of the kernel
        process.communicate()
    assert cpu_seconds(family) == 0.0


def test_a_deadlock_ends_long_before_its_silence_and_a_busy_process_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stillness, "EVERY_SECONDS", 0.1)
    # On a crowded machine a busy process can be without a core for a second.
    monkeypatch.setattr(runner, "STILL_SECONDS", 3.0)
    (tmp_path / "still").mkdir()
    began = time.monotonic()
    record = run_script(tmp_path / "still", "threading.Event().wait()", silence=60.0)
    assert time.monotonic() - began < 15
    assert (record.outcome, record.hang_kind) == (Outcome.HANG, "deadlock")
    assert record.message == "neither an event nor any computing within 3 s"
    (tmp_path / "busy").mkdir()
    busy = "end = time.monotonic() + 5\nwhile time.monotonic() < end: pass\nsay('done')"
    record = run_script(tmp_path / "busy", busy, silence=60.0)
    assert record.outcome is Outcome.CLEAN
