from __future__ import annotations

import random
from itertools import product
from math import exp, inf, log

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bisect_env.gate.records import Decision, Rules
from bisect_env.gate.throughput import (
    FIRST_SESSIONS,
    Session,
    judge,
    pairs_to_tell,
    sessions_wanted,
    units,
)

LIMIT = log(0.97)
RULES = Rules()


def single(logs: list[float]) -> list[Session]:
    """Sessions of one pair each, of these log ratios."""
    return [((100 * exp(value), 100.0),) for value in logs]


def drawn(seed: int, number: int, ratio: float = 1.0, noise: float = 0.04) -> list[Session]:
    rng = random.Random(seed)
    return single([log(ratio) + rng.gauss(0, noise) for _ in range(number)])


def test_a_session_is_one_unit_and_a_stalled_round_hardly_moves_it() -> None:
    calm = [(100.0, 100.0)] * 7
    assert units([[*calm, (1.0, 100.0)], calm]) == pytest.approx([0.0, 0.0], abs=1e-9)
    assert units([[(100.0, 0.0), (inf, 1.0)], [(97.0, 100.0)]]) == pytest.approx([LIMIT])


def test_a_sure_ratio_passes_or_fails() -> None:
    wiggle = [0.001 * i for i in range(-4, 4)]
    assert judge(RULES, single(wiggle)).decision is Decision.PASS
    assert judge(RULES, single([log(0.9) + each for each in wiggle])).decision is Decision.FAIL
    assert judge(RULES, single([LIMIT + each for each in wiggle])).decision is Decision.INCONCLUSIVE


def test_too_little_says_nothing() -> None:
    assert judge(RULES, []).ratio is None
    alone = judge(RULES, single([0.0]))
    assert (alone.decision, alone.ratio, alone.low) == (Decision.INCONCLUSIVE, pytest.approx(1.0), None)


@pytest.mark.parametrize("number", [8, 9, 11])
def test_at_the_limit_the_level_is_exact_over_all_signs(number: int) -> None:
    # If the limit is the true ratio, given the distances every combination of signs is as likely.
    rng = random.Random(number)
    distances = [rng.expovariate(20.0) for _ in range(number)]
    count = dict.fromkeys(Decision, 0)
    for signs in product((-1, 1), repeat=number):
        logs = [LIMIT + sign * distance for sign, distance in zip(signs, distances, strict=True)]
        count[judge(RULES, single(logs)).decision] += 1
    assert 0 < count[Decision.PASS] <= 0.05 * 2**number
    assert 0 < count[Decision.FAIL] <= 0.025 * 2**number


@settings(deadline=None)
@given(st.lists(st.floats(-0.3, 0.3), min_size=8, max_size=40), st.data())
def test_the_number_of_sessions_does_not_see_on_which_side_of_the_limit_they_are(
    distances: list[float], data: st.DataObject
) -> None:
    signs = data.draw(st.lists(st.sampled_from([-1, 1]), min_size=len(distances), max_size=len(distances)))
    flipped = [sign * distance for sign, distance in zip(signs, distances, strict=True)]
    one, two = (single([LIMIT + each for each in side]) for side in (distances, flipped))
    assert sessions_wanted(RULES, one, 1) == pytest.approx(sessions_wanted(RULES, two, 1), abs=1)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.005, 0.06))
def test_how_often_it_is_asked_changes_nothing(seed: int, noise: float) -> None:
    every = drawn(seed, 400, noise=noise)
    one = 0
    while one < sessions_wanted(RULES, every[:one], 1):
        one += 1
    jumps = 0
    while jumps < (wanted := sessions_wanted(RULES, every[:jumps], 1)):
        jumps = wanted
    assert one == jumps <= 400


def test_more_noise_takes_more_sessions() -> None:
    calm, noisy = (sessions_wanted(RULES, drawn(3, 20, noise=noise), 1) for noise in (0.005, 0.08))
    assert calm == 20 < noisy
    assert sessions_wanted(RULES, [], 8) == FIRST_SESSIONS


def test_pairs_asked_for_and_a_budget_bound_it() -> None:
    assert sessions_wanted(Rules(pairs=30), drawn(1, 3), 8) == 4
    assert sessions_wanted(RULES, drawn(3, 20, noise=0.2), 1, most=50) == 50
    assert sessions_wanted(RULES, drawn(3, 20, noise=0.2), 8, most=50) == 6


def test_sessions_without_a_pair_are_made_up_for_but_not_for_ever() -> None:
    empty: list[Session] = [()]
    assert sessions_wanted(RULES, empty * 2, 8) == FIRST_SESSIONS + 2
    assert sessions_wanted(RULES, empty * 30, 8) == 2 * FIRST_SESSIONS


@pytest.mark.parametrize("number", [65, 150])
def test_beyond_ranked_numbers_stalls_do_not_widen_the_bounds(number: int) -> None:
    calm = drawn(5, number, noise=0.02)
    stalled = [*single([-2.0] * (number // 20)), *calm[number // 20 :]]
    before, after = judge(RULES, calm), judge(RULES, stalled)
    assert before.low is not None and after.low is not None
    assert before.decision is after.decision is Decision.PASS
    assert after.low == pytest.approx(before.low, abs=0.01)


def test_the_pairs_that_are_proposed_grow_towards_the_limit() -> None:
    near, far = (pairs_to_tell(RULES, drawn(7, 40, ratio=ratio)) for ratio in (0.985, 1.02))
    assert near is not None and far is not None
    assert near[0] > far[0] and near[1] is far[1] is Decision.PASS
    slower = pairs_to_tell(RULES, drawn(7, 40, ratio=0.94))
    assert slower is not None and slower[1] is Decision.FAIL
    assert pairs_to_tell(RULES, drawn(7, 1)) is None
