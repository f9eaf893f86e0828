"""How near a trial comes to what its device can do: a large matrix product, and one layer's attention alone.

Both are measured in the trial's own process, after its work, by one thread while the others wait. What they do is
counted by ``dflash_operations``. On CUDA that takes a second. Imports torch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import dflash_model as model
import dflash_operations as operations
import dflash_plan as plan
import torch

CUDA_SIDE, CPU_SIDE = 8192, 512
"""Rows and columns of the square product: large enough for its rate to have stopped growing (bf16, some 1.5 ms on an
H200), small enough to need no memory worth speaking of. On a CPU float32, in the calling thread's cores."""
WARM_UP, REPEATS = 10, 25
AHEAD_CYCLES = 10_000_000
"""The device is kept busy for so long (some 5 ms) before a timed call, so that all its kernels are queued when the
first of them starts: the device's time is wanted, not Python's."""
ON_CPU = "utilisation on a CPU: attention's forward only (it has no backward there), against a float32 matrix product"
"""For a note beside the events of a trial on a CPU."""


def ceiling(device: torch.device) -> float:
    """Operations a second of a square matrix product of random numbers in the type that the trial computes in.

    Random, since zeros and constants cost less power and so run faster than any training step could.
    """
    side, dtype = (CUDA_SIDE, torch.bfloat16) if device.type == "cuda" else (CPU_SIDE, torch.float32)
    generator = torch.Generator(device).manual_seed(0)
    left, right = (torch.randn(side, side, generator=generator, device=device, dtype=dtype) for _ in range(2))
    out = torch.empty_like(left)
    return 2 * side**3 / seconds(lambda: torch.mm(left, right, out=out), device)


def seconds(call: Callable[[], object], device: torch.device) -> float:
    """Median seconds that one of several calls keeps the device (the current stream) or the CPU busy."""
    for _ in range(WARM_UP):
        call()
    if device.type != "cuda":
        times = []
        for _ in range(REPEATS):
            began = time.perf_counter()
            call()
            times.append(time.perf_counter() - began)
        return median(times)
    pairs = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(REPEATS)]
    for begin, end in pairs:
        torch.cuda._sleep(AHEAD_CYCLES)
        begin.record()
        call()
        end.record()
    torch.cuda.synchronize(device)
    return median(begin.elapsed_time(end) for begin, end in pairs) / 1000


def utilisation(
    size: plan.Size,
    width: int,
    source: model.Source,
    attend: model.Attend,
    layer: Any,
    head: torch.Tensor,
    window: int,
    rounds: Sequence[tuple[int, float]],
    devices: int,
) -> list[dict[str, Any]]:
    """The values of a trial's ``utilisation`` events, without ``event`` and ``t``.

    Args:
        size: the drafter's dimensions.
        width: blocks a row; a width that the thread has trained with, so that its kernels are there.
        source: data that no loss depends on.
        attend: the attention that the trial used.
        layer: one of the drafter's layers; ``attend`` gets it, and its ``sliding`` says which mask it has.
        head: the frozen head.
        window: the condition's window.
        rounds: operations and seconds of each timed round, over all threads; may be empty.
        devices: how many devices those rounds kept busy.

    Returns:
        ``attention`` (of one layer, forward and backward, on this thread's device alone; on a CPU forward only) and,
        where there are rounds, ``step``: the round of median rate, against the ceiling of so many devices.
    """
    device = source.device
    limit = ceiling(device)
    batch = model.make_batch(size, width, source, head, window)
    gradients = device.type == "cuda"
    inputs = model.attention_inputs(size, width, source, gradients)
    slope = source.normal(size.batch, width * size.block, size.heads, size.head_dim)
    mask = batch.masks[bool(layer.sliding)]

    def once() -> None:
        out = attend(layer, *inputs, mask)
        if gradients:
            torch.autograd.grad(out, inputs, slope)

    own = window if layer.sliding else 0
    alone = {
        "what": "attention",
        "operations": operations.attention_operations(size, batch.anchors, own, gradients),
        "seconds": seconds(once, device),
        "ceiling": limit,
    }
    if not rounds:
        return [alone]
    done, took = operations.middle(rounds)
    return [alone, {"what": "step", "operations": done, "seconds": took, "ceiling": limit * devices}]
