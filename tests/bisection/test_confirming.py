"""What confirming trials establish: both directions judged together, how many it takes, and where they disagree."""

from __future__ import annotations

import random
from math import nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisect_env.bisection.confirming import LOOKS, MOST, Planned, conclude, disagreement, looks
from bisect_env.bisection.records import BAD, GOOD, Confirmation, Levels, Stage
from bisect_env.bisection.stages import Course
from bisect_env.bisection.wants import Trials
from bisect_env.search.records import Tally
from bisect_env.verdicts.statistics import fisher_greater
from tests.bisection.simulated import World, factor, specification

FAILS, PASSES = (("a", BAD), ("b", BAD)), (("b", BAD),)
FAILS_BESIDE_GOOD, PASSES_BESIDE_GOOD = (("a", BAD),), ()
ARMS = (
    Planned("a at bad", BAD, FAILS, True),
    Planned("a at good", BAD, PASSES, False),
    Planned("a at bad, the rest good", GOOD, FAILS_BESIDE_GOOD, True),
    Planned("the good end", GOOD, PASSES_BESIDE_GOOD, False),
)


def told(*counts: tuple[int, int], arms: tuple[Planned, ...] = ARMS, times: int = LOOKS) -> Confirmation:
    """Of failures and trials of each arm."""
    tallies: dict[Levels, Tally] = {arm.point: Tally(k, n - k) for arm, (k, n) in zip(arms, counts, strict=True)}
    found = conclude(arms, tallies, {arm.point: "env" for arm in arms}, 0.95, times)
    assert found is not None
    return found


def test_both_directions_together_say_more_than_the_better_one() -> None:
    both = told((3, 6), (0, 6), (3, 6), (0, 6))
    assert both.confirmed and both.p_value < 0.0125 < 0.05 < fisher_greater(3, 6, 0, 6)
    assert both.background == BAD and (both.bad.k, both.good.k) == (3, 0)
    assert both.other is not None and (both.other[1].k, both.other[0].k) == (3, 0)
    # The other direction may say more by chance: then its rates are not the ones to tell.
    assert told((5, 10), (0, 10), (9, 10), (0, 10)).background == BAD
    assert told((1, 10), (0, 10), (9, 10), (0, 10)).background == GOOD
    alone = told((3, 6), (0, 6), arms=ARMS[:2])
    assert not alone.confirmed and alone.other is None
    assert alone.p_value == pytest.approx(fisher_greater(3, 6, 0, 6))


def test_without_an_arm_of_each_kind_there_is_nothing_to_conclude() -> None:
    assert conclude(ARMS[:1], {FAILS: Tally(3, 0)}, {}, 0.95, LOOKS) is None
    assert conclude((ARMS[0], ARMS[3]), {FAILS: Tally(3, 0)}, {}, 0.95, LOOKS) is None
    assert conclude((), {}, {}, 0.95, LOOKS) is None


def test_a_direction_whose_other_arm_cannot_be_tested_is_left_out() -> None:
    found = told((6, 6), (0, 6), (0, 6), arms=ARMS[:3])
    assert found.background == BAD and found.other is None and len(found.arms) == 3
    assert found.p_value == pytest.approx(fisher_greater(6, 6, 0, 6))


def test_of_a_pair_each_half_must_be_needed() -> None:
    arms = (
        Planned("both", BAD, FAILS, True),
        Planned("a alone at good", BAD, PASSES, False),
        Planned("b alone at good", BAD, FAILS_BESIDE_GOOD, False),
    )
    assert told((8, 8), (0, 8), (0, 8), arms=arms).confirmed
    half = told((8, 8), (0, 8), (8, 8), arms=arms)
    assert not half.confirmed and half.p_value == 1.0
    assert half.good.k == 8, "the rates are those of the arm that speaks against it"


