"""How the drafter's attention is called: through one shared compiled object, or through transformers' flex path.

Both shared objects are made by whichever thread comes first and without a lock, as in the trainers, unless the
condition's mitigation says otherwise. Every worker calls through an :class:`Attention` of its own, which counts.
"""

from __future__ import annotations

import importlib
import threading
import types
from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from dflash_mitigations import TURN, lock
from torch.nn.attention.flex_attention import flex_attention

Counts = defaultdict[int, int]
"""Calls by identity of the thread that made them: no thread writes another's entry."""


def counting(module: Any, name: str, counts: Counts, only: Callable[[Any], bool]) -> None:
    """Count calls of ``module.name`` by thread, those whose result satisfies ``only``."""
    original = getattr(module, name)

    def counted(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        if only(result):
            counts[threading.get_ident()] += 1
        return result

    setattr(module, name, counted)


class Signs:
    """Signs that attention ran unfused, by name; one that the libraries do not give is absent.

    ``math_attention`` counts entries into torch's unfused implementation, whoever led there: the library's choice, an
    eager fallback, or the backend `eager`. Under aot_eager, which stands in for inductor where that takes too long,
    compiled graphs end there too; those entries do not count, so they are counted at the uncompiled function's door.
    ``library_choice`` counts transformers (4.53 and newer) taking the uncompiled function because it believes to be
    inside a compile.
    """

    def __init__(self, backend: str, attention: str) -> None:
        self.counts: dict[str, Counts] = {}
        # Not attribute paths: the packages export a function under each of these modules' names.
        if backend == "aot_eager":
            self._follow("math_attention", "torch.nn.attention.flex_attention", "setup_compilation_env")
        else:
            self._follow("math_attention", "torch._higher_order_ops.flex_attention", "math_attention")
        if attention == "transformers":
            library = "transformers.integrations.flex_attention"
            self._follow("library_choice", library, "is_torchdynamo_compiling", only=bool)

    def _follow(self, sign: str, module: str, name: str, only: Callable[[Any], bool] = lambda result: True) -> None:
        found = importlib.import_module(module)
        if hasattr(found, name):
            self.counts[sign] = defaultdict(int)
            counting(found, name, self.counts[sign], only)

    def here(self) -> dict[str, int]:
        """The calling thread's counts."""
        return {name: counts[threading.get_ident()] for name, counts in self.counts.items()}


Call = Callable[[Any, torch.Tensor, torch.Tensor, torch.Tensor, Any], torch.Tensor]


def through_torch(backend: str, mitigation: str) -> Call:
    """One module-level compiled flex attention for all threads, made by whichever comes first."""
    made: list[Any] = []

    def shared() -> Any:
        if not made:
            made.append(torch.compile(flex_attention, backend=backend))
        return made[0]

    def call(layer: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: Any) -> torch.Tensor:
        with lock(mitigation, "lock-creation"):
            compiled = shared()
        return compiled(query, key, value, block_mask=mask, enable_gqa=True).transpose(1, 2)

    return call


def through_transformers(backend: str, mitigation: str, device: str) -> Call:
    """transformers' own singleton, made by whichever thread comes first, in a repeat as well.

    On a CPU its ``compile_friendly_flex_attention`` is called directly: 4.52's ``flex_attention_forward`` asks for the
    log-sum-exp, which does not compile there.
    """
    library = importlib.import_module("transformers.integrations.flex_attention")
    functions = importlib.import_module("transformers.modeling_utils").ALL_ATTENTION_FUNCTIONS
    if hasattr(library, "WrappedFlexAttention"):
        library.WrappedFlexAttention._instance = None
    if backend != "inductor":
        library.WrappedFlexAttention(True)._compiled_flex_attention = torch.compile(flex_attention, backend=backend)

    def call(layer: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: Any) -> torch.Tensor:
        if mitigation == "lock-creation":
            with TURN:
                library.WrappedFlexAttention(layer.training)
        scale = query.shape[-1] ** -0.5
        if device == "cuda":
            return functions["flex_attention"](layer, query, key, value, mask, dropout=0.0, scaling=scale)[0]
        out = library.compile_friendly_flex_attention(
            query, key, value, training=layer.training, block_mask=mask, enable_gqa=True, scale=scale
        )
        return out.transpose(1, 2)

    return call


def uncompiled(layer: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: Any) -> torch.Tensor:
    """Flex attention as the library has it: dense."""
    return flex_attention(query, key, value, block_mask=mask, enable_gqa=True).transpose(1, 2)


def _template(query: Any, key: Any, value: Any, mask: Any) -> Any:
    return flex_attention(query, key, value, block_mask=mask, enable_gqa=True)


def fresh(number: int, backend: str) -> Call:
    """Attention that compiles anew at its first call: dynamo caches by code object, and this has one of its own."""
    code = _template.__code__.replace(
        co_name=f"attention_{number}", co_firstlineno=_template.__code__.co_firstlineno + number
    )
    compiled = torch.compile(types.FunctionType(code, globals()), backend=backend, dynamic=False)

    def call(layer: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: Any) -> torch.Tensor:
        return compiled(query, key, value, mask).transpose(1, 2)

    return call


class Attention:
    """One worker's way to the attention, counting calls and signs after its first completed call of each shape.

    ``calling`` is told of every call before it is made. ``without_gradients`` is for the CPU, where flex attention has
    no backward.
    """

    def __init__(
        self, call: Call, signs: Signs, calling: Callable[[], None], mitigation: str, without_gradients: bool
    ) -> None:
        self.call, self.signs, self.calling = call, signs, calling
        self.locked_first, self.without_gradients = mitigation == "lock-first-call", without_gradients
        self.known: set[Any] = set()
        self.calls, self.unfused = 0, dict.fromkeys(signs.counts, 0)

    def restart(self) -> None:
        """Count from here on; the shapes stay known."""
        self.calls, self.unfused = 0, dict.fromkeys(self.unfused, 0)

    def __call__(
        self, layer: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: Any
    ) -> torch.Tensor:
        """Attend; see ``dflash_model.Attend``."""
        # A reentrant checkpoint's forward has no gradients and compiles apart from its recompute.
        shape = (query.shape, key.shape, layer.sliding, torch.is_grad_enabled())
        first = shape not in self.known
        turn: AbstractContextManager[Any] = TURN if first and self.locked_first else nullcontext()
        if self.without_gradients:
            query, key, value = query.detach(), key.detach(), value.detach()
        self.calling()
        before = self.signs.here()
        with turn:
            out = self.call(layer, query, key, value, mask)
        if first:
            self.known.add(shape)
            return out
        self.calls += 1
        for name, count in self.signs.here().items():
            self.unfused[name] += count > before[name]
        return out
