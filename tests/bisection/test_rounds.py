"""Several batches at a time: rounds that are told in the order of asking, and a log that goes on with them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bisect_env.bisection import driver, log
from bisect_env.bisection.concluding import conclude
from bisect_env.bisection.log import Told
from bisect_env.bisection.records import Answer, Budget, Specification, Stage
from bisect_env.bisection.stages import Course
from bisect_env.bisection.wants import Round, Want
from bisect_env.store.database import Store
from tests.bisection.simulated import World, factor, number, specification
from tests.bisection.test_resuming import killed_it_finds_the_same, only_once, question
from tests.bisection.world import Bisections, Listener

LINE = tuple(str(position) for position in range(1, 18))


def along(seed: int, parallel: int) -> tuple[Course, World]:
    """A bisection along 17 versions, and its world."""
    first_bad = 1 + seed % 16
    asked = specification([factor("p00", "1", "17")], seed=seed, parallel=parallel)
    rate = {True: 0.6, False: 0.01}
    world = World(lambda chosen: rate[number(chosen, "p00", LINE) >= first_bad], seed, LINE)
    return Course(asked, asked.difference.factors), world


def wants(course: Course, world: World) -> list[Want]:
    asked = []
    while course.want is not None:
        asked.append(course.want)
        answer = world.answer(course.want)
        world.answers.append(answer)
        course.give(answer)
    return asked


def test_rounds_find_the_version_in_fewer_steps_than_one_batch_after_the_other() -> None:
    right, steps = 0, Counter[int]()
    for seed in range(12):
        for parallel in (1, 8):
            course, world = along(seed, parallel)
            rounds = [want for want in wants(course, world) if isinstance(want, Round)]
            assert max(len(want.points) for want in rounds) <= parallel
            assert all(len(set(want.points)) == len(want.points) for want in rounds)
            steps[parallel] += len(rounds)
        found = conclude(course, "r", 0.0, "")
        right += found.versions is not None and found.versions.first_bad == LINE[1 + seed % 16]
    assert right >= 10
    assert steps[8] * 3 <= steps[1]


@given(st.integers(0, 200), st.integers(1, 6))
@settings(max_examples=15, deadline=None)
def test_the_same_answers_lead_to_the_same_wants(seed: int, parallel: int) -> None:
    course, world = along(seed, parallel)
    asked = wants(course, world)
    again, _ = along(seed, parallel)
    for want, answer in zip(asked, world.answers, strict=True):
        assert again.want == want
        again.give(answer)
    assert again.want is None
    assert (again.suspects, again.beliefs, again.ranges) == (course.suspects, course.beliefs, course.ranges)


def test_a_round_that_a_budget_cut_short_goes_on_with_what_was_told() -> None:
    course, world = along(3, 6)
    cut = 0
    while course.want is not None:
        want = course.want
        if isinstance(want, Round) and len(want.points) > 2:
            whole = want
            want, cut = replace(want, points=want.points[:2], sizes=want.sizes[:2]), cut + 1
            assert whole.points[:2] == want.points
        course.give(world.answer(want))
    found = conclude(course, "r", 0.0, "")
    assert cut and found.versions is not None and found.versions.first_bad == LINE[4]


def test_mixes_that_do_not_resolve_leave_the_round_to_others() -> None:
    every = [factor(f"p{index:02}") for index in range(8)]
    asked = specification(every, seed=2, parallel=4)
    together = {"p01", "p05"}
    world = World(
        lambda chosen: 0.9 if chosen.get("p03") == "bad" else 0.0,
        2,
        unresolvable=lambda chosen: len(together & {name for name, level in chosen.items() if level == "bad"}) == 1,
    )
    course = world.run(Course(asked, every))
    found = conclude(course, "r", 0.0, "")
    assert [each.name for each in found.factors] == ["p03"]
    assert not any(seen.skipped for seen in found.observations)


@pytest.fixture
def asked(bisections: Bisections) -> Specification:
    """A culprit among three, along five versions; three batches at a time, two trials at once."""
    return replace(question(bisections), parallel=3, at_once=2)


def test_batches_of_several_sizes_run_together_and_each_gets_its_own(
    bisections: Bisections, asked: Specification
) -> None:
    found = bisections.found(asked)
    assert found.answer is Answer.CULPRIT and found.versions is not None, found.sentence
    assert (found.versions.last_good, found.versions.first_bad) == ("3.0", "4.0")
    only_once(bisections, found)
    (path,) = log.bisections(bisections.root)
    history = log.read(path)
    rounds = [answer for answer in history.answers if isinstance(answer, Told)]
    searched = [each for each in rounds if each.observations[0].stage is not Stage.CONFIRM]
    assert max(len(each.observations) for each in searched) > 2
    for each in searched:
        assert max(len(seen.trials) for seen in each.observations) == each.size
    assert history.blocks == sum(each.size for each in rounds)


def test_killed_in_the_middle_of_rounds_it_asks_the_same_and_finds_the_same(
    bisections: Bisections, asked: Specification, tmp_path: Path
) -> None:
    whole = bisections.found(asked)
    project = replace(bisections, folder=tmp_path / "killed")
    again = replace(question(project), parallel=3, at_once=2)
    killed_it_finds_the_same(project, again, whole, (1.5, 2.5, 2.0))


def test_a_budget_ends_within_a_round_and_a_larger_one_goes_on(bisections: Bisections, asked: Specification) -> None:
    little = bisections.found(replace(asked, budget=Budget(trials=19)))
    assert little.answer is Answer.INCONCLUSIVE and little.trials == 19
    (path,) = log.bisections(bisections.root)
    history = log.read(path)
    course = Course(history.header.specification, history.header.factors)
    for answer in history.answers[:-1]:
        course.give(answer)
    assert isinstance(course.want, Round) and isinstance(history.answers[-1], Told)
    assert sum(course.want.sizes) > sum(len(seen.trials) for seen in history.answers[-1].observations)
    found = bisections.found(asked)
    assert found.answer is Answer.CULPRIT
    assert found.observations[: len(little.observations)] == little.observations
    only_once(bisections, found)


def test_it_goes_on_with_as_many_at_a_time_as_it_began_with(bisections: Bisections, asked: Specification) -> None:
    found = bisections.found(replace(asked, parallel=None))
    (path,) = log.bisections(bisections.root)
    assert log.read(path).header.specification.parallel == 1
    listener = Listener()
    with Store(bisections.root / "store.sqlite") as store:
        place = bisections.place(store, listener)
        assert driver.begun(replace(asked, parallel=2), place) == path
    assert listener.notes == [
        "--parallel 2: this bisection began with 1, and goes on with that: what its log says answers so many batches "
        "at a time"
    ]
    assert bisections.found(asked).observations == found.observations
