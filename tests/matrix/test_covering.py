"""Cells of a matrix in few words: by levels, and never by words that fit other cells too."""

from __future__ import annotations

import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisect_env.matrix.cells import Cell, Condition, EnvironmentRequest
from bisect_env.matrix.covering import described


def cell(**levels: str) -> Cell:
    return Cell("_".join(levels.values()), tuple(levels.items()), EnvironmentRequest(()), Condition(()))


CUDA = [cell(torch=torch, cuda=cuda) for torch, cuda in (("2.10", "a"), ("2.10", "b"), ("2.11", "b"), ("2.12", "b"))]


@pytest.mark.parametrize(
    ("some", "words"),
    [
        ([0, 1], "torch=2.10"),
        ([2], "2.11_b"),
        ([2, 3], "torch=2.11|2.12"),
        ([1, 2, 3], "cuda=b"),
        ([0, 1, 2, 3], "all"),
        ([0, 2], None),
    ],
)
def test_cells_in_words(some: list[int], words: str | None) -> None:
    assert described([CUDA[number] for number in some], CUDA) == words


LEVELS = [tuple(product((axis,), "xyz")) for axis in ("torch", "cuda", "python")]
EVERY = [
    Cell("_".join(level for _, level in levels), levels, EnvironmentRequest(()), Condition(()))
    for levels in product(*LEVELS)
]


@given(
    st.sets(st.integers(0, len(EVERY) - 1), min_size=2).flatmap(
        lambda kept: st.tuples(st.just(kept), st.sets(st.sampled_from(sorted(kept)), min_size=2))
    )
)
def test_the_words_fit_these_cells_and_no_others(drawn: tuple[set[int], set[int]]) -> None:
    """Whatever part of a matrix is looked at, and however few of a product are there."""
    every, some = ([EVERY[number] for number in sorted(numbers)] for numbers in drawn)
    words = described(some, every)
    if words is None:
        return
    wanted = [] if words == "all" else [re.split("[=|]", part) for part in words.split(", ")]
    assert [c for c in every if all(dict(c.levels)[axis] in levels for axis, *levels in wanted)] == some
