"""Host facts: cheap ones for every trial, fuller ones for a run."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bisect_env.errors import InfrastructureError
from bisect_env.trials import machine


def test_facts_are_readable_pairs_and_cheap() -> None:
    found = machine.facts()
    assert all(isinstance(name, str) and isinstance(value, str) and value for name, value in found)
    assert {"load 1m", "memory free MiB"} <= dict(found).keys()
    assert len(dict(found)) == len(found)
    took = []
    for _ in range(20):
        began = time.perf_counter()
        machine.facts()
        took.append(time.perf_counter() - began)
    assert min(took) < 0.005


def test_description_of_a_run(tmp_path: Path) -> None:
    found = dict(machine.description(tmp_path))
    assert {"host", "system", "cpu", "cores available", "memory MiB", "disk free GiB", "load 1m"} <= found.keys()
    assert int(found["memory MiB"]) >= int(found["memory free MiB"]) > 0


def test_cores_are_those_of_the_affinity_mask() -> None:
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert machine.cores() == (min(before),)
    finally:
        os.sched_setaffinity(0, before)
    assert machine.cores() == tuple(sorted(before))


def test_free_bytes_of_a_folder_that_does_not_exist_yet(tmp_path: Path) -> None:
    there = machine.free_bytes(tmp_path)
    later = machine.free_bytes(tmp_path / "not" / "yet")
    assert there > 0
    assert abs(there - later) < 1 << 28
    (tmp_path / "file").touch()
    assert machine.free_bytes(tmp_path / "file" / "below") > 0


def test_a_path_that_cannot_be_asked_is_infrastructure(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="does not say how much is free"):
        machine.free_bytes(tmp_path / ("x" * 300))


def test_the_tightest_cgroup_limit_on_the_way_up_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_CGROUPS", tmp_path)
    job = tmp_path / "slurm" / "job"
    job.mkdir(parents=True)
    (job / "cpu.max").write_text("max 100000\n")
    (job / "memory.max").write_text(f"{64 << 30}\n")
    (job.parent / "cpu.max").write_text("250000 100000\n")
    (job.parent / "memory.max").write_text(f"{8 << 30}\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert machine._limits(job) == [("cgroup cpu limit cores", "2.50"), ("cgroup memory limit MiB", "8192")]
    assert machine._limits(tmp_path) == []


def test_moving_a_process_moves_its_threads_and_its_children() -> None:
    body = """
import subprocess, sys, threading
child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
stop = threading.Event()
threading.Thread(target=stop.wait).start()
print(child.pid, flush=True)
input()
stop.set()
"""
    every = machine.cores()
    process = subprocess.Popen([sys.executable, "-c", body], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        machine.move(process.pid, every[:1])
        tasks = [int(task.name) for pid in (process.pid, child) for task in Path(f"/proc/{pid}/task").iterdir()]
        assert len(tasks) == 3 and all(os.sched_getaffinity(task) == {every[0]} for task in tasks)
        machine.move(process.pid, every)
        assert all(os.sched_getaffinity(task) == set(every) for task in tasks)
    finally:
        process.communicate("\n", timeout=10)
    machine.move(process.pid, every)
