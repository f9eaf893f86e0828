"""What a build costs in trials: coarse, so that the noise of a clock changes nothing that is asked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisect_env.search.costs import STEP, Measured
from bisect_env.search.line import Line
from bisect_env.search.records import Batch, Costs, Told
from bisect_env.search.subsets import Subsets


def measured(expected: Costs[int], *told: tuple[float | None, float | None, int]) -> float:
    costs = Measured(expected)
    for build, trial, trials in told:
        costs.tell(build, trial, trials)
    return costs.build(0) / costs.trial


def test_what_was_expected_holds_until_something_else_is_measured() -> None:
    assert measured(Costs(1.0, 2.0)) == 2.0
    assert measured(Costs(1.0, 2.0), (30.0, None, 0), (None, None, 4)) == 2.0
    # A build of 15 s and trials of 10 s: 1.5, which is within a factor of 4 of 2.
    assert measured(Costs(1.0, 2.0), (15.0, 10.0, 4)) == 2.0
    # Of 90 s: 9 trials, to the nearest power of 4.
    assert measured(Costs(1.0, 2.0), (90.0, 10.0, 4)) == 16.0
    assert measured(Costs(1.0, 2.0), (90.0, 10.0, 4), (None, 8.0, 100), (70.0, 11.0, 1)) == 16.0
    assert measured(Costs(1.0, 0.0), (30.0, 1.0, 1)) == 4.0 ** round(np.log(30) / np.log(4))
    assert measured(Costs(1.0, 2.0), (0.0, 1.0, 1)) == 0.0


def test_costs_of_each_point_are_what_they_are_given_as() -> None:
    costs = Measured(Costs(2.0, {3: 7.0}))
    costs.tell(900.0, 1.0, 1)
    assert (costs.build(3), costs.build(4), costs.trial) == (7.0, 0.0, 2.0)


SECONDS = st.floats(1e-3, 1e4)


@given(st.floats(0.01, 100), st.lists(st.tuples(SECONDS, SECONDS, st.integers(1, 32)), min_size=1, max_size=8))
def test_the_figure_is_never_further_off_than_a_step(expected: float, told: Sequence[tuple[float, float, int]]) -> None:
    costs = Measured(Costs(1.0, expected))
    builds, seconds, trials = 0.0, 0.0, 0
    for count, (build, trial, size) in enumerate(told, 1):
        costs.tell(build, trial, size)
        builds, seconds, trials = builds + build, seconds + trial * size, trials + size
        true = builds / count / (seconds / trials)
        assert true / STEP * (1 - 1e-9) <= costs.build(0) <= true * STEP * (1 + 1e-9)


@pytest.mark.parametrize("kind", [Line, Subsets])
@pytest.mark.parametrize("build", [0.2, 1.0, 5.0, 16.0])
def test_a_clock_that_is_off_by_a_fifth_changes_nothing_that_is_asked(
    kind: type[Line] | type[Subsets], build: float
) -> None:
    """The same outcomes, each build and each trial timed by a clock that is up to a fifth too slow or too fast."""

    def asked(clock: int) -> list[Batch[int]] | list[Batch[frozenset[int]]]:
        noise, outcomes = np.random.default_rng(clock), np.random.default_rng(5)
        search = kind(12, seed=3, costs=Costs(1.0, 2.0))
        found, built = [], set()
        while (batch := search.ask()) is not None:
            bad = batch.point >= 7 if isinstance(batch.point, int) else 7 in batch.point
            failures = int(outcomes.binomial(batch.size, 0.5 if bad else 0.0))
            seconds = None if batch.point in built else build * 40 * noise.uniform(0.83, 1.2)
            told = Told(batch, failures, batch.size - failures, 0, "", seconds, 40 * noise.uniform(0.83, 1.2))
            search.tell(told)
            built.add(batch.point)
            found.append(batch)
        return found

    first = asked(0)
    assert len(first) > 4
    assert all(asked(clock) == first for clock in range(1, 6))
