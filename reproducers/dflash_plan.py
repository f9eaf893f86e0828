"""What a DFlash trial does, in plain arithmetic: sizes, query widths, anchors, what a block sees, memory predictions.

Standard library only, so that it can be tested and read without torch.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

DISTINCT_WIDTHS = 3
"""Query widths a thread meets when its shapes vary: one compiled statically, one dynamically, one that shows which."""


@dataclass(frozen=True)
class Size:
    """The drafter's dimensions. ``targets`` is the number of the target's layers whose hidden states it reads."""

    layers: int
    hidden: int
    mlp: int
    heads: int
    kv_heads: int
    head_dim: int
    block: int
    length: int
    batch: int
    anchors: int
    vocab: int
    targets: int = 5

    @property
    def weights(self) -> int:
        """Trained parameters: the context's projection and norm, the layers, the final norm."""
        attention = self.hidden * self.head_dim * (2 * self.heads + 2 * self.kv_heads) + 2 * self.head_dim
        layer = attention + 3 * self.hidden * self.mlp + 2 * self.hidden
        return self.targets * self.hidden**2 + 2 * self.hidden + self.layers * layer

    @property
    def tokens(self) -> int:
        """Sequence tokens of a step: what a training log counts (each is read as context once)."""
        return self.batch * self.length

    @property
    def gamma(self) -> float:
        """Decay of the loss weights: 7 for blocks of 16."""
        return 7.0 * self.block / 16


SIZES = {
    "tiny": Size(2, 64, 128, 4, 2, 16, block=8, length=128, batch=2, anchors=16, vocab=256, targets=2),
    "small": Size(3, 512, 1536, 8, 4, 64, block=16, length=1024, batch=2, anchors=64, vocab=4096),
    "medium": Size(3, 2048, 6144, 16, 4, 128, block=16, length=4096, batch=1, anchors=256, vocab=32768),
    "qwen3-8b": Size(5, 4096, 12288, 32, 8, 128, block=16, length=3072, batch=4, anchors=512, vocab=151936),
}


def size_of(name: str, device: str) -> tuple[str, Size]:
    """The size of that name; ``auto`` is medium on CUDA and tiny on a CPU."""
    chosen = {"cuda": "medium", "cpu": "tiny"}[device] if name == "auto" else name
    return chosen, SIZES[chosen]


def widths(size: Size, thread: int, shapes: str) -> tuple[int, ...]:
    """Numbers of blocks that a thread's steps have, in the order in which it first meets them.

    They do not depend on the seed: a compile cache prepared by one trial must serve the next. The first is the same
    for all threads (a full batch, as most are), the others are the thread's own.
    """
    if shapes == "constant":
        return (size.anchors,)
    others = range(size.anchors // 2, size.anchors)
    return (size.anchors, *random.Random(thread).sample(others, DISTINCT_WIDTHS - 1))


def fresh_widths(size: Size, count: int) -> tuple[int, ...]:
    """Widths for `count` compiles of the hot thread, all different while there are enough."""
    few = range(size.anchors // 2, size.anchors)
    return tuple(few[(index * 5 + 1) % len(few)] for index in range(count))


def anchors(size: Size, width: int, source: random.Random) -> list[list[int]]:
    """Sorted anchor positions for each row of a batch; the first row has ``width`` of them, the others at most.

    A row's prompt is not supervised. An anchor and the token after it are.
    """
    rows = []
    for row in range(size.batch):
        count = width if row == 0 else source.randint(width // 2, width)
        prompt = source.randint(1, size.length - 1 - width)
        rows.append(sorted(source.sample(range(prompt, size.length - 1), count)))
    return rows


def visible(size: Size, block: int, anchor: int | None, window: int) -> tuple[range, ...]:
    """Keys that the queries of a block see: context strictly before its anchor, and all of the block itself.

    Keys are [context | blocks]. ``anchor`` is None for a block that only pads its row: it sees nothing. ``window``
    limits the context to that many tokens before the anchor; 0 does not.
    """
    if anchor is None:
        return ()
    first = max(0, anchor - window) if window else 0
    own = size.length + block * size.block
    return range(first, anchor), range(own, own + size.block)


@dataclass(frozen=True)
class Memory:
    """Bytes of one thread's drafter."""

    resident: int
    """Weights, gradients, optimizer state, frozen embedding and head: there all the time."""
    transient: int
    """Activations and temporaries of a step with fused attention."""
    forward_scores: int
    """What unfused attention adds at the peak of a forward."""
    backward_scores: int
    """The same at the peak of a backward."""


def memory(size: Size, width: int, checkpointing: str, element: int) -> Memory:
    """Memory of one thread, from the tensors that the model's code keeps; ``element`` is 2 for bf16, 4 for float32.

    Unfused attention (torch's ``math_attention`` and ``sdpa_dense_backward``) holds float32 score matrices
    [batch, heads, queries, keys]: three at its forward's peak, five at its backward's.
    """
    queries, keys = size.batch * width * size.block, size.batch * (size.length + width * size.block)
    normed = 4 + 2 * element  # float32 copy, normalised, scaled
    attention = queries * size.heads * size.head_dim * (normed + 2 * element)
    attention += keys * size.kv_heads * size.head_dim * (normed + 2 * element)
    residual = queries * size.hidden * (2 * normed + 2 * element) + keys * size.hidden * element
    layer = attention + residual + 4 * queries * size.mlp * element
    kept = layer * size.layers if checkpointing == "none" else layer + queries * size.hidden * element * size.layers
    context = size.tokens * size.hidden * (size.targets * element + normed)
    pairs = size.batch * width * size.block * (size.length + width * size.block)
    mask = 4 * pairs  # create_block_mask: a few boolean matrices of the whole mask
    loss = 2 * queries * size.hidden * element + 3 * loss_chunk(size.vocab, queries) * size.vocab * 4
    scores = 4 * pairs * size.heads
    frozen = size.vocab * size.hidden * element
    return Memory(
        resident=4 * element * size.weights + frozen,
        transient=context + max(mask, kept + loss),
        forward_scores=3 * scores,
        backward_scores=5 * scores,
    )


def loss_chunk(vocab: int, rows: int) -> int:
    """Rows of logits computed at a time: 256 MiB of float32, at least one row."""
    return min(rows, max(1, 2**28 // (4 * vocab)))


def predicted(one: Memory, residents: int, active: int) -> dict[str, int]:
    """Peak bytes of a device with ``residents`` drafters on it, ``active`` of them working at the same time.

    ``fused`` takes every active thread at its own peak, which they need not reach together: an upper bound. Unfused
    attention holds its scores only while Python is inside the call, and autograd has one thread a device: ``dense``
    adds one backward and, beside it, one forward of another thread. (Measured on an H200, medium, three residents:
    5.8 GB fused and 18.3 GB dense with one active, where 7.0 and 17.8 are predicted; 9.8 to 10.5 GB fused with three
    active, where 12.3 is predicted, and 16 GiB more dense, eight float32 score matrices.)
    """
    fused = residents * one.resident + active * one.transient
    return {"fused": fused, "dense": fused + one.backward_scores + (active > 1) * one.forward_scores}
