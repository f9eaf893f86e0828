"""The posterior and the information, against sums written out."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from bisect_env.search.along import most_probable, smallest_range
from bisect_env.search.change_points import NONE, ChangePoints
from bisect_env.search.rates import BAD, EITHER, GOOD
from bisect_env.search.segments import log_several_changes

tables = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=8)


def split(table: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    array = np.array(table)
    return array[:, 0], array[:, 1]


def entropy(shares: np.ndarray) -> float:
    kept = shares[shares > 0]
    return float(-(kept * np.log(kept)).sum())


@given(tables)
@settings(max_examples=40, deadline=None)
def test_the_posterior_is_bayes_rule(table: list[tuple[int, int]]) -> None:
    failures, passes = split(table)
    n = len(table) - 1
    joint = [NONE * np.exp(EITHER.log_marginal(failures.sum(keepdims=True), passes.sum(keepdims=True))[0])]
    for c in range(1, n + 1):
        above, below = (failures[c:].sum(), passes[c:].sum()), (failures[:c].sum(), passes[:c].sum())
        sides = BAD.log_marginal(*map(np.atleast_1d, above)) + GOOD.log_marginal(*map(np.atleast_1d, below))
        joint.append((1 - NONE) / n * np.exp(sides[0]))
    points = ChangePoints(failures, passes)
    assert points.weights == pytest.approx(np.array(joint) / sum(joint))
    assert points.log_evidence == pytest.approx(np.log(sum(joint)))


@given(tables, st.integers(1, 3))
@settings(max_examples=25, deadline=None)
def test_information_is_the_expected_fall_of_entropy(table: list[tuple[int, int]], size: int) -> None:
    failures, passes = split(table)
    points = ChangePoints(failures, passes)
    told = points.information(size)
    for position in range(len(table)):
        expected, total = 0.0, 0.0
        for failed in range(size + 1):
            more, fewer = failures.copy(), passes.copy()
            more[position] += failed
            fewer[position] += size - failed
            after = ChangePoints(more, fewer)
            ways = len(list(combinations(range(size), failed)))
            chance = ways * float(np.exp(after.log_evidence - points.log_evidence))
            expected += chance * entropy(after.weights)
            total += chance
        assert total == pytest.approx(1)
        assert told[position] == pytest.approx(entropy(points.weights) - expected, abs=1e-9)


def weighted(table: list[tuple[int, int]]) -> st.SearchStrategy[list[float]]:
    return st.lists(st.floats(0.1, 30), min_size=len(table) - 1, max_size=len(table) - 1)


@given(tables, st.data())
@settings(max_examples=40, deadline=None)
def test_a_weight_multiplies_what_the_outcomes_say(table: list[tuple[int, int]], data: st.DataObject) -> None:
    failures, passes = split(table)
    prior = np.array(data.draw(weighted(table)))
    plain, points = ChangePoints(failures, passes), ChangePoints(failures, passes, prior)
    assert points.weights.sum() == pytest.approx(1)
    # Among the changes: as without the weights, times each one's own; against none: in mean they are 1.
    joint = np.concatenate([plain.weights[:1], plain.weights[1:] * prior / prior.mean()])
    assert points.weights == pytest.approx(joint / joint.sum())
    assert ChangePoints(failures, passes, 7.3 * prior).weights == pytest.approx(points.weights)


@given(tables, st.integers(1, 8))
@settings(max_examples=25, deadline=None)
def test_even_weights_are_none(table: list[tuple[int, int]], size: int) -> None:
    failures, passes = split(table)
    plain, points = ChangePoints(failures, passes), ChangePoints(failures, passes, np.full(len(table) - 1, 3.0))
    assert points.weights == pytest.approx(plain.weights, rel=1e-12)
    assert points.information(size) == pytest.approx(plain.information(size), abs=1e-12)
    several = log_several_changes(failures, passes)
    assert log_several_changes(failures, passes, np.full(len(table) - 1, 3.0)) == pytest.approx(several)


def test_rows_have_priors_of_their_own() -> None:
    failures, passes = np.array([[0, 0, 2], [0, 0, 2]]), np.array([[2, 0, 0], [2, 0, 0]])
    prior = np.array([[1.0, 1.0], [1.0, 4.0]])
    many = ChangePoints(failures, passes, prior)
    for row in (0, 1):
        assert many.weights[row] == pytest.approx(ChangePoints(failures[row], passes[row], prior[row]).weights)
    assert many.weights[1, 2] == pytest.approx(4 * many.weights[1, 1])


@given(tables)
@settings(max_examples=25, deadline=None)
def test_rows_do_not_mix(table: list[tuple[int, int]]) -> None:
    failures, passes = split(table)
    many = ChangePoints(np.stack([passes, failures]), np.stack([failures, passes]))
    assert many.weights[1] == pytest.approx(ChangePoints(failures, passes).weights)
    assert many.information(2)[1] == pytest.approx(ChangePoints(failures, passes).information(2))


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 5)), min_size=3, max_size=7))
@settings(max_examples=25, deadline=None)
def test_several_changes_are_summed_over_all_places(table: list[tuple[int, int]]) -> None:
    failures, passes = split(table)
    n = len(table) - 1
    numbers = []
    for changes in (2, 3, 4):
        likelihoods = []
        for places in combinations(range(1, n + 1), changes):
            edges = [0, *places, n + 1]
            spans = [(failures[a:b].sum(), passes[a:b].sum()) for a, b in pairwise(edges)]
            likelihoods.append(sum(float(EITHER.log_marginal(*map(np.atleast_1d, span))[0]) for span in spans))
        if likelihoods:
            numbers.append(logsumexp(likelihoods) - np.log(len(likelihoods)))
    found = log_several_changes(failures, passes)
    assert found == pytest.approx(logsumexp(numbers) - np.log(3))


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 5)), min_size=3, max_size=7), st.data())
@settings(max_examples=25, deadline=None)
def test_several_changes_weigh_as_their_product(table: list[tuple[int, int]], data: st.DataObject) -> None:
    failures, passes = split(table)
    n, prior = len(table) - 1, np.array(data.draw(weighted(table)))
    numbers = []
    for changes in (2, 3, 4):
        sets = list(combinations(range(1, n + 1), changes))
        shares = [np.log(np.prod([prior[place - 1] for place in places])) for places in sets]
        likelihoods = []
        for places in sets:
            edges = [0, *places, n + 1]
            spans = [(failures[a:b].sum(), passes[a:b].sum()) for a, b in pairwise(edges)]
            likelihoods.append(sum(float(EITHER.log_marginal(*map(np.atleast_1d, span))[0]) for span in spans))
        if sets:
            numbers.append(logsumexp(np.add(likelihoods, shares)) - logsumexp(shares))
    assert log_several_changes(failures, passes, prior) == pytest.approx(logsumexp(numbers) - np.log(3))


@given(st.lists(st.floats(0.001, 1), min_size=2, max_size=9), st.data())
def test_the_most_probable_group(raw: list[float], data: st.DataObject) -> None:
    weights = np.array(raw) / sum(raw)
    n = len(weights) - 1
    askable = np.array(data.draw(st.lists(st.booleans(), min_size=n + 1, max_size=n + 1)))
    groups, current = [], 0.0
    for c in range(1, n + 1):
        current += weights[c]
        if askable[c] or c == n:
            groups.append(current)
            current = 0.0
    assert most_probable(weights, askable) == pytest.approx(max(max(groups), weights[0]))


@given(st.lists(st.floats(0.001, 1), min_size=2, max_size=9, unique=True), st.floats(0.05, 0.99))
def test_the_smallest_range(raw: list[float], share: float) -> None:
    weights = np.array(raw) / sum(raw)
    assume(np.min(np.diff(np.sort(weights))) > 1e-5)
    n, mass = len(weights) - 1, share * (1 - weights[0])
    low, high = smallest_range(weights, mass)
    assert weights[low : high + 1].sum() >= mass - 1e-9
    spans = [(b - a, a) for a in range(1, n + 1) for b in range(a, n + 1) if weights[a : b + 1].sum() >= mass + 1e-9]
    assert not spans or high - low <= min(spans)[0]


def test_what_nothing_told_apart_stays_together() -> None:
    assert smallest_range(np.array([0.02, 0.01, 0.24, 0.24, 0.24, 0.24, 0.01]), 0.5) == (2, 5)
    assert smallest_range(np.array([0.02, 0.97, 0.01]), 0.95) == (1, 1)


def test_a_prior_alone_tells_nothing_apart() -> None:
    prior = np.array([1.0, 1.0, 20.0, 1.0, 1.0])
    weights = np.array([0.02, 0.01, 0.04, 0.8, 0.04, 0.09])
    assert smallest_range(weights, 0.7) == (3, 3)
    assert smallest_range(weights, 0.7, prior) == (2, 4)


@given(st.integers(1, 12), st.integers(0, 1000), st.integers(1, 6))
@settings(max_examples=30, deadline=None)
def test_what_a_batch_may_show_adds_up_and_agrees_with_one_trial(candidates: int, seed: int, size: int) -> None:
    random = np.random.default_rng(seed)
    failures, passes = random.integers(0, 5, (2, 3, candidates + 1))
    points = ChangePoints(failures, passes)
    for position in range(candidates + 1):
        shares = points.predictive(position, size)
        assert shares.shape == (3, size + 1)
        assert shares.sum(axis=-1) == pytest.approx(1)
        # The mean number of failures is that of so many single trials.
        expected = shares @ np.arange(size + 1)
        assert expected == pytest.approx(size * points.failing()[:, position])
