"""Spans against sets of numbers."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from bisect_env.bundles import spans
from bisect_env.bundles.spans import Spans

ENDS = st.tuples(st.integers(0, 40), st.integers(0, 40)).map(sorted).map(tuple)


def numbers(found: Spans) -> set[int]:
    return {number for start, end in found for number in range(start, end)}


def built(ends: list[tuple[int, int]]) -> Spans:
    found: Spans = ()
    for start, end in ends:
        found = spans.add(found, start, end)
    return found


@given(st.lists(ENDS))
def test_added_is_there_sorted_and_apart(ends: list[tuple[int, int]]) -> None:
    found = built(ends)
    assert numbers(found) == numbers(tuple(ends))
    assert all(start < end for start, end in found)
    assert all(first[1] < second[0] for first, second in pairwise(found))


@given(st.lists(ENDS), ENDS)
def test_gaps_are_what_is_not_there(ends: list[tuple[int, int]], asked: tuple[int, int]) -> None:
    found = built(ends)
    missing = spans.gaps(found, *asked)
    assert numbers(missing) == set(range(*asked)) - numbers(found)
    assert built([*found, *missing]) == spans.add(found, *asked)
