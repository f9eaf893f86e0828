"""Rates integrated out, against numerical integration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import beta

from bisect_env.search.rates import BAD, EITHER, GOOD, RatePrior

ODD = RatePrior((0.3, 1.0, 4.0), (0.7, 5.0, 1.5))
counts = st.integers(0, 30)


def density(prior: RatePrior, rate: float) -> float:
    return float(sum(share * beta.pdf(rate, a, b) for share, a, b in prior.components))


@given(counts, counts)
@settings(max_examples=25, deadline=None)
def test_the_marginal_is_the_integral(failures: int, passes: int) -> None:
    integral, _ = quad(lambda rate: rate**failures * (1 - rate) ** passes * density(ODD, rate), 0, 1, epsabs=1e-14)
    found = ODD.log_marginal(np.array([failures]), np.array([passes]))[0]
    assert np.exp(found) == pytest.approx(integral, rel=1e-5, abs=1e-13)


@given(st.sampled_from([BAD, GOOD, EITHER, ODD]), counts, counts, st.integers(1, 9))
def test_predictions_are_probabilities_and_agree_with_the_mean(
    prior: RatePrior, failures: int, passes: int, size: int
) -> None:
    told = prior.predictive(np.array([failures]), np.array([passes]), size)[0]
    assert told.shape == (size + 1,)
    assert told.sum() == pytest.approx(1)
    assert told @ np.arange(size + 1) / size == pytest.approx(prior.mean(np.array([failures]), np.array([passes]))[0])


def test_counts_beyond_the_table() -> None:
    many = BAD.log_marginal(np.array([3000]), np.array([5000]))
    assert np.isfinite(many).all()
    assert BAD.mean(np.array([3000]), np.array([5000]))[0] == pytest.approx(3 / 8, abs=0.001)


def test_the_interval_of_a_single_beta() -> None:
    plain = RatePrior((1.0, 1.0, 1.0))
    found = plain.interval(np.array([3]), np.array([7]), np.array([1.0]))
    assert found.estimate == pytest.approx(4 / 12)
    assert (found.low, found.high) == pytest.approx(tuple(beta.ppf([0.025, 0.975], 4, 8)), abs=1e-5)
