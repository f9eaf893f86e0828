"""Simulated searches with several slots: the same as without for one, faster for several, and nothing left out."""

from __future__ import annotations

import numpy as np
import pytest

from bisect_env.search.records import Status
from bisect_env.search.simulated_parallel import Timed, simulate_parallel
from bisect_env.search.simulated_subsets import FactorWorld, simulate_factors
from bisect_env.search.simulation import LineWorld, simulate_line

LINE = LineWorld(32, 0.5, 0.02, build=5.0, trial=2.0)
FACTORS = FactorWorld(6, 1, 0.7, 0.02, build=5.0, trial=2.0)


def parallel(world: LineWorld | FactorWorld, slots: int, rounds: bool, runs: int, seed: int = 5) -> list[Timed]:
    return list(
        simulate_parallel(world, slots=slots, rounds=rounds, confidence=0.95, batch="auto", runs=runs, seed=seed)
    )


@pytest.mark.parametrize("rounds", [True, False])
def test_with_one_slot_they_are_the_search_as_it_is(rounds: bool) -> None:
    for seen, one in zip(
        parallel(LINE, 1, rounds, 8),
        simulate_line(LINE, confidence=0.95, batch="auto", runs=8, seed=5),
        strict=True,
    ):
        assert (seen.run.truth, seen.run.answer, seen.run.status) == (one.truth, one.answer, one.status)
        assert (seen.run.trials, seen.run.environments) == (one.trials, one.environments)
        assert seen.seconds == one.trials * 2.0 + one.environments * 5.0
    every = list(simulate_factors(FACTORS, confidence=0.95, batch="auto", runs=5, seed=5))
    assert [seen.run for seen in parallel(FACTORS, 1, rounds, 5)] == every


@pytest.mark.parametrize("world", [LINE, FACTORS], ids=["line", "factors"])
@pytest.mark.parametrize("rounds", [True, False])
def test_slots_are_filled_and_every_trial_begun_is_counted(world: LineWorld | FactorWorld, rounds: bool) -> None:
    for seen in parallel(world, 4, rounds, 10):
        assert seen.run.status is Status.CONFIDENT
        assert seen.run.environments <= seen.run.trials
        # All slots together can do no more in the time, but for what each had just begun.
        assert seen.run.trials * world.trial <= 4 * (seen.seconds + world.trial)
        assert seen.seconds >= world.build + world.trial


@pytest.mark.parametrize("rounds", [True, False])
def test_eight_slots_are_three_times_as_fast_for_little_more(rounds: bool) -> None:
    world = LineWorld(32, 0.3, 0.02, build=10.0)
    alone = simulate_line(world, confidence=0.95, batch="auto", runs=200, seed=6)
    seconds = np.mean([run.trials + 10.0 * run.environments for run in alone])
    eight = parallel(world, 8, rounds, 30, seed=6)
    assert seconds >= 3 * np.mean([seen.seconds for seen in eight])
    assert np.mean([seen.run.trials for seen in eight]) <= 1.6 * np.mean([run.trials for run in alone])
    # Six or more wrong of 30 have a probability of 0.3 % at a true rate of 5 %.
    assert sum(seen.run.wrong for seen in eight) < 6


def test_a_run_does_not_depend_on_how_many_there_are() -> None:
    assert parallel(LINE, 3, False, 4)[:2] == parallel(LINE, 3, False, 2)
