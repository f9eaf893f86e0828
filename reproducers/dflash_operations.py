"""Floating-point operations of a drafter, counted from its anchors: 2 for a multiply-add of a matrix product.

Only matrix products are counted, as is usual: norms, rotary positions, softmax, the loss and the optimizer's update are
a thousandth of a step and bound by memory. What is counted is what the result needs: recomputation by activation
checkpointing is not (PaLM, Chowdhery et al. 2022, appendix B: model FLOPs). Standard library only.
"""

from __future__ import annotations

from collections.abc import Sequence

from dflash_plan import Size, visible

FORWARD_PRODUCTS, BACKWARD_PRODUCTS = 2, 5
"""Matrix products for each visible pair and head: QK^T and PV; then QK^T once more (S is not kept), dV = P^T dO,
dP = dO V^T, dQ = dS K and dK = dS^T Q. Dao, FlashAttention-2 (2023), section 4.1: 4 * pairs * head_dim * heads forward,
2.5 times that backward. Inductor's backward makes S and dP twice, once for dQ and once for dK and dV: seven products,
of which five are needed."""
TILE = 128
"""Queries and keys of a block of the mask; a kernel skips whole blocks only (torch's default BLOCK_SIZE)."""

Anchors = Sequence[Sequence[int]]
"""Anchor positions of each row of a batch, without the invalid blocks that pad a row: those see nothing."""


def layer_windows(size: Size, window: int) -> tuple[int, ...]:
    """Sliding window of each layer, 0 for none: all but the last slide, as in ``dflash_model.Drafter``."""
    return (window,) * (size.layers - 1) + (0,)


def visible_pairs(size: Size, anchors: Anchors, window: int) -> int:
    """Visible (query, key) pairs of a head, over the batch."""
    return sum(
        size.block * sum(len(part) for part in visible(size, block, anchor, window))
        for row in anchors
        for block, anchor in enumerate(row)
    )


def touched_pairs(size: Size, anchors: Anchors, window: int) -> int:
    """Pairs in the 128 x 128 blocks of the mask with at least one visible pair: what a block-sparse kernel computes.

    Blocks at the edge of the score matrix count whole.
    """
    touched = set()
    for item, row in enumerate(anchors):
        for block, anchor in enumerate(row):
            queries = _tiles(range(block * size.block, (block + 1) * size.block))
            for part in visible(size, block, anchor, window):
                touched |= {(item, query, key) for query in queries for key in _tiles(part)}
    return len(touched) * TILE**2


def attention_operations(size: Size, anchors: Anchors, window: int, backward: bool) -> int:
    """Operations of one layer's attention, forward and, where asked, backward."""
    return _products(size, visible_pairs(size, anchors, window), backward)


def touched_operations(size: Size, anchors: Anchors, window: int, backward: bool) -> int:
    """The same for all pairs of the blocks that are touched: done by a block-sparse kernel, needed or not."""
    return _products(size, touched_pairs(size, anchors, window), backward)


def step_operations(
    size: Size, width: int, anchors: Anchors, windows: Sequence[int], attention_backward: bool = True
) -> int:
    """Operations of one training step of one drafter.

    Args:
        size: the drafter's dimensions.
        width: blocks of every row, invalid ones included: the linear layers compute those too.
        anchors: the step's anchors.
        windows: the window of each layer, see :func:`layer_windows`.
        attention_backward: False on a CPU, where attention runs without gradients: then neither the projections before
            it nor the context get any, and the output's projection has no input to pass one to.
    """
    queries, keys = size.batch * width * size.block, size.batch * (size.length + width * size.block)
    heads, kv_heads = size.heads * size.head_dim, size.kv_heads * size.head_dim
    # Products of a linear layer: forward, gradient of the weight, gradient of the input. The hidden states need no
    # gradient and the head is frozen: one product less each.
    projected, output, context = (3, 3, 2) if attention_backward else (1, 2, 1)
    layer = (
        projected * size.hidden * (queries * heads + 2 * keys * kv_heads)
        + output * queries * heads * size.hidden
        + 3 * queries * 3 * size.hidden * size.mlp
    )
    linear = (
        size.layers * layer
        + context * size.tokens * size.targets * size.hidden**2
        + 2 * queries * size.hidden * size.vocab
    )
    of_window = {window: attention_operations(size, anchors, window, attention_backward) for window in set(windows)}
    return 2 * linear + sum(of_window[window] for window in windows)


def middle(rounds: Sequence[tuple[int, float]]) -> tuple[int, float]:
    """Of timed rounds (operations, seconds) the one of median rate, the slower one of two."""
    return sorted(rounds, key=lambda each: each[0] / each[1])[(len(rounds) - 1) // 2]


def _products(size: Size, pairs: int, backward: bool) -> int:
    products = FORWARD_PRODUCTS + backward * BACKWARD_PRODUCTS
    return 2 * products * pairs * size.head_dim * size.heads


def _tiles(part: range) -> range:
    """Blocks of the mask that a range of queries or keys touches."""
    return range(part.start // TILE, (part.stop - 1) // TILE + 1) if part else range(0)
