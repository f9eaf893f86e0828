"""The course of a bisection against simulated worlds: right answers over many seeds, and replay as a law."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bisect_env.bisection.concluding import conclude
from bisect_env.bisection.records import BAD, GOOD, Answer, Finding, Stage
from bisect_env.bisection.stages import Course
from bisect_env.snapshots.factors import Factor, Kind
from tests.bisection.simulated import World, factor, number, specification

NINE = tuple(str(position) for position in range(1, 10))


def course_of(factors: int, **options: object) -> Course:
    every = [factor(f"p{index:02}") for index in range(factors)]
    asked = specification(every, **options)
    return Course(asked, every)


def finding(course: Course, why: str = "") -> Finding:
    return conclude(course, "r", 0.0, why)


def is_bad(chosen: Mapping[str, str], *names: str) -> bool:
    return all(chosen.get(name, GOOD) != GOOD for name in names)


@pytest.mark.parametrize(("rate", "false_rate"), [(0.9, 0.0), (0.5, 0.02), (0.3, 0.02)])
def test_one_of_many_packages_over_many_seeds(rate: float, false_rate: float) -> None:
    wrong = open_ = 0
    for seed in range(25):
        culprit = f"p{seed % 12:02}"
        world = World(lambda chosen, culprit=culprit: rate if is_bad(chosen, culprit) else false_rate, seed)  # type: ignore[misc]
        found = finding(world.run(course_of(12, seed=seed)))
        if found.answer is not Answer.CULPRIT:
            open_ += 1
        elif [each.name for each in found.factors] != [culprit]:
            wrong += 1
    # 5 % of 25 is 1.25; three wrong ones have a chance of 13 % then, four of 3 %.
    assert wrong <= 3
    assert open_ <= 3


def test_the_culprit_among_sixty_packages() -> None:
    world = World(lambda chosen: 0.8 if is_bad(chosen, "p41") else 0.0, 3)
    found = finding(world.run(course_of(60, seed=3)))
    assert [each.name for each in found.factors] == ["p41"]
    assert len(found.eliminated) == 59


def test_pairs_over_many_seeds() -> None:
    right = 0
    for seed in range(12):
        pair = (f"p{seed % 8:02}", f"p{(seed + 3) % 8:02}")
        world = World(lambda chosen, pair=pair: 0.8 if is_bad(chosen, *pair) else 0.0, seed)  # type: ignore[misc]
        found = finding(world.run(course_of(8, seed=seed)))
        right += found.answer is Answer.PAIR and {each.name for each in found.factors} == set(pair)
    assert right >= 10


def test_versions_over_many_seeds() -> None:
    right = 0
    for seed in range(20):
        first_bad = 1 + seed % 8
        world = World(lambda chosen, first=first_bad: 0.6 if number(chosen, "p00", NINE) >= first else 0.01, seed, NINE)  # type: ignore[misc]
        course = Course(asked := specification([factor("p00", "1", "9")], seed=seed), asked.difference.factors)
        found = finding(world.run(course))
        right += found.versions is not None and found.versions.first_bad == NINE[first_bad]
    assert right >= 17


def test_three_that_only_fail_together_are_no_pair() -> None:
    world = World(lambda chosen: 1.0 if is_bad(chosen, "p00", "p01", "p02") else 0.0, 5)
    found = finding(world.run(course_of(6, seed=5)))
    assert found.answer is Answer.MISFIT, found.sentence


def test_what_this_host_cannot_change_is_held_and_nothing_else_is_blamed() -> None:
    # The bad end fails by something that no mix has: none of the factors.
    ends = {(), tuple((f"p{index:02}", BAD) for index in range(4))}
    fails = tuple((f"p{index:02}", BAD) for index in range(4))
    world = World(lambda chosen: float(tuple(sorted(chosen.items())) == fails), 2)
    found = finding(world.run(course_of(4, seed=2)))
    assert ends and found.answer in (Answer.NONE, Answer.MISFIT), found.sentence


def test_a_wrong_answer_of_the_search_is_not_confirmed() -> None:
    """The world changes once the search has its answer: its trials cannot vouch for it."""
    course = course_of(3, seed=1)
    before = World(lambda chosen: float(is_bad(chosen, "p01")), 1)
    while course.stage is not Stage.CONFIRM and course.want is not None:
        course.give(before.answer(course.want))
    World(lambda chosen: 0.3, 1).run(course)
    found = finding(course)
    assert found.answer is Answer.INCONCLUSIVE
    assert "fresh trials do not establish it" in found.sentence


def test_along_one_distribution_without_a_search_for_it() -> None:
    asked = specification([factor("p00", "1", "9"), factor("p01")], along="p00", seed=4)
    world = World(lambda chosen: float(number(chosen, "p00", NINE) >= 5), 4, NINE)
    course = world.run(Course(asked, asked.difference.factors))
    assert course.versions is not None and course.versions.first_bad == "6"
    assert all(seen.stage is not Stage.FACTORS for seen in course.observations)


@pytest.mark.parametrize("rate", [0.9, 0.3])
def test_along_an_innocent_says_so_before_anything_is_stated(rate: float) -> None:
    for seed in range(10):
        asked = specification([factor("p00", "1", "9"), factor("p01")], along="p00", seed=seed)
        world = World(lambda chosen: rate if is_bad(chosen, "p01") else 0.01, seed, NINE)
        course = world.run(Course(asked, asked.difference.factors))
        found = finding(course)
        assert (found.answer, found.versions) == (Answer.NONE, None), found.sentence
        assert found.sentence.startswith("p00 alone makes no difference: with everything else at bad ")
        assert "with everything else at good " in found.sentence and "Leave out --along" in found.sentence
        # No version between the two was tried, and nothing was confirmed.
        assert {level for seen in found.observations for _, level in seen.point} <= {GOOD, BAD}
        assert found.confirmation is None


def test_along_an_innocent_without_versions_between_says_so_too() -> None:
    asked = specification([factor("p00"), factor("p01")], along="p00", seed=1)
    world = World(lambda chosen: 0.9 if is_bad(chosen, "p01") else 0.0, 1)
    found = finding(world.run(Course(asked, asked.difference.factors)))
    assert (found.answer, found.versions) == (Answer.NONE, None), found.sentence


def test_along_what_only_matters_beside_the_good_side_is_walked_there() -> None:
    """Either of the two is enough: beside the bad one of the other it makes no difference."""
    asked = specification([factor("p00", "1", "9"), factor("p01")], along="p00", seed=2)
    world = World(lambda chosen: float(is_bad(chosen, "p01") or number(chosen, "p00", NINE) >= 3), 2, NINE)
    course = world.run(Course(asked, asked.difference.factors))
    assert course.versions is not None
    assert (course.versions.background, course.versions.first_bad) == (GOOD, "4")


def test_a_line_whose_ends_are_those_of_the_bisection_is_walked_at_once() -> None:
    asked = specification([factor("p00", "1", "9")], along="p00", seed=3)
    world = World(lambda chosen: float(number(chosen, "p00", NINE) >= 6), 3, NINE)
    course = world.run(Course(asked, asked.difference.factors))
    walked = [seen.point for seen in course.observations if seen.stage is Stage.VERSIONS]
    assert course.versions is not None and course.versions.first_bad == "7"
    assert walked[0] not in course.both_ends


def test_both_of_a_pair_are_walked_over_many_seeds() -> None:
    right = 0
    for seed in range(10):
        first, second = 1 + seed % 8, 1 + (seed * 3) % 8
        factors = [factor("p00", "1", "9"), factor("p01", "1", "9"), factor("p02")]
        asked = specification(factors, seed=seed)

        def fails(chosen: Mapping[str, str], first: int = first, second: int = second) -> float:
            both = number(chosen, "p00", NINE) >= first and number(chosen, "p01", NINE) >= second
            return 0.8 if both else 0.0

        found = finding(World(fails, seed, NINE).run(Course(asked, factors)))
        assert found.answer is Answer.PAIR, found.sentence
        assert found.versions is not None and found.second_versions is not None
        assert (found.versions.distribution, found.second_versions.distribution) == ("p00", "p01")
        right += (found.versions.first_bad, found.second_versions.first_bad) == (NINE[first], NINE[second])
        assert found.confirmation is not None
        # What is confirmed are the versions that are named, not the ends that they were found between.
        bad = {arm.point for arm in found.confirmation.arms if arm.fails}
        assert all(dict(point).get("p00", "") not in (GOOD, "") for point in bad)
    assert right >= 8


def test_a_variable_and_a_package_that_only_fail_together_are_walked_along_the_package() -> None:
    variable = Factor("OMP_NUM_THREADS", Kind.VARIABLE, "1", "8", ())
    factors = [factor("p00", "1", "9"), variable, factor("p02")]
    asked = specification(factors, seed=5)
    world = World(
        lambda chosen: 0.9 * (is_bad(chosen, "OMP_NUM_THREADS") and number(chosen, "p00", NINE) >= 4), 5, NINE
    )
    found = finding(world.run(Course(asked, factors)))
    assert (found.answer, found.second_versions) == (Answer.PAIR, None), found.sentence
    assert found.versions is not None and found.versions.first_bad == "5"
    assert "p00 5 (4 is the last good version) and OMP_NUM_THREADS 1 -> 8: only both" in found.sentence


def test_versions_that_only_resolve_beside_the_good_side_are_searched_there() -> None:
    asked = specification([factor("p00", "1", "9"), factor("p01")], seed=4)

    def unresolvable(chosen: Mapping[str, str]) -> bool:
        between = chosen.get("p00", GOOD) not in (GOOD, BAD)
        return between and chosen.get("p01", GOOD) == BAD

    world = World(lambda chosen: float(number(chosen, "p00", NINE) >= 5), 4, NINE, unresolvable)
    course = world.run(Course(asked, asked.difference.factors))
    assert course.versions is not None
    assert (course.versions.background, course.versions.first_bad) == (GOOD, "6")


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000), cut=st.integers(0, 40), factors=st.integers(1, 6))
def test_replaying_any_part_of_the_answers_gives_the_same_state(seed: int, cut: int, factors: int) -> None:
    world = World(lambda chosen: 0.7 if is_bad(chosen, "p00") else 0.02, seed, NINE)
    course = world.run(course_of(factors, seed=seed), most=cut)
    again = course_of(factors, seed=seed)
    for answer in world.answers:
        again.give(answer)
    assert again.want == course.want
    assert again.suspects == course.suspects
    assert finding(again) == finding(course)
    # And going on from there is going on.
    rest = World(lambda chosen: 0.7 if is_bad(chosen, "p00") else 0.02, seed + 1, NINE)
    other = World(lambda chosen: 0.7 if is_bad(chosen, "p00") else 0.02, seed + 1, NINE)
    assert finding(rest.run(course)) == finding(other.run(again))


def test_an_answer_to_something_else_is_refused() -> None:
    course = course_of(2)
    with pytest.raises(ValueError, match="is no answer"):
        course.give(World(lambda chosen: 0.0, 1).answer(_lookup()))


def _lookup() -> object:
    from bisect_env.bisection.wants import Lookup

    return Lookup(Stage.VERSIONS, "p00", "1", "2")
