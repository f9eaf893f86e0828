"""Which mix to ask: information against brute force, and the choice against all choices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bisect_env.search.choosing import SIZES, Prospects, candidates, choose, climb, every_point
from bisect_env.search.hypotheses import Hypotheses
from bisect_env.search.patterns import Patterns
from bisect_env.search.rates import Floats

FACTORS = 5
TOLD = st.lists(st.tuples(st.integers(0, 2**FACTORS - 1), st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=5)
Data = list[tuple[int, int, int]]


def prospects(data: Data, misfit: float = 0.0) -> tuple[Hypotheses, Prospects]:
    hypotheses, points = Hypotheses(FACTORS), every_point(FACTORS)
    for code, failures, passes in data:
        hypotheses.tell(points[code], failures, passes)
    patterns = Patterns([(failures, passes) for _, failures, passes in data])
    return hypotheses, Prospects(hypotheses, patterns, misfit)


def bits(probabilities: Floats) -> float:
    return float(-sum(p * np.log2(p) for p in probabilities if p > 0))


@settings(max_examples=20, deadline=None)
@given(TOLD, st.integers(0, 2**FACTORS - 1), st.integers(1, 4))
def test_information_is_what_the_posterior_is_expected_to_lose_in_entropy(data: Data, code: int, size: int) -> None:
    """Over all outcomes of a batch, each weighed by its probability: another way to the same mutual information."""
    hypotheses, ahead = prospects(data)
    point = every_point(FACTORS)[code]
    before, expected, total = bits(hypotheses.weights()), 0.0, 0.0
    evidence = np.logaddexp.reduce(hypotheses.log_prior + hypotheses.log_likelihood())
    for outcome in every_point(size):
        after = hypotheses.copy()
        after.tell(point, int(outcome.sum()), int(size - outcome.sum()))
        share = float(np.exp(np.logaddexp.reduce(after.log_prior + after.log_likelihood()) - evidence))
        expected += share * bits(after.weights())
        total += share
    assert total == pytest.approx(1)
    assert ahead.information(point[None], size)[0] == pytest.approx(before - expected, abs=1e-4)


@settings(max_examples=20, deadline=None)
@given(TOLD, st.sampled_from([0.0, 0.3]))
def test_neighbours_have_the_information_of_their_own(data: Data, misfit: float) -> None:
    _, ahead = prospects(data, misfit)
    points = every_point(FACTORS)
    around = ahead.around(points)
    for factor in range(FACTORS):
        flipped = points ^ (np.arange(FACTORS) == factor)
        assert around[:, factor] == pytest.approx(ahead.information(flipped, 1), abs=1e-9)


@settings(max_examples=20, deadline=None)
@given(TOLD, st.floats(0, 20), st.integers(0, 2**32 - 1))
def test_the_choice_is_the_best_of_all(data: Data, build: float, seed: int) -> None:
    _, ahead = prospects(data, 0.05)
    points = every_point(FACTORS)
    random = np.random.default_rng(seed)
    builds, chances = build * (random.random(len(points)) < 0.5), random.random(len(points))
    tested = np.full(len(points), -1)
    choice = choose(ahead, points, tested, chances, lambda size: builds + size, SIZES)
    best = max(float((ahead.information(points, size, tested) * chances / (builds + size)).max()) for size in SIZES)
    assert choice is not None
    at = int(np.flatnonzero((points == choice.point).all(axis=1))[0])
    told = float(ahead.information(choice.point[None], choice.size, tested[:1])[0])
    assert told * chances[at] / (builds[at] + choice.size) == pytest.approx(best)


def test_climbing_ends_where_no_flip_is_better() -> None:
    _, ahead = prospects([(7, 3, 0), (0, 0, 3), (1, 0, 2)])
    tops = climb(ahead.around, every_point(FACTORS)[[0, 9, 31]])
    assert (ahead.around(tops) <= ahead.information(tops, 1)[:, None] + 1e-6).all()


def test_nothing_is_chosen_where_nothing_would_be_told() -> None:
    _, ahead = prospects([(31, 3, 0)])
    points = every_point(FACTORS)
    tested = np.full(len(points), -1)
    assert choose(ahead, points, tested, np.zeros(len(points)), lambda size: np.full(len(points), size), SIZES) is None


def test_what_is_built_is_always_a_candidate() -> None:
    built = np.random.default_rng(1).random((4, 20)) < 0.5
    hypotheses = Hypotheses(20)
    ahead = Prospects(hypotheses, Patterns([]), 0.0)
    found = candidates(ahead.around, built, np.random.default_rng(2))
    assert all((found == row).all(axis=1).any() for row in built)
    assert len(found) > len(built)
