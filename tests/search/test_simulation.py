"""The simulated runs in step are what the shipped search does one at a time."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from bisect_env.search.line import Line
from bisect_env.search.records import Costs, Result, Status, Told
from bisect_env.search.simulation import LineRun, LineWorld, simulate_line


def alone(world: LineWorld, batch: int | Literal["auto"], seed: int, run: int) -> tuple[int, Result[int], int]:
    """One search by the class itself: the truth, what it found, and how many environments that took."""
    random = np.random.default_rng([seed, run])
    truth = int(random.integers(1, world.candidates + 1))
    line = Line(world.candidates, costs=Costs(world.trial, world.build), batch=batch)
    built: set[int] = set()
    while (asked := line.ask()) is not None:
        failed = int(random.binomial(asked.size, world.fail_rate if asked.point >= truth else world.false_rate))
        build = None if asked.point in built else world.build
        line.tell(Told(asked, failed, asked.size - failed, build_seconds=build, trial_seconds=world.trial))
        built.add(asked.point)
    return truth, line.result(), len(built)


@pytest.mark.parametrize(
    ("world", "batch"),
    [
        (LineWorld(8, 0.5, 0.02), 1),
        (LineWorld(32, 0.9, 0.0), 4),
        (LineWorld(32, 0.5, 0.0, build=10.0), "auto"),
    ],
    ids=["one at a time", "batches", "with builds"],
)
def test_in_step_and_alone_are_the_same(world: LineWorld, batch: int | Literal["auto"]) -> None:
    together = simulate_line(world, confidence=0.95, batch=batch, runs=12, seed=5)
    for run, seen in enumerate(together):
        truth, result, environments = alone(world, batch, 5, run)
        assert (seen.truth, seen.trials, seen.environments) == (truth, result.trials, environments)
        assert seen.status is result.status
        if result.status is Status.CONFIDENT:
            assert (seen.answer,) == (result.best or (0,))
            assert seen.stated == pytest.approx(result.probability)


def test_a_run_does_not_depend_on_the_number_of_runs() -> None:
    world = LineWorld(8, 0.5, 0.02)
    few = simulate_line(world, confidence=0.9, batch=1, runs=3, seed=1)
    assert simulate_line(world, confidence=0.9, batch=1, runs=6, seed=1)[:3] == few


def test_the_stated_confidence_holds() -> None:
    runs = simulate_line(LineWorld(16, 0.5, 0.02), confidence=0.95, batch=1, runs=300, seed=3)
    # 27 or more of 300 wrong have a probability of 0.2 % at a true rate of 5 %.
    assert sum(run.wrong for run in runs) < 27
    assert all(run.stated >= 0.95 for run in runs if run.answer is not None)


def test_a_wrong_answer_is_one_that_was_given() -> None:
    given = LineRun(3, 4, 0.96, Status.CONFIDENT, 20, 5)
    none = LineRun(3, 0, 0.96, Status.CONFIDENT, 20, 5)
    undecided = LineRun(3, None, 0.5, Status.MISFIT, 20, 5)
    assert (given.wrong, none.wrong, undecided.wrong) == (True, True, False)
