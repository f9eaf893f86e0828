"""Two runs of one matrix in one store at the same time: one after the other, and nothing twice."""

from __future__ import annotations

import re
import signal
import time

from tests.support.racing import World, placed


def furnish(world: World) -> None:
    world.torch("2.11.0", race=1.0)
    world.torch("2.14.1", seconds=0.1)
    world.transformers("5.8.1")
    world.matrix("axes: {torch: [2.11.0, 2.14.1], transformers: [5.8.1]}\ntrials: 2\ncontrols: 2\n")


def test_both_end_and_share_everything(world: World) -> None:
    furnish(world)
    processes = [world.start("matrix", "matrix.yaml") for _ in range(2)]
    ended = [(*process.communicate(timeout=60), process.returncode) for process in processes]
    (first, quick, code), (second, slow, other) = sorted(ended, key=lambda one: "waiting for" in one[1])
    assert (code, other) == (0, 0), quick + slow
    assert first == second
    assert re.search(r"waiting for run r\w+ of tiny \(pid \d+, since [\d:]+\), which measures in ", slow)
    assert "waiting for" not in quick
    assert "built" not in slow and " threads: " not in slow, "what the first had done was not done again"
    trials = world.trials()
    assert len(trials) == 12 and len(set(placed(trials))) == 12


def test_a_finished_matrix_waits_for_nobody_and_a_waiting_run_can_be_stopped(world: World) -> None:
    furnish(world)
    assert world.run("matrix", "matrix.yaml", "--cell", "torch-2.14.1*").returncode == 0
    world.torch("2.15.0", seconds=20)
    world.matrix("axes: {torch: [2.15.0], transformers: [5.8.1]}\n", name="slow.yaml")
    holder = world.start("matrix", "slow.yaml")
    while not world.processes("race.py"):
        assert holder.poll() is None
        time.sleep(0.05)
    assert world.run("matrix", "matrix.yaml", "--cell", "torch-2.14.1*", timeout=20).returncode == 0
    waiting = world.start("matrix", "matrix.yaml")
    assert waiting.stderr is not None
    while "waiting for run" not in (line := waiting.stderr.readline()):
        assert line, "it ended instead"
    waiting.send_signal(signal.SIGTERM)
    assert waiting.wait(20) == 130
    waiting.communicate()
    # A holder that dies lets go.
    holder.kill()
    holder.communicate()
    finished = world.run("matrix", "matrix.yaml")
    assert finished.returncode == 0 and "RACE 2/2" not in finished.stdout and "waiting" not in finished.stderr
