"""The posterior over factors, against brute force."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from bisect_env.search.hypotheses import NONE, PAIR, SINGLE, Hypotheses
from bisect_env.search.rates import BAD, GOOD, RatePrior

Data = list[tuple[frozenset[int], int, int]]
FACTORS = 4


def row(point: frozenset[int]) -> np.ndarray:
    return np.array([factor in point for factor in range(FACTORS)])


def told(data: Data) -> Hypotheses:
    hypotheses = Hypotheses(FACTORS)
    for point, failures, passes in data:
        hypotheses.tell(row(point), failures, passes)
    return hypotheses


def integral(prior: RatePrior, failures: int, passes: int) -> float:
    """The likelihood with the rate integrated out, by quadrature over rate**alpha, in which the prior has no pole."""

    def density(x: float, alpha: float, beta: float, failures: int, passes: int) -> float:
        rate = x ** (1 / alpha)
        return float(rate**failures * (1 - rate) ** (beta - 1 + passes))

    return sum(
        share
        * float(quad(density, 0, 1, (alpha, beta, failures, passes), epsabs=1e-14)[0])
        / float(quad(density, 0, 1, (alpha, beta, 0, 0))[0])
        for share, alpha, beta in prior.components
    )


points = st.frozensets(st.integers(0, FACTORS - 1))
data = st.lists(st.tuples(points, st.integers(0, 4), st.integers(0, 4)), max_size=5)


@settings(max_examples=15, deadline=None)
@given(data)
def test_the_posterior_is_what_quadrature_says(data: Data) -> None:
    singles: list[tuple[int, ...]] = [(factor,) for factor in range(FACTORS)]
    pairs = list(combinations(range(FACTORS), 2))
    joint = []
    for answer in [*singles, *pairs]:
        prior = SINGLE / len(singles) if len(answer) == 1 else PAIR / len(pairs)
        bad = [(f, p) for point, f, p in data if point.issuperset(answer)]
        good = [(f, p) for point, f, p in data if not point.issuperset(answer)]
        likelihood = 1.0
        for rate, side in ((BAD, bad), (GOOD, good)):
            likelihood *= integral(rate, sum(f for f, _ in side), sum(p for _, p in side))
        joint.append(prior * likelihood)
    total = (sum(f for _, f, _ in data), sum(p for _, _, p in data))
    joint.append(NONE * (integral(BAD, *total) + integral(GOOD, *total)) / 2)
    assert told(data).weights() == pytest.approx(np.array(joint) / sum(joint), rel=1e-4)


@settings(max_examples=30, deadline=None)
@given(data, st.permutations(range(FACTORS)))
def test_names_of_factors_do_not_matter(data: Data, names: list[int]) -> None:
    weights = told(data)
    renamed = told([(frozenset(names[factor] for factor in point), f, p) for point, f, p in data])
    other = dict(zip(renamed.answers, renamed.weights()[:-1], strict=True))
    for answer, weight in zip(weights.answers, weights.weights()[:-1], strict=True):
        assert other[tuple(sorted(names[factor] for factor in answer))] == pytest.approx(weight)


@settings(max_examples=30, deadline=None)
@given(data, st.randoms(use_true_random=False))
def test_the_order_of_trials_does_not_matter(data: Data, random: object) -> None:
    shuffled = data.copy()
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert told(shuffled).weights() == pytest.approx(told(data).weights())


def test_what_did_not_happen_leaves_no_trace_in_the_original() -> None:
    hypotheses = told([(frozenset({0}), 1, 2)])
    before = hypotheses.weights()
    hypotheses.copy().tell(row(frozenset({0, 1})), 3, 0)
    assert hypotheses.weights() == pytest.approx(before)


def test_a_pair_fails_only_where_both_are_there() -> None:
    hypotheses = Hypotheses(3)
    where = dict(zip(hypotheses.answers, hypotheses.positive(np.array([[True, True, False]]))[0], strict=False))
    assert {answer for answer, bad in where.items() if bad} == {(0,), (1,), (0, 1)}


def test_one_factor_alone_can_be_searched_and_none_cannot() -> None:
    assert Hypotheses(1).answers == ((0,),)
    assert Hypotheses(1).weights().sum() == pytest.approx(1)
    with pytest.raises(ValueError, match="needs at least one"):
        Hypotheses(0)
