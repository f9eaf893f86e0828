from __future__ import annotations

import random
from itertools import combinations, product
from math import comb, exp, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisect_env.verdicts.statistics import (
    clean_trials_needed,
    clopper_pearson,
    fisher_greater,
    quartiles,
    ratio_interval,
    signed_rank_interval,
    stratified_greater,
    upper_bound,
)


def binomial(k: int, n: int, p: float) -> float:
    return comb(n, k) * p**k * (1 - p) ** (n - k)


@pytest.mark.parametrize("n", [1, 2, 3, 6, 12, 25])
def test_the_interval_covers_every_rate_as_often_as_it_says(n: int) -> None:
    intervals = [clopper_pearson(k, n) for k in range(n + 1)]
    for step in range(1001):
        p = step / 1000
        covered = sum(binomial(i.k, n, p) for i in intervals if i.low <= p <= i.high)
        assert covered >= 0.95 - 1e-12


@given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_limits_solve_the_two_tails(kn: tuple[int, int]) -> None:
    k, n = kn
    found = clopper_pearson(k, n)
    if k > 0:
        assert sum(binomial(i, n, found.low) for i in range(k, n + 1)) == pytest.approx(0.025, rel=1e-6)
    if k < n:
        assert sum(binomial(i, n, found.high) for i in range(k + 1)) == pytest.approx(0.025, rel=1e-6)
        assert sum(binomial(i, n, upper_bound(k, n)) for i in range(k + 1)) == pytest.approx(0.05, rel=1e-6)


def test_known_values() -> None:
    assert upper_bound(0, 20) == pytest.approx(0.139, abs=5e-4)
    assert upper_bound(0, 0) == 1.0
    assert (clopper_pearson(0, 0).low, clopper_pearson(0, 0).high) == (0.0, 1.0)
    five_of_six = clopper_pearson(5, 6)
    assert (round(five_of_six.low, 3), round(five_of_six.high, 3)) == (0.359, 0.996)
    assert clean_trials_needed(0.05) == 59
    assert clean_trials_needed(1.0) == 1


@given(st.floats(0.001, 0.999), st.floats(0.5, 0.999))
def test_no_fewer_clean_trials_would_do(bound: float, confidence: float) -> None:
    n = clean_trials_needed(bound, confidence)
    assert upper_bound(0, n, confidence) <= bound
    assert n == 1 or upper_bound(0, n - 1, confidence) > bound


def test_impossible_proportions_are_refused() -> None:
    with pytest.raises(ValueError, match="3 of 2"):
        clopper_pearson(3, 2)
    with pytest.raises(ValueError, match="-1 of 2"):
        fisher_greater(-1, 2, 0, 1)
    with pytest.raises(ValueError, match="at most 0"):
        clean_trials_needed(0)


@given(st.lists(st.booleans(), max_size=5), st.lists(st.booleans(), max_size=5))
def test_fisher_is_the_share_of_relabelings_at_least_as_lopsided(threads: list[bool], serial: list[bool]) -> None:
    pooled, k1 = threads + serial, sum(threads)
    splits = [sum(pooled[i] for i in chosen) for chosen in combinations(range(len(pooled)), len(threads))]
    brute = sum(k >= k1 for k in splits) / len(splits)
    assert fisher_greater(k1, len(threads), sum(serial), len(serial)) == pytest.approx(brute)


def test_fisher_known_values() -> None:
    assert fisher_greater(4, 4, 0, 4) == pytest.approx(1 / 70)
    assert fisher_greater(4, 6, 0, 6) == pytest.approx(15 / 495)
    assert fisher_greater(3, 3, 0, 0) == 1.0


@given(st.integers(0, 8), st.integers(0, 8), st.integers(0, 8), st.integers(0, 8))
def test_one_more_failing_control_never_lowers_the_p_value(k1: int, good1: int, k0: int, good0: int) -> None:
    p_value = fisher_greater(k1, k1 + good1, k0, k0 + good0)
    assert fisher_greater(k1, k1 + good1, k0 + 1, k0 + good0 + 1) >= p_value - 1e-12
    if good0:
        assert fisher_greater(k1, k1 + good1, k0 + 1, k0 + good0) >= p_value - 1e-12


