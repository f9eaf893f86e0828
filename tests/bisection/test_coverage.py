"""How much of a line was tried, and what is assumed of the rest, is said in a sentence."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisect_env.bisection.concluding import conclude
from bisect_env.bisection.coverage import NAMED, coverage
from bisect_env.bisection.log import Candidates
from bisect_env.bisection.records import Observation, Stage
from bisect_env.bisection.stages import Course
from tests.bisection.simulated import World, factor, number, specification

LINE = ("1", "2", "3", "4", "5", "6", "7", "8")


def seen(version: str, failures: int, passes: int, name: str = "x") -> Observation:
    return Observation(Stage.VERSIONS, 0, (("a", "bad"), (name, version)), "", "", failures, passes)


def test_what_was_tried_beyond_the_change_and_what_it_showed() -> None:
    observations = [seen("3", 0, 2), seen("4", 1, 1), seen("6", 2, 0), seen("7", 1, 3), seen("7", 0, 2)]
    assert coverage("x", LINE, "3", "4", observations) == (
        "6 of 8 versions were tried; that between the good end 1 and 3 none fails and that between 4 and the bad end 8 "
        "all fail is assumed where none was. Of the 3 between 4 and 8, 2 were: 6 and 7 failed."
    )
    # One that never failed there: the reader has to know.
    assert coverage("x", LINE, "3", "4", [*observations[:3], seen("7", 0, 5)]).endswith(
        "Of the 3 between 4 and 8, 2 were: 6 failed, 7 (0 of 5) did not."
    )


def test_a_line_of_which_nothing_beyond_the_change_was_tried() -> None:
    said = coverage("x", LINE, "3", "4", [seen("2", 0, 2), seen("3", 0, 2), seen("4", 2, 0)])
    assert said == (
        "5 of 8 versions were tried; that between 4 and the bad end 8 all fail is assumed where none was. "
        "Of the 3 between 4 and 8, none was."
    )


def test_a_line_that_was_tried_throughout_assumes_nothing() -> None:
    assert coverage("x", LINE, "3", "4", [seen(each, 1, 1) for each in LINE]) == "All 8 versions were tried."
    # Those that are left out cannot be told apart, and are no assumption.
    some = [seen(each, 1, 1) for each in ("2", "3", "6", "7")]
    assert coverage("x", LINE, "3", "6", some) == "6 of 8 versions were tried."


def test_two_versions_have_nothing_between_them() -> None:
    assert coverage("x", ("1", "2"), "1", "2", []) == ""


def test_members_of_a_group_that_was_taken_apart_and_other_distributions() -> None:
    own = [seen("3", 0, 2, "torch/x"), seen("4", 2, 0, "torch/x"), seen("2", 1, 1, "y"), seen("5", 0, 0, "x")]
    assert coverage("x", LINE, "3", "4", own).startswith("4 of 8 versions")


def test_commits_by_their_short_hash() -> None:
    line = ("1", *(f"git+file:///r@{at}{'0' * 39}" for at in range(4)), "2")
    said = coverage("x", line, line[1], line[2], [seen(line[2], 1, 0)], "commits", lambda text: text[-40:][:3])
    assert said.startswith("3 of 6 commits were tried; that between 100 and the bad end 2 all fail is assumed")


@given(
    st.integers(3, 40).flatmap(
        lambda n: st.tuples(st.just(n), st.integers(1, n - 1), st.sets(st.integers(1, n - 2)), st.booleans())
    )
)
def test_it_counts_right_and_names_no_more_than_a_few(drawn: tuple[int, int, set[int], bool]) -> None:
    count, high, tried, fails = drawn
    line = [f"v{at}" for at in range(count)]
    observations = [seen(line[at], int(fails), int(not fails)) for at in tried]
    said = coverage("x", line, line[high - 1], line[high], observations)
    whole = len(tried | {0, count - 1})
    assert said.startswith(f"All {count} versions" if whole == count else f"{whole} of {count} versions")
    assert len(said) < 300 + 12 * NAMED


@pytest.mark.parametrize("seed", range(4))
def test_a_history_that_broke_was_fixed_and_broke_again_is_not_told_as_if_all_of_it_were_known(seed: int) -> None:
    versions = tuple(str(at) for at in range(1, 32))

    def rate(chosen: Mapping[str, str]) -> float:
        at = number(chosen, "p00", versions)
        return float(4 <= at < 6 or at >= 20)

    world = World(rate, seed, versions)
    asked = specification([factor("p00", "1", "31")], seed=seed)
    course = world.run(Course(asked, asked.difference.factors))
    lines = [answer for answer in world.answers if isinstance(answer, Candidates)]
    found = conclude(course, "r", 0.0, "", lines)
    tried = {dict(each.point)["p00"] for each in course.observations if each.stage is Stage.VERSIONS}
    assert found.versions is not None and found.versions.first_bad in ("5", "21")
    assert f"{len(tried - {'bad', 'good'}) + 2} of 31 versions were tried; that " in found.tried
    assert "and the bad end 31" in found.tried and "is assumed where none was" in found.tried
