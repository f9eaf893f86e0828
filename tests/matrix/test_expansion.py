"""GitHub's documented examples, and the laws of the expansion."""

from __future__ import annotations

import itertools
import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisect_env.matrix.expansion import Axis, Combination, Combined, Level, combine
from bisect_env.matrix.problems import Unfit

NO_LIMIT = 10_000


def level(text: str) -> Level:
    return Level(text, text, text)


def axis(name: str, *texts: str, condition: bool = False) -> Axis:
    return Axis(name, tuple(level(text) for text in texts), condition)


def entry(**texts: str) -> dict[str, Level]:
    return {name: level(text) for name, text in texts.items()}


def texts(combined: tuple[Combined, ...]) -> list[dict[str, str]]:
    return [{name: level.text for name, level in item.levels.items()} for item in combined]


def test_githubs_documented_include_example() -> None:
    combined = combine(
        [axis("fruit", "apple", "pear"), axis("animal", "cat", "dog")],
        [
            entry(color="green"),
            entry(color="pink", animal="cat"),
            entry(fruit="apple", shape="circle"),
            entry(fruit="banana"),
            entry(fruit="banana", animal="cat"),
        ],
        [],
        NO_LIMIT,
    )
    assert texts(combined) == [
        {"fruit": "apple", "animal": "cat", "color": "pink", "shape": "circle"},
        {"fruit": "apple", "animal": "dog", "color": "green", "shape": "circle"},
        {"fruit": "pear", "animal": "cat", "color": "pink"},
        {"fruit": "pear", "animal": "dog", "color": "green"},
        {"fruit": "banana"},
        {"fruit": "banana", "animal": "cat"},
    ]
    assert [item.added_by for item in combined] == [None, None, None, None, 3, 4]


def test_githubs_documented_exclude_example() -> None:
    axes = [
        axis("os", "macos", "windows"),
        axis("version", "12", "14", "16"),
        axis("environment", "staging", "production"),
    ]
    excluded = [entry(os="macos", version="12", environment="production"), entry(os="windows", version="16")]
    combined = texts(combine(axes, [], excluded, NO_LIMIT))
    assert len(combined) == 9
    assert {"os": "macos", "version": "12", "environment": "production"} not in combined
    assert all((item["os"], item["version"]) != ("windows", "16") for item in combined)


def test_include_brings_an_excluded_combination_back() -> None:
    combined = combine([axis("a", "1", "2")], [entry(a="2")], [entry(a="2")], NO_LIMIT)
    assert texts(combined) == [{"a": "1"}, {"a": "2"}]
    assert combined[1].added_by == 0


def test_without_axes_the_matrix_is_its_include_entries() -> None:
    entries = [entry(torch="2.11"), entry(torch="2.14")]
    assert texts(combine([], entries, [], NO_LIMIT)) == [{"torch": "2.11"}, {"torch": "2.14"}]
    # Conditions alone are no axes to merge into: both entries run under both patterns.
    patterns = axis("pattern", "hot", "barrier", condition=True)
    assert len(combine([patterns], entries, [], NO_LIMIT)) == 4


def test_without_axes_and_include_there_is_one_combination() -> None:
    assert texts(combine([], [], [], NO_LIMIT)) == [{}]


def test_an_added_combination_runs_under_every_condition_it_does_not_name() -> None:
    axes = [axis("torch", "2.11"), axis("pattern", "hot", "barrier", condition=True)]
    added = [item for item in combine(axes, [entry(torch="2.14")], [], NO_LIMIT) if item.added_by == 0]
    assert texts(tuple(added)) == [{"torch": "2.14", "pattern": "hot"}, {"torch": "2.14", "pattern": "barrier"}]
    named = combine(axes, [entry(torch="2.14", pattern="hot")], [], NO_LIMIT)
    assert texts(named)[2:] == [{"torch": "2.14", "pattern": "hot"}]


def test_equal_levels_are_spelled_as_the_axis_spells_them() -> None:
    long = Level("2.11.0", "2.11", "2.11.0")
    short = Level("2.11", "2.11", "2.11")
    combined = combine([Axis("torch", (long,))], [{"torch": short, "numpy": level("2")}], [], NO_LIMIT)
    assert texts(combined) == [{"torch": "2.11.0", "numpy": "2"}]


@pytest.mark.parametrize("size", [4, 40])
def test_too_many_are_refused_with_the_count_before_any_is_made(size: int) -> None:
    axes = [axis(f"a{at}", *map(str, range(10))) for at in range(size)]
    started = time.perf_counter()
    with pytest.raises(Unfit) as caught:
        combine(axes, [], [], 256)
    assert time.perf_counter() - started < 0.5
    assert str(10**size) in caught.value.found
    assert f"limits: {{cells: {10**size}}}" in caught.value.wanted


