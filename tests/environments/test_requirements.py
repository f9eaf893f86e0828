"""Requirement lines, lock texts and dates."""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bisect_env.environments import requirements
from bisect_env.environments.requirements import LockedLine
from bisect_env.errors import BadInput

NAMES = st.lists(st.text("abcxyz019", min_size=1, max_size=6), min_size=1, max_size=3).map("-".join)
NUMBERS = st.lists(st.integers(0, 99).map(str), min_size=2, max_size=3).map(".".join)
VERSIONS = st.tuples(NUMBERS, st.sampled_from(["", "+cu128", "+cpu"])).map("".join)
HASHES = st.integers(0, 2**256 - 1).map(lambda number: f"{number:064x}")


@given(st.dictionaries(NAMES, st.tuples(VERSIONS, st.lists(HASHES, min_size=1, max_size=3)), max_size=8))
def test_a_lock_reads_back(pins: dict[str, tuple[str, list[str]]]) -> None:
    text = "".join(
        f"{name}=={version} \\\n" + " \\\n".join(f"    --hash=sha256:{value}" for value in hashes) + "\n"
        for name, (version, hashes) in pins.items()
    )
    found = requirements.lines_of(text)
    assert found == tuple(LockedLine(name, version, None) for name, (version, _) in pins.items())


@given(st.dictionaries(NAMES, VERSIONS, max_size=8))
def test_constraints_are_the_pins(pins: dict[str, str]) -> None:
    assert requirements.pinned(requirements.parse(requirements.constraints(pins.items()).splitlines())) == pins


def test_lines_of_other_kinds() -> None:
    text = (
        "# a comment\n"
        "alpha==1.0 ; python_version >= '3.8'\n"
        "Be_ta @ git+https://example.org/b.git@0123abc\n"
        "loc @ file:///a%20b/tree  # sha256 of its content: 00\n"
    )
    git, local = "git+https://example.org/b.git@0123abc", "file:///a%20b/tree"
    found = requirements.lines_of(text)
    assert found == (LockedLine("alpha", "1.0", None), LockedLine("be-ta", None, git), LockedLine("loc", None, local))
    assert [line.path for line in found] == [None, None, Path("/a b/tree")]


def test_content_hashes_are_written_beside_the_paths_and_read_over() -> None:
    text = "alpha==1.0 \\\n    --hash=sha256:ab\nloc @ file:///a%20b/tree\nx @ git+file:///a%20b/tree@12\n"
    marked = requirements.with_content(text, {"/a b/tree": "c0ffee"})
    assert marked.splitlines()[2] == "loc @ file:///a%20b/tree  # sha256 of its content: c0ffee"
    assert marked.replace("  # sha256 of its content: c0ffee", "") == text
    assert requirements.lines_of(marked) == requirements.lines_of(text)


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("a==1.0", "1.0"),
        ("a[x]==1.0+cu128", "1.0+cu128"),
        ("a==1.*", None),
        ("a>=1", None),
        ("a==1,<2", None),
        ("a", None),
    ],
)
def test_exact(line: str, version: str | None) -> None:
    assert requirements.exact(Requirement(line)) == version


@pytest.mark.parametrize("line", ["alpha = 2", "==1.0", "a @", "./tree"])
def test_what_is_no_requirement_is_refused_with_its_place(line: str) -> None:
    with pytest.raises(BadInput) as raised:
        requirements.parse(["numpy", line])
    assert line in str(raised.value)


def test_the_user_of_an_ssh_url_is_no_credential() -> None:
    assert requirements.parse(["x @ git+ssh://git@example.org/x.git"])[0].name == "x"


@given(st.dates(min_value=datetime(2000, 1, 1).date(), max_value=datetime(2100, 1, 1).date()))
def test_a_date_is_all_of_that_day(day: object) -> None:
    moment = datetime.fromisoformat(requirements.cutoff(str(day)))
    assert (moment - timedelta(seconds=1)).date() == day and moment.tzinfo is not None
    assert requirements.cutoff(datetime.fromisoformat(f"{day}T13:00:00").replace(tzinfo=UTC)) == requirements.cutoff(
        str(day)
    )


def test_a_timestamp_is_itself() -> None:
    assert requirements.cutoff("2026-01-02T03:04:05Z") == "2026-01-02T03:04:05Z"


def test_names_that_lack_a_date() -> None:
    words = "warning: `no_date-1.0-py3-none-any.whl` is missing an upload date, but user provided: x\n" * 2
    assert requirements.undated(words + "`other-2.tar.gz` is missing an upload date") == ("no-date", "other")


@given(st.dictionaries(NAMES, st.lists(st.sampled_from(["torch", 'a>="1"', "b\\c", "ninja>=1.11"])), max_size=3))
def test_build_settings_are_toml(wanted: dict[str, list[str]]) -> None:
    text = requirements.build_config((name, tuple(lines)) for name, lines in wanted.items())
    assert tomllib.loads(text)["extra-build-dependencies"] == {canonicalize_name(k): v for k, v in wanted.items()}
