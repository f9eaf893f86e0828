"""Counted operations against brute force: dense masks for attention, every product of a step one by one."""

from __future__ import annotations

import random
from dataclasses import replace

import dflash_operations as operations
import dflash_plan as plan
import pytest
from hypothesis import given
from hypothesis import strategies as st

sizes = st.builds(
    plan.Size,
    layers=st.integers(1, 3),
    hidden=st.integers(1, 5),
    mlp=st.integers(1, 7),
    heads=st.integers(1, 4),
    kv_heads=st.just(1),
    head_dim=st.integers(1, 4),
    block=st.integers(1, 24),
    length=st.integers(20, 200),
    batch=st.integers(1, 2),
    anchors=st.integers(2, 9),
    vocab=st.integers(2, 9),
    targets=st.integers(1, 3),
)
windows = st.integers(0, 220)


@st.composite
def drawn(draw: st.DrawFn) -> tuple[plan.Size, int, list[list[int]]]:
    size = draw(sizes)
    width = draw(st.integers(size.anchors // 2, size.anchors))
    return size, width, plan.anchors(size, width, random.Random(draw(st.integers(0, 2**32))))


def dense_mask(size: plan.Size, width: int, row: list[int], window: int) -> list[list[bool]]:
    """[queries][keys], straight from the rule and not from the plan's ranges; rows past the anchors see nothing."""
    keys = size.length + width * size.block

    def sees(query: int, key: int) -> bool:
        block = query // size.block
        if block >= len(row):
            return False
        if key >= size.length:
            return (key - size.length) // size.block == block
        return key < row[block] and (window == 0 or key >= row[block] - window)

    return [[sees(query, key) for key in range(keys)] for query in range(width * size.block)]


@given(drawn(), windows)
def test_pairs_are_those_of_the_dense_mask(case: tuple[plan.Size, int, list[list[int]]], window: int) -> None:
    size, width, anchors = case
    pairs = sum(sum(map(sum, dense_mask(size, width, row, window))) for row in anchors)
    assert operations.visible_pairs(size, anchors, window) == pairs
    # Two products of 2 operations a multiply-add, over head_dim, a pair and head; five more for the backward.
    one_product = 2 * pairs * size.head_dim * size.heads
    assert operations.attention_operations(size, anchors, window, backward=False) == 2 * one_product
    assert operations.attention_operations(size, anchors, window, backward=True) == 7 * one_product


@given(drawn(), windows)
def test_touched_blocks_are_those_of_the_dense_mask(case: tuple[plan.Size, int, list[list[int]]], window: int) -> None:
    size, width, anchors = case
    touched = set()
    for item, row in enumerate(anchors):
        for query, keys in enumerate(dense_mask(size, width, row, window)):
            touched |= {(item, query // 128, key // 128) for key, seen in enumerate(keys) if seen}
    assert operations.touched_pairs(size, anchors, window) == len(touched) * 128 * 128
    for backward in (False, True):
        needed = operations.attention_operations(size, anchors, window, backward)
        assert needed <= operations.touched_operations(size, anchors, window, backward)


def brute_step(size: plan.Size, width: int, anchors: list[list[int]], windows: tuple[int, ...], full: bool) -> int:
    """Every matrix product of a step as (rows, inner, columns), written down once per gradient that it has."""
    queries, keys = size.batch * width * size.block, size.batch * (size.length + width * size.block)
    context = size.batch * size.length
    wide, narrow = size.heads * size.head_dim, size.kv_heads * size.head_dim

    def linear(rows: int, inner: int, columns: int, weight: bool, inputs: bool) -> int:
        total = 2 * rows * inner * columns
        if weight:
            total += 2 * inner * rows * columns
        if inputs:
            total += 2 * rows * columns * inner
        return total

    total = linear(context, size.targets * size.hidden, size.hidden, weight=full, inputs=False)
    for window in windows:
        total += linear(queries, size.hidden, wide, full, full)
        total += 2 * linear(keys, size.hidden, narrow, full, full)
        total += linear(queries, wide, size.hidden, True, full)
        total += 2 * linear(queries, size.hidden, size.mlp, True, True)
        total += linear(queries, size.mlp, size.hidden, True, True)
        total += operations.attention_operations(size, anchors, window, full)
    return total + linear(queries, size.hidden, size.vocab, weight=False, inputs=True)


@given(drawn(), windows, st.booleans())
def test_a_step_is_the_sum_of_its_products(
    case: tuple[plan.Size, int, list[list[int]]], window: int, full: bool
) -> None:
    size, width, anchors = case
    of_layers = operations.layer_windows(size, window)
    counted = operations.step_operations(size, width, anchors, of_layers, full)
    assert counted == brute_step(size, width, anchors, of_layers, full)


@given(sizes, windows)
def test_all_layers_but_the_last_slide(size: plan.Size, window: int) -> None:
    of_layers = operations.layer_windows(size, window)
    assert len(of_layers) == size.layers
    assert of_layers[-1] == 0
    assert set(of_layers[:-1]) <= {window}


@given(drawn())
def test_a_window_as_wide_as_the_context_hides_nothing(case: tuple[plan.Size, int, list[list[int]]]) -> None:
    size, _, anchors = case
    assert operations.visible_pairs(size, anchors, size.length) == operations.visible_pairs(size, anchors, 0)


def test_a_block_that_only_pads_counts_in_the_linear_layers_alone() -> None:
    size = replace(plan.SIZES["tiny"], batch=1)
    narrow = operations.step_operations(size, 8, [[5, 9]], (0, 0))
    wide = operations.step_operations(size, 16, [[5, 9]], (0, 0))
    linear = brute_step(size, 16, [[]], (0, 0), True) - brute_step(size, 8, [[]], (0, 0), True)
    assert wide - narrow == linear > 0


@pytest.mark.parametrize("name", sorted(plan.SIZES))
def test_a_steps_linear_part_is_near_six_operations_a_parameter_and_token(name: str) -> None:
    # 6ND (Kaplan et al. 2020) on the noise tokens alone, the rule of thumb for a whole decoder; here keys and values
    # take the context as well and its projection has no input gradient, so the count must lie above and not far off.
    size = plan.SIZES[name]
    linear = operations.step_operations(size, size.anchors, [[]], (0,) * size.layers)
    queries = size.batch * size.anchors * size.block
    head = 4 * queries * size.hidden * size.vocab
    context = 4 * size.tokens * size.targets * size.hidden**2
    layers = 6 * queries * (size.weights - size.targets * size.hidden**2)
    extra = 6 * size.layers * size.tokens * 2 * size.hidden * size.kv_heads * size.head_dim
    assert linear == pytest.approx(layers + head + context + extra, rel=0.02)
    assert linear <= layers + head + context + extra  # norms are parameters too, and are not counted


def test_medium_is_about_a_third_dense() -> None:
    # Context before the anchor is about half the sequence, which is half the keys: a quarter, and what blocks add.
    size = plan.SIZES["medium"]
    anchors = plan.anchors(size, size.anchors, random.Random(1))
    dense = size.anchors * size.block * (size.length + size.anchors * size.block)
    share = operations.visible_pairs(size, anchors, 0) / dense
    touched = operations.touched_pairs(size, anchors, 0) / dense
    assert 0.15 < share < touched < 0.45


@given(st.lists(st.tuples(st.integers(1, 10**15), st.floats(1e-3, 1e3)), min_size=1, max_size=9))
def test_the_middle_round_has_as_many_slower_as_faster_ones(rounds: list[tuple[int, float]]) -> None:
    done, took = operations.middle(rounds)
    assert (done, took) in rounds
    slower = sum(each[0] / each[1] < done / took for each in rounds)
    faster = sum(each[0] / each[1] > done / took for each in rounds)
    assert max(slower, faster) <= len(rounds) / 2
