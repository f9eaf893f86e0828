"""The arithmetic of a dflash trial."""

from __future__ import annotations

import random

import dflash_plan as plan
import pytest
from hypothesis import given
from hypothesis import strategies as st

sizes = st.sampled_from(sorted(plan.SIZES)).map(plan.SIZES.__getitem__)
TINY = plan.SIZES["tiny"]


def test_qwen3_8b_has_the_published_dimensions() -> None:
    size = plan.SIZES["qwen3-8b"]
    assert (size.layers, size.hidden, size.mlp, size.heads, size.kv_heads, size.head_dim) == (
        5,
        4096,
        12288,
        32,
        8,
        128,
    )
    assert (size.block, size.length, size.batch, size.anchors, size.targets) == (16, 3072, 4, 512, 5)
    one_layer = (
        4096 * 4096 + 2 * 4096 * 1024 + 4096 * 4096  # query, key and value, output
        + 3 * 4096 * 12288  # gate, up, down
        + 2 * 4096 + 2 * 128  # norms
    )  # fmt: skip
    assert size.weights == 5 * one_layer + 5 * 4096 * 4096 + 2 * 4096


@pytest.mark.parametrize(("device", "name"), [("cuda", "medium"), ("cpu", "tiny")])
def test_auto_fits_the_device(device: str, name: str) -> None:
    assert plan.size_of("auto", device) == (name, plan.SIZES[name])
    assert plan.size_of("small", device)[0] == "small"


@given(sizes, st.integers(0, 63))
def test_varying_widths_differ_and_begin_with_the_full_one(size: plan.Size, thread: int) -> None:
    widths = plan.widths(size, thread, "varying")
    assert widths[0] == size.anchors
    assert len(set(widths)) == len(widths) == plan.DISTINCT_WIDTHS
    assert all(size.anchors // 2 <= width <= size.anchors for width in widths)
    assert plan.widths(size, thread, "constant") == (size.anchors,)


def test_threads_have_widths_of_their_own() -> None:
    assert len({plan.widths(plan.SIZES["medium"], thread, "varying") for thread in range(8)}) == 8


@pytest.mark.parametrize("name", sorted(plan.SIZES))
def test_fresh_widths_differ_and_fit(name: str) -> None:
    size = plan.SIZES[name]
    widths = plan.fresh_widths(size, 8)
    assert len(set(widths)) == 8
    assert all(size.anchors // 2 <= width < size.anchors for width in widths)


@given(sizes, st.data())
def test_anchors_are_sorted_supervised_and_followed_by_a_token(size: plan.Size, data: st.DataObject) -> None:
    width = data.draw(st.sampled_from(plan.widths(size, 0, "varying") + plan.fresh_widths(size, 4)))
    rows = plan.anchors(size, width, random.Random(data.draw(st.integers(0, 2**32))))
    assert len(rows) == size.batch
    assert len(rows[0]) == width
    for row in rows:
        assert row == sorted(set(row))
        assert width // 2 <= len(row) <= width
        assert row[0] >= 1
        assert row[-1] + 1 < size.length


@given(st.integers(0, 15), st.integers(1, TINY.length - 2), st.integers(0, TINY.length))
def test_a_block_sees_context_strictly_before_its_anchor_and_itself(block: int, anchor: int, window: int) -> None:
    seen = {key for part in plan.visible(TINY, block, anchor, window) for key in part}
    own = set(range(TINY.length + block * TINY.block, TINY.length + (block + 1) * TINY.block))
    context = {key for key in range(TINY.length) if key < anchor and (not window or key >= anchor - window)}
    assert seen == own | context
    assert plan.visible(TINY, block, None, window) == ()


@given(sizes, st.sampled_from(["none", "reentrant", "non-reentrant"]), st.sampled_from([2, 4]))
def test_memory_grows_with_the_width_and_unfused_attention_costs_more(
    size: plan.Size, checkpointing: str, element: int
) -> None:
    narrow = plan.memory(size, size.anchors // 2, checkpointing, element)
    wide = plan.memory(size, size.anchors, checkpointing, element)
    assert narrow.resident == wide.resident
    assert narrow.transient < wide.transient
    assert narrow.backward_scores < wide.backward_scores
    for active in (1, 3):
        predicted = plan.predicted(wide, 3, active)
        assert predicted["fused"] < predicted["dense"]
    assert plan.predicted(wide, 3, 1)["fused"] < plan.predicted(wide, 3, 3)["fused"]


def test_checkpointing_saves_activations() -> None:
    size = plan.SIZES["medium"]
    without = plan.memory(size, size.anchors, "none", 2)
    assert plan.memory(size, size.anchors, "reentrant", 2).transient < without.transient
    assert plan.memory(size, size.anchors, "reentrant", 2).resident == without.resident


def test_unfused_attention_adds_eight_score_matrices_with_several_threads() -> None:
    # 16 heads x 4096 queries x 8192 keys of float32 are 2 GiB.
    size = plan.SIZES["medium"]
    predicted = plan.predicted(plan.memory(size, 256, "none", 2), 3, 3)
    assert predicted["dense"] - predicted["fused"] == 16 * 2**30


@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_a_chunk_of_logits_is_bounded(vocab: int, rows: int) -> None:
    chunk = plan.loss_chunk(vocab, rows)
    assert 1 <= chunk <= rows
    assert chunk == 1 or chunk * vocab * 4 <= 2**28
