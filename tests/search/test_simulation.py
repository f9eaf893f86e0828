"""The simulated runs in step are what the shipped search does one at a time."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bisect_env.search.line import Line
from bisect_env.search.records import Costs, Result, Status, Told
from bisect_env.search.simulation import LineRun, LineWorld, SimulatedReading, marks, simulate_line


def alone(
    world: LineWorld, batch: int | Literal["auto"], seed: int, run: int, reading: SimulatedReading | None = None
) -> tuple[int, Result[int], int]:
    """One search by the class itself: the truth, what it found, and how many environments that took."""
    random = np.random.default_rng([seed, run])
    truth = int(random.integers(1, world.candidates + 1))
    weights = None
    if reading is not None:
        marked = marks(reading, world.candidates, truth, [seed, run])
        weights = [reading.weight if each else 1.0 for each in marked]
    line = Line(world.candidates, costs=Costs(world.trial, world.build), batch=batch, weights=weights)
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


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize(("build", "batch"), [(0.0, 1), (10.0, "auto")], ids=["one at a time", "with builds"])
def test_with_a_prior_they_are_the_same_too(right: bool, build: float, batch: int | Literal["auto"]) -> None:
    world, reading = LineWorld(12, 0.5, 0.02, build=build), SimulatedReading(right, 2, 8.0)
    together = simulate_line(world, confidence=0.95, batch=batch, runs=12, seed=5, reading=reading)
    for run, seen in enumerate(together):
        truth, result, environments = alone(world, batch, 5, run, reading)
        assert (seen.truth, seen.trials, seen.environments) == (truth, result.trials, environments)
        assert seen.status is result.status
        if result.status is Status.CONFIDENT:
            assert (seen.answer,) == (result.best or (0,))


@given(st.integers(2, 40), st.data())
@settings(max_examples=40, deadline=None)
def test_a_reading_marks_the_culprit_or_never_does(candidates: int, data: st.DataObject) -> None:
    truth = data.draw(st.integers(1, candidates))
    right = data.draw(st.booleans())
    marked = data.draw(st.integers(1, candidates if right else candidates - 1))
    found = marks(SimulatedReading(right, marked, 8.0), candidates, truth, [1, 2])
    assert found.sum() == marked
    assert found[truth - 1] == right


@pytest.mark.parametrize(("right", "marked"), [(True, 0), (True, 5), (False, 0), (False, 4)])
def test_more_than_there_are_cannot_be_marked(right: bool, marked: int) -> None:
    with pytest.raises(ValueError, match="marks at least one of 4 candidates"):
        simulate_line(
            LineWorld(4, 0.5, 0.0), confidence=0.9, batch=1, runs=1, seed=1, reading=SimulatedReading(right, marked, 8)
        )


def test_a_prior_changes_neither_the_culprits_nor_what_its_bounds_promise() -> None:
    world = LineWorld(32, 0.5, 0.0)
    plain, right, misleading = (
        simulate_line(world, confidence=0.95, batch=1, runs=200, seed=2, reading=reading)
        for reading in (None, SimulatedReading(True, 5, 8.0), SimulatedReading(False, 5, 8.0))
    )
    assert [run.truth for run in plain] == [run.truth for run in right] == [run.truth for run in misleading]
    means = [np.mean([run.trials for run in done]) for done in (plain, right, misleading)]
    assert means[1] <= 0.8 * means[0] and means[2] <= 1.2 * means[0]


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