def test_directions_that_disagree_say_so() -> None:
    agreed = told((9, 10), (0, 10), (8, 10), (0, 10))
    assert agreed.confirmed and disagreement(agreed, 0.95) == ""
    needy = told((9, 10), (0, 10), (0, 10), (0, 10))
    assert needy.confirmed and disagreement(needy, 0.95) == "it needs something else of the bad side"
    helped = told((10, 10), (0, 10), (4, 10), (0, 10))
    assert disagreement(helped, 0.95) == "it fails more often beside something else of the bad side"
    second = told((10, 10), (9, 10), (9, 10), (0, 10))
    assert second.background == GOOD
    assert disagreement(second, 0.95) == "something else of the bad side fails as well"
    chance = told((3, 6), (0, 6), (1, 6), (0, 6))
    assert disagreement(chance, 0.95) == "", "that may be chance"


def test_trials_by_rate() -> None:
    assert looks(0.9, 4, 2, None) == (3, 6, 12, 24)
    assert looks(0.3, 4, 2, None) == (9, 18, 36, 60)
    assert looks(0.9, 2, 1, None)[0] == 6
    assert looks(0.3, 4, 2, 12) == (9, 12)
    assert looks(0.3, 4, 2, 1) == (1,)
    # Rare: no more than the search took, or than MOST.
    assert looks(0.01, 4, 2, None) == (MOST // 4,)
    assert looks(nan, 4, 2, None) == (MOST // 4,)
    assert looks(0.05, 4, 2, None, 400) == (50, 100)


def test_a_single_look_may_spend_all_of_the_risk() -> None:
    tallies = {FAILS: Tally(4, 1), PASSES: Tally(0, 5)}
    found = [conclude(ARMS[:2], tallies, {}, 0.95, times) for times in (1, 4)]
    assert [each is not None and each.confirmed for each in found] == [True, False]


@given(st.floats(0, 1), st.sampled_from([(2, 1), (4, 2), (6, 2), (3, 1)]), st.integers(0, 10_000))
def test_looks_grow_and_keep_to_what_the_search_took(rate: float, shape: tuple[int, int], searched: int) -> None:
    arms, directions = shape
    sizes = looks(rate, arms, directions, None, searched)
    assert 1 <= len(sizes) <= LOOKS and list(sizes) == sorted(set(sizes))
    assert sizes[0] >= 1 and sizes[-1] * arms <= max(MOST, searched)


@pytest.mark.parametrize(("rate", "false_rate"), [(0.9, 0.0), (0.5, 0.02), (0.3, 0.02)])
def test_an_innocent_is_hardly_ever_confirmed_and_a_culprit_hardly_ever_missed(rate: float, false_rate: float) -> None:
    """An innocent makes no difference: beside the true culprit both arms fail, beside the good side neither."""
    rng = random.Random(5)
    runs, confirmed = 200, {True: 0, False: 0}
    for guilty in (True, False):
        rates = (rate, false_rate, rate, false_rate) if guilty else (rate, rate, false_rate, false_rate)
        for _ in range(runs):
            counts, done = [0] * 4, 0
            sizes = looks(rate, 4, 2, None)
            for size in sizes:
                counts = [
                    k + sum(rng.random() < p for _ in range(size - done)) for k, p in zip(counts, rates, strict=True)
                ]
                done = size
                if told(*((k, size) for k in counts), times=len(sizes)).confirmed:
                    confirmed[guilty] += 1
                    break
    # Of 200 at 5 % more than 19 are expected once in 200 times.
    assert confirmed[False] <= 19
    assert confirmed[True] >= 0.95 * runs


def test_the_two_directions_have_trials_of_their_own() -> None:
    """What takes turns has the same seeds: only an arm and the one that it is compared with may."""
    asked = specification([factor("a"), factor("b")], seed=2)
    course = Course(asked, asked.difference.factors)
    world = World(lambda chosen: 0.8 if chosen.get("a") == BAD else 0.0, 2)
    wanted = []
    while course.want is not None:
        if isinstance(course.want, Trials) and course.want.stage is Stage.CONFIRM:
            wanted.append(course.want)
        course.give(world.answer(course.want))
    assert course.confirmation is not None and course.confirmation.confirmed and course.confirmation.other is not None
    assert [{dict(point).get("b", GOOD) for point in want.points} for want in wanted[:2]] == [{BAD}, {GOOD}]
    assert all(len(want.points) == 2 for want in wanted) and wanted[0].size == wanted[1].size