TABLE = st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4), st.integers(0, 4)).map(
    lambda t: (t[0], t[0] + t[1], t[2], t[2] + t[3])
)


@given(TABLE, TABLE)
def test_two_strata_are_the_share_of_relabelings_of_both(
    one: tuple[int, int, int, int], other: tuple[int, int, int, int]
) -> None:
    def splits(k1: int, n1: int, k0: int, n0: int) -> list[int]:
        pooled = [True] * (k1 + k0) + [False] * (n1 + n0 - k1 - k0)
        return [sum(pooled[i] for i in chosen) for chosen in combinations(range(len(pooled)), n1)]

    ways = [a + b for a in splits(*one) for b in splits(*other)]
    brute = sum(way >= one[0] + other[0] for way in ways) / len(ways)
    assert stratified_greater((one, other)) == pytest.approx(brute)
    assert stratified_greater((one,)) == pytest.approx(fisher_greater(*one))


@given(TABLE, st.integers(0, 6), st.integers(0, 6))
def test_a_stratum_without_a_failure_or_with_nothing_else_changes_nothing(
    table: tuple[int, int, int, int], n1: int, n0: int
) -> None:
    alone = stratified_greater((table,))
    assert stratified_greater((table, (0, n1, 0, n0))) == pytest.approx(alone)
    assert stratified_greater(((n1, n1, n0, n0), table)) == pytest.approx(alone)


@pytest.mark.parametrize("rates", [(0.1, 0.9), (0.5, 0.5), (0.0, 0.3), (0.02, 0.98)])
def test_equal_rates_in_each_stratum_are_found_different_no_more_often_than_said(rates: tuple[float, float]) -> None:
    n = 5
    for limit in (0.05, 0.0167):
        found = 0.0
        for counts in product(range(n + 1), repeat=4):
            tables = ((counts[0], n, counts[1], n), (counts[2], n, counts[3], n))
            if stratified_greater(tables) <= limit:
                found += (
                    binomial(counts[0], n, rates[0])
                    * binomial(counts[1], n, rates[0])
                    * binomial(counts[2], n, rates[1])
                    * binomial(counts[3], n, rates[1])
                )
        assert found <= limit


def test_two_directions_together_need_half_of_the_trials() -> None:
    assert stratified_greater(((3, 3, 0, 3), (3, 3, 0, 3))) == pytest.approx(1 / 400)
    assert fisher_greater(3, 3, 0, 3) == pytest.approx(1 / 20)
    with pytest.raises(ValueError, match="3 of 2"):
        stratified_greater(((3, 2, 0, 1),))


def test_quartiles() -> None:
    assert quartiles([4, 1, 3, 2, 5]) == (2, 3, 4)
    assert quartiles([1, 2]) == (1.25, 1.5, 1.75)
    assert quartiles([7]) == (7, 7, 7)
    with pytest.raises(ValueError, match="no values"):
        quartiles([])


def test_the_ratio_interval_covers_the_true_ratio() -> None:
    rng = random.Random(1)
    for n in (2, 4, 6, 12):
        covered = 0
        for _ in range(2000):
            pairs = []
            for _ in range(n):
                machine = exp(rng.gauss(0, 0.5))  # what a block's two trials share, and the pairing takes out
                pairs.append((0.8 * machine * exp(rng.gauss(0, 0.05)), machine * exp(rng.gauss(0, 0.05))))
            found = ratio_interval(pairs)
            assert found is not None and found[1] is not None and found[2] is not None
            covered += found[1] <= 0.8 <= found[2]
        assert covered / 2000 == pytest.approx(0.95, abs=0.015)


def test_a_single_stalled_trial_proves_nothing() -> None:
    found = ratio_interval([(1.0, 1.0), (1.02, 1.0), (0.99, 1.0), (1.01, 1.0), (0.98, 1.0), (0.1, 1.0)])
    assert found is not None and found[2] is not None and found[2] > 1


