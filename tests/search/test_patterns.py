"""The alternative to all hypotheses, against its definition."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from bisect_env.search.patterns import Patterns
from bisect_env.search.rates import BAD, GOOD


def test_it_is_the_mean_over_all_assignments_of_points_to_sides() -> None:
    counts = [(3, 1), (0, 5), (2, 2), (0, 0)]
    total = 0.0
    for sides in product([True, False], repeat=len(counts)):
        likelihood = 1.0
        for prior, wanted in ((BAD, True), (GOOD, False)):
            own = [count for count, side in zip(counts, sides, strict=True) if side is wanted]
            failures, passes = (np.array([sum(count[which] for count in own)]) for which in (0, 1))
            likelihood *= float(np.exp(prior.log_marginal(failures, passes)[0]))
        total += likelihood / 2 ** len(counts)
    assert np.exp(Patterns(counts).log_likelihood) == pytest.approx(total, rel=0.05)


def test_nothing_tested_is_certain() -> None:
    assert Patterns([]).log_likelihood == pytest.approx(0)


def test_mixes_that_should_be_alike_and_are_not_speak_for_it() -> None:
    together = np.exp(Patterns([(9, 1), (0, 10)]).log_likelihood)
    one_rate = np.exp(BAD.log_marginal(np.array([9]), np.array([11])))[0]
    assert together > one_rate
    assert (
        np.exp(Patterns([(5, 5), (5, 5)]).log_likelihood) < np.exp(BAD.log_marginal(np.array([10]), np.array([10])))[0]
    )
    assert np.exp(GOOD.log_marginal(np.array([9]), np.array([11])))[0] < together


def test_what_a_batch_is_expected_to_show_is_the_ratio_of_likelihoods() -> None:
    counts = [(3, 1), (0, 5), (2, 2)]
    before = Patterns(counts)
    predicted = before.predictive(2)
    assert predicted.sum(axis=1) == pytest.approx(1)
    for place in range(len(counts) + 1):
        for failures, ways in ((0, 1), (1, 2), (2, 1)):
            after = [*counts, (0, 0)]
            after[place] = (after[place][0] + failures, after[place][1] + 2 - failures)
            ratio = ways * np.exp(Patterns(after).log_likelihood - before.log_likelihood)
            assert predicted[place, failures] == pytest.approx(ratio)
