"""Ranges and the releases they stand for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from bisect_env.matrix.problems import Unfit
from bisect_env.matrix.versions import Release, expand, is_range, newest, parse_range, parse_version

DAY = datetime(2026, 1, 1, tzinfo=UTC)


def released(*versions: str) -> list[Release]:
    return [Release(version, None, False) for version in versions]


@pytest.mark.parametrize("text", [">=2", "<3", "==2.*", "!=2.1", "~=2.1", "===2.1"])
def test_what_is_a_range(text: str) -> None:
    assert is_range(text)


@pytest.mark.parametrize("text", ["2.11.0", "~/tree", "./tree", "git+https://x/y@z", "2.11.0+cu130"])
def test_what_is_no_range(text: str) -> None:
    assert not is_range(text)


def test_pre_releases_development_releases_and_yanked_ones_are_left_out() -> None:
    releases = [*released("2.9.0", "2.10.0", "2.11.0rc1", "2.12.0.dev1", "2.13.0a1"), Release("2.8.0", None, True)]
    assert expand(parse_range(">=2"), releases) == ("2.9.0", "2.10.0")
    assert expand(parse_range(">=2.11.0rc1"), releases) == ()


def test_post_releases_are_releases() -> None:
    assert expand(parse_range(">=2.5,<2.6"), released("2.5.1", "2.5.1.post1")) == ("2.5.1", "2.5.1.post1")


def test_variants_of_one_version_are_one() -> None:
    releases = released("2.11.0+cu128", "2.11.0+cu130", "2.12.0+cpu")
    assert expand(parse_range(">=2.11"), releases) == ("2.11.0", "2.12.0")


def test_what_is_no_version_is_left_out() -> None:
    assert expand(parse_range(">=0"), released("1.1+ubuntu0.2", "not-a-version", "2004d")) == ("1.1",)


def test_releases_after_the_moment_are_left_out_where_the_index_dates_them() -> None:
    releases = [Release("1", DAY, False), Release("2", DAY + timedelta(days=9), False), Release("3", None, False)]
    assert expand(parse_range(">=0"), releases, before=DAY + timedelta(days=1)) == ("1", "3")


def test_newest() -> None:
    assert newest(released("2.9.0", "2.10.0", "3.0.0rc1")) == "2.10.0"
    assert newest([]) is None


@pytest.mark.parametrize(
    ("text", "repaired"), [("2.1l.0", "2.11.0"), ("2.1O", "2.10"), ("2,11", "2.11"), ("2..1", "2.1")]
)
def test_a_typo_is_put_right(text: str, repaired: str) -> None:
    with pytest.raises(Unfit) as caught:
        parse_version(text)
    assert caught.value.wanted.startswith(f"{repaired}, if")


def test_the_clause_at_fault_is_named() -> None:
    with pytest.raises(Unfit, match=r"'<2\.x' is no clause"):
        parse_range(">=2.11, <2.x")


VERSIONS = st.builds(lambda major, minor, tail: f"{major}.{minor}{tail}", st.integers(0, 3), st.integers(0, 12),
                     st.sampled_from(["", ".0", "rc1", ".dev3", ".post1", "+cu128"]))  # fmt: skip


@given(st.lists(st.tuples(VERSIONS, st.booleans()), max_size=12), st.sampled_from([">=1", "<2.5", "~=1.2", "!=1.3"]))
def test_an_expansion_is_sorted_without_twins_and_within_the_range(listed: list[tuple[str, bool]], text: str) -> None:
    found = [Version(version) for version in expand(parse_range(text), [Release(v, None, y) for v, y in listed])]
    assert found == sorted(set(found))
    assert all(parse_range(text).contains(version) and not version.is_prerelease for version in found)
    offered = {Version(version).public for version, yanked in listed if not yanked}
    assert {str(version) for version in found} <= offered
    expected = {Version(public) for public in offered if parse_range(text).contains(public, prereleases=False)}
    assert set(found) == expected