def test_a_fivefold_loss_needs_few_blocks() -> None:
    found = ratio_interval([(4.3, 21.5), (4.4, 21.0), (4.2, 21.9)])
    assert found is not None and found[2] is not None and found[2] < 0.3


def test_pairs_that_say_nothing() -> None:
    assert ratio_interval([]) is None
    assert ratio_interval([(0.0, 1.0), (float("nan"), 1.0), (1.0, float("inf"))]) is None
    assert ratio_interval([(2.0, 1.0)]) == (pytest.approx(2.0), None, None)


@given(st.lists(st.tuples(st.floats(1e-300, 1e300), st.floats(1e-300, 1e300)), min_size=2, max_size=6))
def test_the_ratio_lies_in_its_interval(pairs: list[tuple[float, float]]) -> None:
    found = ratio_interval(pairs)
    assert found is not None and found[1] is not None and found[2] is not None
    assert log(found[1]) - 1e-6 <= log(found[0]) <= log(found[2]) + 1e-6


def test_the_signed_rank_interval_is_wilcoxons_and_covers_as_often_as_it_says() -> None:
    """Every assignment of signs to the pairs' distances from the true ratio is equally likely: counted out in full."""
    for n, expected in ((6, 1 - 2 / 64), (7, 1 - 6 / 128), (8, 1 - 10 / 256), (10, 1 - 50 / 1024)):
        covered = 0
        for signs in product((-1, 1), repeat=n):
            # Powers of a base above 1 with distinct distances, so that no mean of two is just the true ratio.
            pairs = [(exp(sign * 0.01 * 1.37**rank), 1.0) for rank, sign in enumerate(signs)]
            found = signed_rank_interval(pairs)
            assert found is not None and found[1] is not None and found[2] is not None
            covered += found[1] <= 1.0 <= found[2]
        assert covered / 2**n == pytest.approx(expected), n


def test_a_stalled_round_does_not_widen_the_signed_rank_interval() -> None:
    pairs = [(0.90, 1.0), (0.91, 1.0), (0.89, 1.0), (0.90, 1.0), (0.905, 1.0), (0.895, 1.0), (0.902, 1.0), (0.2, 1.0)]
    ranked, student = signed_rank_interval(pairs), ratio_interval(pairs)
    assert ranked is not None and ranked[0] == pytest.approx(0.9, abs=0.005) and ranked[2] is not None
    assert ranked[2] < 0.91 < 1 < (student or (0, 0, 0))[2]  # type: ignore[operator]


def test_too_few_pairs_for_ranks_and_more_than_need_them_have_students_interval() -> None:
    for pairs in ([(0.9, 1.0), (0.8, 1.0)], [(1.0 + 0.001 * i, 1.0) for i in range(5)], [(2.0, 1.0)], []):
        assert signed_rank_interval(pairs) == ratio_interval(pairs)
    many = [(1.0 + 0.001 * (i % 7), 1.0) for i in range(500)]
    assert signed_rank_interval(many) == ratio_interval(many)
    below = signed_rank_interval(many[:64])
    assert below != ratio_interval(many[:64])


@given(st.lists(st.tuples(st.floats(0.01, 100), st.floats(0.01, 100)), min_size=6, max_size=20), st.floats(0.01, 100))
def test_the_ranked_ratio_follows_its_pairs(pairs: list[tuple[float, float]], factor: float) -> None:
    one = signed_rank_interval(pairs)
    scaled = signed_rank_interval([(a * factor, b) for a, b in pairs])
    turned = signed_rank_interval([(b, a) for a, b in pairs])
    assert one is not None and scaled is not None and turned is not None
    assert None not in one and one[1] <= one[0] <= one[2]  # type: ignore[operator]
    assert scaled == pytest.approx(tuple(value * factor for value in one))  # type: ignore[operator]
    assert (turned[0], turned[2], turned[1]) == pytest.approx(tuple(1 / value for value in one))  # type: ignore[operator]
