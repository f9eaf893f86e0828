"""A failure seen after a reset inside the process: kept, not counted, decided by a fresh process in the same place."""

from __future__ import annotations

import pytest

from tests.support.engine import measured
from tests.support.racing import World

BODY = "axes: {torch: [2.11.0], transformers: [5.8.1]}\ntrials: 2\ncontrols: 2\nsolo: 0\n"


@pytest.mark.parametrize(("late", "counted"), [("confirmed", "failed"), ("a fluke", "clean")])
def test_a_fresh_process_decides(world: World, late: str, counted: str) -> None:
    world.torch("2.11.0", late=late)
    world.transformers("5.8.1")
    world.matrix(BODY)
    (result,), _ = measured(world)
    threads = [sample for sample in result.samples if sample.record.side == "threads"]
    assert [(s.block, s.record.outcome, s.record.resets, s.record.only_repeat) for s in sorted(
        threads, key=lambda sample: (sample.block, sample.record.started)
    )] == [(0, "failed", 1, None), (0, counted, 0, 1), (1, "failed", 1, None), (1, counted, 0, 1)]  # fmt: skip
    assert result.verdict.threads is not None
    assert (result.verdict.threads.k, result.verdict.threads.n) == ((2, 2) if late == "confirmed" else (0, 2))
    again, _ = measured(world)
    assert len(again[0].samples) == len(result.samples), "nothing is left to do"


def test_a_decision_that_was_interrupted_is_taken_up(world: World) -> None:
    world.torch("2.11.0", late="confirmed")
    world.transformers("5.8.1")
    world.matrix(BODY.replace("trials: 2", "trials: 1").replace("controls: 2", "controls: 1"))
    process = world.start("matrix", "matrix.yaml")
    assert process.stderr is not None
    for line in process.stderr:
        if "after 1 resets; repeat 1 alone in a fresh process decides" in line:
            break
    process.kill()
    process.communicate()
    before = [trial for trial in world.trials() if trial[2] == "threads"]
    (result,), _ = measured(world)
    threads = [sample.record for sample in result.samples if sample.record.side == "threads"]
    assert len(before) in (1, 2) and [record.only_repeat for record in threads] == [None, 1]