def test_what_exclude_leaves_is_what_counts() -> None:
    axes = [axis("a", *map(str, range(20))), axis("b", *map(str, range(20)))]
    excluded = [entry(a=str(at)) for at in range(10)]
    assert len(combine(axes, [], excluded, 200)) == 200
    with pytest.raises(Unfit, match="200 cells after exclude"):
        combine(axes, [], excluded, 199)


def test_include_counts_against_the_limit() -> None:
    with pytest.raises(Unfit, match="3 cells"):
        combine([axis("a", "1", "2")], [entry(a="3")], [], 2)


AXES = st.lists(st.integers(1, 3), min_size=1, max_size=4).map(
    lambda sizes: [axis(f"a{at}", *map(str, range(size))) for at, size in enumerate(sizes)]
)
NAMES = ("a0", "a1", "a2", "a3", "extra")
ENTRIES = st.lists(
    st.dictionaries(st.sampled_from(NAMES), st.integers(0, 3).map(lambda number: level(str(number))), min_size=1),
    max_size=5,
)


def frozen(combination: Combination) -> frozenset[tuple[str, str]]:
    return frozenset((name, level.text) for name, level in combination.items())


def product(axes: list[Axis]) -> list[frozenset[tuple[str, str]]]:
    names = [axis.name for axis in axes]
    rows = itertools.product(*([level.text for level in axis.levels] for axis in axes))
    return [frozenset(zip(names, row, strict=True)) for row in rows]


@given(AXES)
def test_the_product_has_every_combination_once(axes: list[Axis]) -> None:
    combined = [frozen(item.levels) for item in combine(axes, [], [], NO_LIMIT)]
    assert len(combined) == math.prod(len(axis.levels) for axis in axes)
    assert combined == product(axes)


@given(AXES, ENTRIES)
def test_exclude_keeps_exactly_what_no_entry_matches(axes: list[Axis], excluded: list[Combination]) -> None:
    combined = [frozen(item.levels) for item in combine(axes, [], excluded, NO_LIMIT)]
    assert combined == [row for row in product(axes) if not any(frozen(entry) <= row for entry in excluded)]


@given(AXES, ENTRIES, st.randoms(use_true_random=False))
def test_the_order_of_exclude_does_not_matter(axes: list[Axis], excluded: list[Combination], random: object) -> None:
    shuffled = list(excluded)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert combine(axes, [], excluded, NO_LIMIT) == combine(axes, [], shuffled, NO_LIMIT)


@given(AXES, ENTRIES, ENTRIES)
def test_include_changes_no_level_of_an_axis(
    axes: list[Axis], include: list[Combination], excluded: list[Combination]
) -> None:
    names = {axis.name for axis in axes}
    without = combine(axes, [], excluded, NO_LIMIT)
    with_include = combine(axes, include, excluded, NO_LIMIT)
    kept = [item for item in with_include if item.added_by is None]
    originals = [frozen({name: item.levels[name] for name in names}) for item in kept]
    assert originals == [frozen(item.levels) for item in without]


@given(AXES, ENTRIES, ENTRIES)
def test_every_include_entry_is_merged_or_becomes_one_combination(
    axes: list[Axis], include: list[Combination], excluded: list[Combination]
) -> None:
    names = {axis.name for axis in axes}
    kept = [frozen(item.levels) for item in combine(axes, [], excluded, NO_LIMIT)]
    combined = combine(axes, include, excluded, NO_LIMIT)
    added = [item.added_by for item in combined if item.added_by is not None]
    for position, entry_ in enumerate(include):
        on_axes = frozen({name: level for name, level in entry_.items() if name in names})
        fits = any(on_axes <= row for row in kept)
        assert added.count(position) == (0 if fits else 1)
    assert [frozen(item.levels) for item in combined if item.added_by is not None] == [
        frozen(include[position]) for position in added
    ]


@given(AXES, ENTRIES)
def test_of_entries_that_add_to_one_combination_the_last_wins(axes: list[Axis], include: list[Combination]) -> None:
    names = {axis.name for axis in axes}
    for item in combine(axes, include, [], NO_LIMIT):
        if item.added_by is not None:
            continue
        row = frozen({name: item.levels[name] for name in names})
        fitting = [
            entry_
            for entry_ in include
            if frozen({name: level for name, level in entry_.items() if name in names}) <= row
        ]
        expected = [entry_["extra"].text for entry_ in fitting if "extra" in entry_ and "extra" not in names]
        assert (item.levels["extra"].text if "extra" in item.levels else None) == (expected[-1] if expected else None)
