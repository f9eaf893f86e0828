"""Killed at any moment, by anything: the same command goes on, nothing is lost but the trial in flight."""

from __future__ import annotations

import random
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable

import psutil
import pytest

from tests.support.racing import World, placed

BODY = """\
axes: {torch: [2.11.0, 2.14.1], transformers: [5.8.1]}
trials: 4
controls: 4
"""
CELLS, BLOCKS = 2, 4
FILES = 4000


@pytest.fixture
def small(world: World) -> World:
    """A matrix of one racing and one clean cell."""
    world.torch("2.11.0", race=1.0)
    world.torch("2.14.1")
    world.transformers("5.8.1")
    world.matrix(BODY)
    return world


def wait_until(condition: Callable[[], object], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.03)


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def nothing_is_left(world: World) -> None:
    wait_until(lambda: not world.processes(), 10)
    assert list((world.store / "trials").glob("*")) == []
    assert list((world.store / "environments").glob(".tmp-*")) == []


def everything_counted_once(world: World) -> None:
    trials = world.trials()
    assert len(trials) == CELLS * BLOCKS * 3
    assert len(set(placed(trials))) == len(trials), "an index was counted twice"


def finish(world: World) -> None:
    finished = world.run("matrix", "matrix.yaml")
    assert finished.returncode == 0, finished.stderr
    assert re.search(r"2\.11\.0 +RACE 4/4", finished.stdout) and re.search(r"2\.14\.1 +FULL", finished.stdout)
    everything_counted_once(world)
    nothing_is_left(world)


def test_the_run_is_killed_again_and_again(small: World) -> None:
    moments = random.Random(2026)
    kept: list[tuple[str, str, str, int, str]] = []
    for _ in range(4):
        process = small.start("matrix", "matrix.yaml")
        time.sleep(moments.uniform(0.3, 3.0))
        kill(process)
        # Children end by themselves, since nobody is there to end them: a trial at once, uv when it is done.
        wait_until(lambda: not small.processes(), 10)
        trials = small.trials()
        assert trials[: len(kept)] == kept, "what was stored before the kill is there as it was"
        kept = trials
    finish(small)
    assert small.trials()[: len(kept)] == kept


def test_the_run_is_killed_while_a_trial_runs(small: World) -> None:
    small.torch("2.11.0", seconds=30)
    process = small.start("matrix", "matrix.yaml")
    wait_until(lambda: small.processes("race.py"))
    (folder,) = (small.store / "trials").iterdir()
    kill(process)
    wait_until(lambda: not small.processes(), 10)
    assert folder.exists(), "only a later run can tell that nobody needs it"
    small.run("matrix", "matrix.yaml", "--cell", "torch-2.14.1*", "--trials", "1")
    assert not folder.exists()
    nothing_is_left(small)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_polite_end(small: World, number: signal.Signals) -> None:
    process = small.start("matrix", "matrix.yaml")
    wait_until(lambda: len(small.trials()) >= 2)
    process.send_signal(number)
    began = time.monotonic()
    stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == 130 and time.monotonic() - began < 5
    assert "Interrupted. What was measured is kept" in stderr and "Traceback" not in stderr
    assert re.search(r"^2\.11\.0 .*\n2\.14\.1 ", stdout, re.MULTILINE), "the table, as far as it is known"
    nothing_is_left(small)


def test_interrupted_before_anything_is_known(small: World) -> None:
    small.index.mode = "hangs"
    process = small.start("matrix", "matrix.yaml")
    wait_until(lambda: small.index.requests)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == 130 and "Traceback" not in stderr
    assert re.search(r"^2\.11\.0 +NOT RUN .*\n2\.14\.1 +NOT RUN", stdout, re.MULTILINE)
    nothing_is_left(small)


def test_a_trial_is_killed(small: World) -> None:
    # By the kernel or an operator: that says nothing about the cell.
    small.torch("2.14.1", seconds=1.0)
    process = small.start("matrix", "matrix.yaml", "--cell", "torch-2.14.1*", "--trials", "1")
    wait_until(lambda: small.processes("race.py"))
    for victim in small.processes("race.py"):
        victim.kill()
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr
    assert "not counted:" in stderr
    counted, stored = small.trials(), small.trials(counted=False)
    assert len(counted) == 3 and len(stored) == 4 and stored[0][4] == "infra"
    assert len(set(placed(counted))) == 3


def test_killed_in_mid_build_with_a_cold_and_a_warm_cache(world: World) -> None:
    world.torch("2.14.1", files={f"torch/part{number}.py": f"number = {number}\n" for number in range(FILES)})
    world.transformers("5.8.1")
    world.matrix("axes: {torch: 2.14.1, transformers: 5.8.1}\ntrials: 1\ncontrols: 1\n")
    process = world.start("matrix", "matrix.yaml")
    wait_until(lambda: world.processes("sync"))
    kill(process)
    for cache in ("cold", "warm"):
        killed = 0
        for delay in (0.05, 0.1, 0.2, 0.3):
            process = world.start("matrix", "matrix.yaml")
            struck = _kill_uv(world, process, delay)
            stdout, stderr = process.communicate(timeout=60)
            print(f"{cache}: uv {'killed' if struck else 'was done'} after {delay} s")
            if not struck:
                break
            assert process.returncode == 5 and "uv" in stderr and "NOT RUN" in stdout
            assert list((world.store / "environments").glob("*/complete")) == []
            killed += 1
        assert killed, "no build was interrupted, so nothing was shown"
        finished = world.run("matrix", "matrix.yaml")
        assert finished.returncode == 0 and "FULL" in finished.stdout
        (site,) = world.store.glob("environments/*/venv/lib/python*/site-packages/torch")
        assert len(list(site.glob("part*.py"))) == FILES
        nothing_is_left(world)
        shutil.rmtree(world.store)


def _kill_uv(world: World, process: subprocess.Popen[str], delay: float) -> bool:
    """Kill a uv that installs, some time after its start; False when none was at it for so long."""
    while process.poll() is None:
        for child in psutil.Process(process.pid).children():
            arguments = _arguments(child)
            if "sync" in arguments and any(str(world.store) in word for word in arguments):
                # One that looks into its cache alone ends soon where something is missing.
                deadline = time.monotonic() + delay
                while _arguments(child) == arguments and time.monotonic() < deadline:
                    time.sleep(0.005)
                if _arguments(child) == arguments:
                    child.kill()
                    return True
        time.sleep(0.005)
    return False


def _arguments(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []
