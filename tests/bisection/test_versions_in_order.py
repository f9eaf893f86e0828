from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from bisect_env.bisection.versions import Versions, line
from bisect_env.matrix.versions import Release

DAY = datetime(2026, 3, 1, 12, tzinfo=UTC)


def releases(text: str) -> list[Release]:
    """In order, a day apart; ``!`` marks a yanked one."""
    return [
        Release(each.rstrip("!"), DAY + timedelta(days=at), each.endswith("!")) for at, each in enumerate(text.split())
    ]


def walk(text: str, good: str, bad: str, name: str = "torch", **options: bool) -> str:
    return steps(line(name, releases(text), good, bad, **options))


def steps(found: Versions) -> str:
    return " ".join(step.version for step in found.steps)


def test_final_releases_between_the_ends() -> None:
    assert walk("1.0 1.1 1.2rc1 1.2 1.2.post1 2.0.dev3 2.0", "1.0", "1.2.post1") == "1.0 1.1 1.2 1.2.post1"


def test_a_newer_good_end_goes_down() -> None:
    found = line("torch", releases("1.0 1.1 1.2"), "1.2", "1.0")
    assert (steps(found), found.downgrade) == ("1.2 1.1 1.0", True)


def test_ends_stay_as_written_also_where_the_index_does_not_have_them() -> None:
    assert walk("1.1.0", "1.0.0", "v1.2") == "1.0.0 1.1.0 v1.2"
    assert walk("1.0 1.1 1.2", "1.0.0", "1.2.0") == "1.0.0 1.1 1.2.0"


def test_yanked_ones_are_left_out_by_name() -> None:
    found = line("torch", releases("1.0 1.1! 1.2 1.3!"), "1.0", "1.3")
    assert steps(found) == "1.0 1.2 1.3"
    assert found.notes == ("torch 1.1 was yanked, and is left out",)


def test_pre_releases_when_asked_for_or_when_an_end_is_one() -> None:
    text = "1.0 1.1a1 1.1.dev1 1.1 1.2rc1 1.2.dev1"
    assert walk(text, "1.0", "1.1") == "1.0 1.1"
    assert line("torch", releases(text), "1.0", "1.1").notes == (
        "2 pre-releases are left out of the versions of torch",
    )
    assert walk(text, "1.0", "1.1", prereleases=True) == "1.0 1.1.dev1 1.1a1 1.1"
    assert walk(text, "1.0", "1.2rc1") == "1.0 1.1a1 1.1 1.2rc1"
    assert walk(text, "1.0", "1.2.dev1") == "1.0 1.1.dev1 1.1a1 1.1 1.2.dev1"


BUILDS = "2.8+cu126 2.8+cu128 2.9+cu128 2.9+cu130 2.10+cpu 2.10+cu128 2.10+cu130 2.11+cpu 2.11+cu130"


@pytest.mark.parametrize(
    ("good", "bad", "path"),
    [
        ("2.8+cu128", "2.10+cu128", "2.8+cu128 2.9+cu128 2.10+cu128"),
        ("2.8+cu128", "2.11+cu130", "2.8+cu128 2.9+cu128 2.10+cu128 2.10+cu130 2.11+cu130"),
        ("2.11+cu130", "2.8+cu128", "2.11+cu130 2.10+cu130 2.9+cu130 2.9+cu128 2.8+cu128"),
        ("2.9+cu130", "2.10+cu128", "2.9+cu130 2.10+cu130 2.10+cu128"),
        ("2.9+cu128", "2.9+cu130", "2.9+cu128 2.9+cu130"),
        ("2.9+cu130", "2.9+cu128", "2.9+cu130 2.9+cu128"),
        ("2.8+cu126", "2.11+cu130", "2.8+cu126 2.9+cu130 2.10+cu130 2.11+cu130"),
    ],
)
def test_the_build_is_kept_as_long_as_there_is_one_and_changes_in_a_step_of_its_own(
    good: str, bad: str, path: str
) -> None:
    assert walk(BUILDS, good, bad) == path


def test_two_builds_of_one_version_are_no_downgrade() -> None:
    assert not line("torch", releases(BUILDS), "2.9+cu130", "2.9+cu128").downgrade


def test_versions_without_the_build_are_named() -> None:
    found = line("torch", releases("1.0+cu128 1.1+cu130 1.1+cpu 1.2 1.3+cu128"), "1.0+cu128", "1.3+cu128")
    assert steps(found) == "1.0+cu128 1.2 1.3+cu128"
    assert found.notes == ("left out, since the index has no cu128 build of it: torch 1.1",)


def test_builds_against_a_torch_are_builds_too() -> None:
    text = "2.1+pt27cu126 2.1+pt28cu128 2.2+pt27cu126 2.2+pt28cu128"
    assert walk(text, "2.1+pt27cu126", "2.2+pt28cu128") == "2.1+pt27cu126 2.2+pt27cu126 2.2+pt28cu128"


def test_other_local_versions_are_versions_in_order() -> None:
    text = "1.0 1.0+local.1 1.0+local.2 1.1 1.1+git1234567"
    assert walk(text, "1.0", "1.1") == "1.0 1.0+local.1 1.0+local.2 1.1"
    assert walk(text, "1.0+local.2", "1.0") == "1.0+local.2 1.0+local.1 1.0"
    assert walk(text, "1.0+local.1", "1.1+git1234567") == "1.0+local.1 1.0+local.2 1.1 1.1+git1234567"


def test_one_version_is_no_line() -> None:
    assert walk("1.0", "1.0", "1.0.0") == "1.0"


def test_days_are_those_of_the_upload() -> None:
    found = line("x", releases("1.0 1.1"), "1.0", "1.2")
    assert [step.as_of for step in found.steps] == ["2026-03-01", "2026-03-02", None]


def test_what_is_no_version_has_no_order() -> None:
    with pytest.raises(ValueError, match="have no order"):
        line("x", (), "1.1+ubuntu0.2~x", "1.2")


VERSIONS = st.builds(
    lambda numbers, tail: ".".join(map(str, numbers)) + tail,
    st.lists(st.integers(0, 3), min_size=1, max_size=3),
    st.sampled_from(["", "", "", "rc1", ".dev2", ".post1", "+local.1", "+local.2"]),
)


@given(st.lists(VERSIONS, max_size=15), VERSIONS, VERSIONS, st.booleans())
def test_a_line_is_monotone_keeps_its_ends_and_is_its_own_reverse(
    index: list[str], good: str, bad: str, prereleases: bool
) -> None:
    found = line("x", [Release(each, None, False) for each in index], good, bad, prereleases=prereleases)
    order = [Version(step.version) for step in found.steps]
    assert found.steps[0].version == good
    assert order == sorted(set(order), reverse=found.downgrade)
    if Version(good) != Version(bad):
        assert found.steps[-1].version == bad
        back = line("x", [Release(each, None, False) for each in index], bad, good, prereleases=prereleases)
        assert [step.version for step in back.steps] == [step.version for step in reversed(found.steps)]
    inner = {Version(step.version) for step in found.steps[1:-1]}
    low, high = sorted((Version(good), Version(bad)))
    for version in map(Version, index):
        if low < version < high and not version.is_prerelease:
            assert version in inner


@given(
    st.sets(st.tuples(st.integers(1, 6), st.sampled_from(["cu126", "cu128", "cu130", ""]))),
    st.tuples(st.integers(1, 6), st.sampled_from(["cu128", "cu130"])),
    st.tuples(st.integers(1, 6), st.sampled_from(["cu128", "cu130"])),
)
def test_the_build_changes_at_most_once_between_labels_that_were_asked_for(
    index: set[tuple[int, str]], good: tuple[int, str], bad: tuple[int, str]
) -> None:
    def text(one: tuple[int, str]) -> str:
        return f"{one[0]}.0+{one[1]}" if one[1] else f"{one[0]}.0"

    found = line("torch", [Release(text(each), None, False) for each in index], text(good), text(bad))
    labels = [label for step in found.steps if (label := Version(step.version).local) is not None]
    assert set(labels) <= {good[1], bad[1]}
    if good != bad:
        assert sum(one != other for one, other in pairwise(labels)) == (good[1] != bad[1])
    numbers = [Version(step.version).major for step in found.steps]
    assert numbers == sorted(numbers, reverse=good[0] > bad[0])
