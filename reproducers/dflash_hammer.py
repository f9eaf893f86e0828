"""Many exposures in little time: warm attention calls as fast as they go, beside functions that are compiled anew."""

from __future__ import annotations

import itertools
import types
from collections.abc import Callable
from typing import Any

import dflash_model as model
import torch
from dflash_mitigations import lock
from dflash_worker import Thread
from protocol import Worker
from torch.nn import functional

CALLS_IN_FLIGHT = 4
"""Calls between two synchronisations of the stream: the device keeps busy, its queue stays short. One of so many goes
backward too, which takes the device three times as long as the call that may trip."""
ROWS, LEAST_WIDTH, MORE_WIDTH = 128, 64, 16


def _gated(x: Any, norm: Any, gate: Any, up: Any, down: Any) -> Any:
    wide = x.float()
    normed = (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * norm
    return x + (functional.silu(normed @ gate) * (normed @ up)) @ down


class Fresh:
    """RMSNorm and SwiGLU as one new function of a width of its own, compiled forward and backward when first called.

    Dynamo caches by code object, and this has one of its own. An ordinary function: flex attention takes many times
    as long to compile, and what a warm caller trips over is the tracing, which this has as well.
    """

    def __init__(self, number: int, thread: Thread) -> None:
        self._thread, self._mitigation = thread, thread.condition["mitigation"]
        width = LEAST_WIDTH + MORE_WIDTH * number
        shapes = ((width,), (width, 2 * width), (width, 2 * width), (2 * width, width))
        self._x = thread.spare.normal(ROWS, width)
        self._weights = [(thread.spare.normal(*shape) / width**0.5).requires_grad_() for shape in shapes]
        code = _gated.__code__
        name, line = f"gated_{thread.index}_{number}", code.co_firstlineno + 1000 * thread.index + number
        self._function = types.FunctionType(code.replace(co_name=name, co_firstlineno=line), globals(), name)
        self._compiled: Any = None

    def call(self, worker: Worker) -> None:
        """Forward and backward."""
        worker.calling()
        if self._compiled is None:
            with lock(self._mitigation, "lock-creation"):
                backend = self._thread.condition["backend"]
                self._compiled = torch.compile(self._function, backend=backend, dynamic=False)
        with lock(self._mitigation, "lock-all"):
            # Called once, and once before by the mitigation `warmup`: where it counts, each call is the first.
            with lock(self._mitigation, "lock-first-call"):
                out = self._compiled(self._x, *self._weights)
            torch.autograd.grad(out.float().square().mean(), self._weights)
        self._thread.lane.synchronize()
        worker.alive()


class Hammer:
    """A thread's warm attention calls without anything else of a training step; now and then with their backward."""

    def __init__(self, thread: Thread, worker: Worker) -> None:
        self._thread, self._worker, self._calls = thread, worker, 0
        size, window, source = thread.size, thread.condition["window"], thread.spare
        gradients = not thread.without_gradients
        self._prepared = []
        for width in thread.widths:
            masks = model.make_batch(size, width, source, thread.head, window).masks
            inputs = model.attention_inputs(size, width, source, gradients)
            slope = source.normal(size.batch, width * size.block, size.heads, size.head_dim)
            kinds = {layer.sliding: layer for layer in thread.model.layers}
            self._prepared += [(layer, inputs, masks[sliding], slope) for sliding, layer in kinds.items()]

    def strike(self, until: Callable[[], bool]) -> None:
        """Call every shape at least once, and go on until told to stop or another thread failed."""
        attend, mitigation = self._thread.attending(self._worker), self._thread.condition["mitigation"]
        for number, (layer, inputs, mask, slope) in enumerate(itertools.cycle(self._prepared)):
            if self._worker.stopping or (number >= len(self._prepared) and until()):
                break
            backward = number < len(self._prepared) or number % CALLS_IN_FLIGHT == 0
            with lock(mitigation, "lock-all"):
                out = attend(layer, *inputs, mask)
                if out.requires_grad and backward:
                    torch.autograd.grad(out, inputs, slope)
            if number % CALLS_IN_FLIGHT == 0:
                self._thread.lane.synchronize()
            self._worker.alive()
        self._thread.lane.synchronize()
