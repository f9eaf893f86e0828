"""A minimal DFlash drafter: context stream, noise stream, block mask, layers, weighted loss; and its float64 reference.

Queries come from the noise only (an anchor token and MASK tokens for each block); keys and values are the same
projections of [context | noise]. Imports torch, so a reproducer imports it inside ``Trial.importing()``.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import dflash_plan as plan
import torch
from torch import nn
from torch.nn import functional
from torch.nn.attention.flex_attention import create_block_mask
from torch.utils.checkpoint import checkpoint

EPSILON, ROPE_BASE = 1e-6, 1e6
SAMPLED_ROWS = 64
"""Queries whose attention is compared with the reference; each sees all of its own keys, so no error is averaged away
that a whole comparison would show, and a float64 score matrix stays small at every size."""

Attend = Callable[..., torch.Tensor]
"""``attend(layer, query, key, value, mask)``: heads first in, [batch, queries, heads, dim] out."""


class Norm(nn.Module):
    """RMSNorm, computed in float32."""

    def __init__(self, size: int, eps: float = EPSILON) -> None:
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(size)), eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Normalise the last dimension."""
        wide = x.float()
        return self.weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)).to(x.dtype)


class SwiGLU(nn.Module):
    """The gated MLP."""

    def __init__(self, size: plan.Size) -> None:
        super().__init__()
        self.gate, self.up = (nn.Linear(size.hidden, size.mlp, bias=False) for _ in range(2))
        self.down = nn.Linear(size.mlp, size.hidden, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Down(silu(gate) * up)."""
        return self.down(functional.silu(self.gate(x)) * self.up(x))


class Rotary(nn.Module):
    """Cosines and sines of rotary positions."""

    def __init__(self, size: plan.Size) -> None:
        super().__init__()
        steps = torch.arange(0, size.head_dim, 2).float() / size.head_dim
        self.register_buffer("frequencies", ROPE_BASE**-steps, persistent=False)

    def forward(self, x: torch.Tensor, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """For positions [batch, tokens]: two tensors [batch, tokens, head_dim] of x's dtype."""
        angles = positions[..., None].float() * self.frequencies
        both = torch.cat((angles, angles), dim=-1)
        return both.cos().to(x.dtype), both.sin().to(x.dtype)


@dataclass(frozen=True)
class Parts:
    """What the drafter is built from: this file's own modules or transformers'."""

    norm: Callable[[int], nn.Module]
    mlp: Callable[[], nn.Module]
    rotary: Callable[[], nn.Module]
    layer_base: type[nn.Module]


def own_parts(size: plan.Size) -> Parts:
    """Plain torch."""
    return Parts(Norm, partial(SwiGLU, size), partial(Rotary, size), nn.Module)


def transformers_parts(size: plan.Size) -> Parts:
    """transformers' Qwen3 modules and its checkpointing layer (4.52 to 5.24)."""
    from transformers import Qwen3Config
    from transformers.modeling_layers import GradientCheckpointingLayer
    from transformers.models.qwen3 import modeling_qwen3 as qwen3

    config = Qwen3Config(
        hidden_size=size.hidden, intermediate_size=size.mlp, num_hidden_layers=size.layers,
        num_attention_heads=size.heads, num_key_value_heads=size.kv_heads, head_dim=size.head_dim,
        vocab_size=size.vocab, rms_norm_eps=EPSILON,
    )  # fmt: skip
    return Parts(
        partial(qwen3.Qwen3RMSNorm, eps=EPSILON),
        partial(qwen3.Qwen3MLP, config),
        partial(qwen3.Qwen3RotaryEmbedding, config),
        GradientCheckpointingLayer,
    )


def rotate(x: torch.Tensor, rotary: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """Apply rotary positions to [batch, heads, tokens, head_dim]."""
    first, second = x.chunk(2, dim=-1)
    return x * rotary[0][:, None] + torch.cat((-second, first), dim=-1) * rotary[1][:, None]


def layer_type(base: type[nn.Module]) -> type[nn.Module]:
    """The draft layer on that base: transformers 5.23 and newer wrap ``forward`` when the class is made."""

    class Layer(base):  # type: ignore[misc, valid-type]
        """Attention from the noise over context and noise, then the MLP; pre-norm, with residuals."""

        def __init__(self, size: plan.Size, parts: Parts, sliding: bool) -> None:
            super().__init__()
            self.size, self.sliding = size, sliding
            self.attention_norm, self.mlp_norm = parts.norm(size.hidden), parts.norm(size.hidden)
            self.q_norm, self.k_norm = parts.norm(size.head_dim), parts.norm(size.head_dim)
            self.q = nn.Linear(size.hidden, size.heads * size.head_dim, bias=False)
            self.k = nn.Linear(size.hidden, size.kv_heads * size.head_dim, bias=False)
            self.v = nn.Linear(size.hidden, size.kv_heads * size.head_dim, bias=False)
            self.o = nn.Linear(size.heads * size.head_dim, size.hidden, bias=False)
            self.mlp = parts.mlp()

        def split(self, x: torch.Tensor) -> torch.Tensor:
            return x.view(*x.shape[:2], -1, self.size.head_dim)

        def forward(
            self, noise: torch.Tensor, context: torch.Tensor, *, rotary: Any, masks: Any, attend: Attend
        ) -> torch.Tensor:
            normed = self.attention_norm(noise)
            both = torch.cat((context, normed), dim=1)
            query = rotate(self.q_norm(self.split(self.q(normed))).transpose(1, 2), rotary["noise"])
            key = rotate(self.k_norm(self.split(self.k(both))).transpose(1, 2), rotary["both"])
            value = self.split(self.v(both)).transpose(1, 2)
            noise = noise + self.o(attend(self, query, key, value, masks[self.sliding]).flatten(2))
            return noise + self.mlp(self.mlp_norm(noise))

    return Layer


class Drafter(nn.Module):
    """The drafter without the target's frozen parts."""

    def __init__(self, size: plan.Size, parts: Parts, window: int, checkpointing: str) -> None:
        super().__init__()
        self.context_projection = nn.Linear(size.targets * size.hidden, size.hidden, bias=False)
        self.context_norm, self.final_norm = parts.norm(size.hidden), parts.norm(size.hidden)
        self.rotary = parts.rotary()
        kind = layer_type(parts.layer_base)
        # With a window all layers but the last slide, as in the published 27B configuration.
        self.layers = nn.ModuleList(
            kind(size, parts, bool(window) and index < size.layers - 1) for index in range(size.layers)
        )
        self.recompute = (
            None if checkpointing == "none" else partial(checkpoint, use_reentrant=checkpointing == "reentrant")
        )
        self.library_recomputes = parts.layer_base is not nn.Module
        if self.recompute and self.library_recomputes:
            for layer in self.layers:
                layer.gradient_checkpointing, layer._gradient_checkpointing_func = True, self.recompute

    def forward(self, batch: Batch, attend: Attend) -> torch.Tensor:
        """Hidden states of the noise, [batch, queries, hidden], ready for the head."""
        context = self.context_norm(self.context_projection(batch.hidden))
        noise = batch.noise
        cosines, sines = self.rotary(noise, batch.positions)
        length = context.shape[1]
        rotary = {"both": (cosines, sines), "noise": (cosines[:, length:], sines[:, length:])}
        for layer in self.layers:
            run = partial(layer, rotary=rotary, masks=batch.masks, attend=attend)
            if self.recompute and not self.library_recomputes:
                noise = self.recompute(run, noise, context)
            else:
                noise = run(noise, context)
        return self.final_norm(noise)


class Source:
    """Seeded random batches, on the device, independent of every other thread's."""

    def __init__(self, seed: int, device: torch.device, dtype: torch.dtype) -> None:
        self.numbers = random.Random(seed)
        self.generator = torch.Generator(device).manual_seed(seed)
        self.device, self.dtype = device, dtype

    def normal(self, *shape: int) -> torch.Tensor:
        """Standard normal values."""
        return torch.randn(shape, generator=self.generator, device=self.device, dtype=self.dtype)

    def tokens(self, *shape: int, below: int) -> torch.Tensor:
        """Token ids."""
        return torch.randint(below, shape, generator=self.generator, device=self.device)


@dataclass(frozen=True)
class Batch:
    """One step's input."""

    hidden: torch.Tensor
    noise: torch.Tensor
    positions: torch.Tensor
    """Of [context | noise], [batch, keys]."""
    masks: dict[bool, Any]
    """Block masks by whether a layer slides."""
    labels: torch.Tensor
    weights: torch.Tensor
    anchors: list[list[int]]
    """As drawn; rows may be shorter than the width."""


def block_mask(size: plan.Size, anchors: torch.Tensor, window: int) -> Any:
    """The BlockMask of [batch, width] anchors; rebuilt every step, as the trainers do (128 x 128 blocks, H=None).

    A block whose anchor is -1 pads its row and sees nothing.
    """
    length, block = size.length, size.block

    def visible(b: Any, h: Any, query: Any, key: Any) -> Any:
        own = query // block
        anchor = anchors[b, own]
        context = key < anchor
        if window:
            context = context & (key >= anchor - window)
        draft = (key >= length) & ((key - length) // block == own)
        return (anchor >= 0) & (context | draft)

    queries = anchors.shape[1] * block
    return create_block_mask(visible, size.batch, None, queries, length + queries, device=anchors.device)


def make_batch(
    size: plan.Size,
    width: int,
    source: Source,
    head: torch.Tensor,
    window: int,
    hidden: torch.Tensor | None = None,
) -> Batch:
    """Random tokens and anchors; ``width`` blocks a row, the shorter rows padded with invalid ones.

    The target's hidden states, [batch, length, targets x hidden], are random where they are not given.
    """
    device = source.device
    drawn = plan.anchors(size, width, source.numbers)
    padded = [row + [-1] * (width - len(row)) for row in drawn]
    anchors = torch.tensor(padded, device=device)
    valid, starts = anchors >= 0, anchors.clamp(min=0)
    offsets = torch.arange(size.block, device=device)
    tokens = source.tokens(size.batch, size.length, below=size.vocab - 1)
    places = starts[..., None] + offsets
    ids = torch.full_like(places, size.vocab - 1)  # the last id is MASK
    ids[..., 0] = tokens.gather(1, starts)
    labels = tokens.gather(1, places.flatten(1).clamp(max=size.length - 1))
    # Position k predicts token anchor + k; the anchor itself (k = 0) is given, and past the sequence there is none.
    decay = torch.exp(-(offsets - 1).float() / size.gamma) * (offsets > 0)
    weights = (decay * valid[..., None] * (places < size.length)).flatten(1)
    context = torch.arange(size.length, device=device).expand(size.batch, -1)
    masks = {False: block_mask(size, anchors, 0)}
    if window:
        masks[True] = block_mask(size, anchors, window)
    return Batch(
        hidden=source.normal(size.batch, size.length, size.targets * size.hidden) if hidden is None else hidden,
        noise=functional.embedding(ids.flatten(1), head),
        positions=torch.cat((context, places.flatten(1)), dim=1),
        masks=masks,
        labels=labels,
        weights=weights / weights.sum(),
        anchors=drawn,
    )


class HeadLoss(torch.autograd.Function):
    """Weighted cross entropy through the frozen head, some rows at a time: the logits need not fit at once."""

    @staticmethod
    def forward(ctx: Any, hidden: torch.Tensor, head: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor) -> Any:
        """The loss; the gradient with respect to ``hidden`` is made on the way."""
        total, gradient = hidden.new_zeros((), dtype=torch.float32), torch.empty_like(hidden)
        step = plan.loss_chunk(head.shape[0], hidden.shape[0])
        for start in range(0, hidden.shape[0], step):
            part = slice(start, start + step)
            logs = (hidden[part] @ head.T).float().log_softmax(-1)
            chosen = labels[part, None]
            total -= (weights[part] * logs.gather(1, chosen)[:, 0]).sum()
            slope = logs.exp_().scatter_add_(1, chosen, torch.full_like(chosen, -1, dtype=logs.dtype))
            gradient[part] = slope.mul_(weights[part, None]).to(hidden.dtype) @ head
        ctx.save_for_backward(gradient)
        return total

    @staticmethod
    def backward(ctx: Any, slope: torch.Tensor) -> Any:
        """Gradients for ``hidden`` only."""
        return ctx.saved_tensors[0] * slope.to(ctx.saved_tensors[0].dtype), None, None, None


def loss_of(model: Drafter, batch: Batch, head: torch.Tensor, attend: Attend) -> torch.Tensor:
    """The training loss of a batch."""
    hidden = model(batch, attend)
    return HeadLoss.apply(hidden.flatten(0, 1), head, batch.labels.flatten(), batch.weights.flatten())


def visible_rows(size: plan.Size, anchors: list[list[int]], width: int, rows: list[int], window: int) -> torch.Tensor:
    """What the sampled queries see, [batch, rows, keys], from the plan's ranges and not from the mask under test."""
    seen = torch.zeros(size.batch, len(rows), size.length + width * size.block, dtype=torch.bool)
    for item, row_anchors in enumerate(anchors):
        for index, row in enumerate(rows):
            block = row // size.block
            anchor = row_anchors[block] if block < len(row_anchors) else None
            for part in plan.visible(size, block, anchor, window):
                seen[item, index, part.start : part.stop] = True
    return seen


def reference(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
    """Dense attention, heads first in and out; a query that sees nothing gets zeros, as in flex attention."""
    groups = query.shape[1] // key.shape[1]
    scores = query @ key.repeat_interleave(groups, dim=1).transpose(-2, -1) / math.sqrt(query.shape[-1])
    shares = scores.masked_fill(~seen[:, None], -1e30).softmax(-1) * seen[:, None]
    return shares @ value.repeat_interleave(groups, dim=1)


def tolerances(dtype: torch.dtype) -> tuple[float, float]:
    """Largest relative error (of the Frobenius norm) that rounding explains: forward, gradients.

    bf16 rounds to u = 2**-8. Forward: inputs are exact, the shares are rounded to bf16 before they meet the values and
    the result is rounded once more: 2u. Gradients: the output, the shares, the slopes of the scores and the result: 4u.
    Twice that for the kernels' own scale factors and exp2. A wrong key, a torn buffer or a lost block is off by far
    more. float32 keeps its inputs at u = 2**-24, and sums over up to 2**14 keys may lose 14 bits at the very worst.
    """
    if dtype == torch.bfloat16:
        return 4 * 2.0**-8, 8 * 2.0**-8
    return 2.0**-10, 2.0**-9


def attention_inputs(size: plan.Size, width: int, source: Source, gradients: bool) -> list[torch.Tensor]:
    """Random query, key and value, heads first, for ``width`` blocks a row.

    Laid out as the layers lay them out (tokens before heads in memory): another layout would compile anew.
    """
    queries, keys = width * size.block, size.length + width * size.block
    return [
        source.normal(size.batch, tokens, heads, size.head_dim).transpose(1, 2).requires_grad_(gradients)
        for tokens, heads in ((queries, size.heads), (keys, size.kv_heads), (keys, size.kv_heads))
    ]


def check_attention(
    size: plan.Size, width: int, source: Source, attend: Attend, layer: nn.Module, head: torch.Tensor, window: int
) -> list[tuple[str, float, float]]:
    """Attention and its gradients against float64: name, relative error, tolerance.

    The shape is one that the thread has just trained with, so the kernels checked are the ones that ran. The output's
    gradient is zero outside the sampled rows: then the gradients of all three inputs depend on those rows alone.
    Without gradients (on a CPU) only the forward is compared.
    """
    batch = make_batch(size, width, source, head, window)
    sliding = bool(layer.sliding)
    gradients = source.device.type == "cuda"
    query, key, value = attention_inputs(size, width, source, gradients)
    queries = query.shape[2]
    rows = sorted({index * queries // SAMPLED_ROWS for index in range(SAMPLED_ROWS)})
    at = torch.tensor(rows, device=source.device)
    seen = visible_rows(size, batch.anchors, width, rows, window if sliding else 0).to(source.device)
    wide = [x.detach().double().requires_grad_(gradients) for x in (query[:, :, at], key, value)]
    out, exact = attend(layer, query, key, value, batch.masks[sliding]), reference(*wide, seen)
    forward, backward = tolerances(source.dtype)
    pairs = [("attention forward", out.transpose(1, 2)[:, :, at], exact, forward)]
    if gradients:
        slope = source.normal(size.batch, len(rows), size.heads, size.head_dim)
        out.backward(torch.zeros_like(out).index_copy(1, at, slope))
        exact.backward(slope.transpose(1, 2).double())
        found = (query.grad[:, :, at], key.grad, value.grad)
        pairs += [
            (f"attention gradient of {name}", mine, its.grad, backward)
            for name, mine, its in zip(("query", "key", "value"), found, wide, strict=True)
        ]
    errors = [float((mine.detach().double() - its).norm() / its.norm()) for _, mine, its, _ in pairs]
    return [(name, error, limit) for (name, _, _, limit), error in zip(pairs, errors, strict=True)]
