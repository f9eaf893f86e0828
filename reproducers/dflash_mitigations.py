"""What a trainer can do against the race, each as the few lines that a user would put into a training script.

  warmup                 every shape and function, forward and backward, in one thread before the others start:
                         in the script, one dummy step a shape and model before `thread.start()`
  constant-shapes        pad every batch to one width, so that there is one shape to compile
  lock-creation          `with lock: compiled = torch.compile(f)`; what the incident's trainer had
  lock-first-call        `with lock: compiled(...)` round a thread's first call of each shape. The call only: its
                         backward, which is compiled when it first runs, is outside
  lock-all               `with lock:` round every forward + backward
  per-thread-config      set `torch._dynamo.config` in each worker thread, and in the thread that runs its backward
  no-nested-trace-error  `torch._dynamo.config.error_on_nested_fx_trace = False`: no error, the call runs uncompiled
  thread-aware-check     replace the check "is FX tracing?", which is one for the process up to torch 2.13, by one that
                         asks for the calling thread; before any `torch.compile`

A mitigation that this torch has no use for says so in a note and the trial runs; one that cannot be applied ends the
trial with 125.
"""

from __future__ import annotations

import contextvars
import importlib
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from condition import CannotRunHere
from protocol import Trial

NAMES = (
    "none", "warmup", "constant-shapes", "lock-creation", "lock-first-call", "lock-all", "per-thread-config",
    "no-nested-trace-error", "thread-aware-check",
)  # fmt: skip
TURN = threading.RLock()
"""What the lock mitigations hold."""
TRAINERS_LIMIT = 64
"""Recompile limit that trainers set at import (SpecForge); dynamo's own is 8."""


def lock(mitigation: str, *wanted: str) -> AbstractContextManager[Any]:
    """The lock where the mitigation is one of ``wanted``, nothing elsewhere."""
    return TURN if mitigation in wanted else nullcontext()


def install(trial: Trial) -> None:
    """What the main thread does, before any ``torch.compile``. ``recompile_limit`` is set here, as trainers do.

    Raises:
        CannotRunHere: this torch lacks what the mitigation changes.
    """
    config: Any = torch._dynamo.config
    mitigation, limit = trial.condition["mitigation"], trial.condition["recompile_limit"]
    if limit:
        config.recompile_limit = limit
    if mitigation == "no-nested-trace-error":
        if not hasattr(config, "error_on_nested_fx_trace"):
            raise CannotRunHere("this torch has no torch._dynamo.config.error_on_nested_fx_trace")
        if not _flag_of_the_process():
            _nothing_to_do(trial, "tracing is told per thread in this torch: the error is not met across threads")
    if mitigation == "per-thread-config" and not _config_per_thread():
        _nothing_to_do(trial, "dynamo's configuration is one for all threads in this torch")
    if mitigation == "thread-aware-check":
        if _flag_of_the_process():
            _replace_check()
        else:
            _nothing_to_do(trial, "this torch asks for the calling thread itself")


def in_thread(trial: Trial, worker: str, device: torch.device) -> None:
    """What each worker thread does before its work: dynamo's configuration, where the mitigation is one of it."""
    mitigation = trial.condition["mitigation"]
    if mitigation == "per-thread-config":
        name, value = "recompile_limit", trial.condition["recompile_limit"] or TRAINERS_LIMIT
    elif mitigation == "no-nested-trace-error":
        name, value = "error_on_nested_fx_trace", False
    else:
        return
    config: Any = torch._dynamo.config
    seen: list[object] = []

    def set_here() -> None:
        setattr(config, name, value)
        seen.append(getattr(config, name))

    set_here()
    in_backward_thread(device, set_here)
    trial.events.emit("note", key=f"config_{worker}", value=f"{name}: {seen[0]}, in its backward's thread {seen[1]}")


def in_backward_thread(device: torch.device, function: Callable[[], None]) -> None:
    """Call ``function`` in the thread that runs the calling thread's backward: autograd's own, one for each GPU.

    On a CPU that is the calling thread itself.
    """

    class Caller(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, slope: torch.Tensor) -> torch.Tensor:
            function()
            return slope

    Caller.apply(torch.ones(1, device=device, requires_grad=True)).backward()


def _nothing_to_do(trial: Trial, why: str) -> None:
    trial.events.emit("note", key="mitigation", value=f"{trial.condition['mitigation']} changes nothing here: {why}")


def _config_per_thread() -> bool:
    # A new thread starts with an empty context, so what is not seen from one is not seen there either.
    config: Any = torch._dynamo.config
    before = config.recompile_limit
    with config.patch(recompile_limit=before + 1):
        return bool(contextvars.Context().run(getattr, config, "recompile_limit") == before)


def _symbolic_trace() -> Any:
    return importlib.import_module("torch.fx._symbolic_trace")


def _flag_of_the_process() -> bool:
    return hasattr(_symbolic_trace(), "_is_fx_tracing_flag")


def _replace_check() -> None:
    """Let dynamo see the tracing flag only in a thread that is inside ``Tracer.trace``."""
    library, here = _symbolic_trace(), threading.local()
    trace, check = library.Tracer.trace, getattr(library, "is_fx_symbolic_tracing", None)
    if check is None:
        raise CannotRunHere("this torch asks whether FX is tracing in another way than the mitigation replaces")

    def traced(self: Any, *args: Any, **kwargs: Any) -> Any:
        here.depth = getattr(here, "depth", 0) + 1
        try:
            return trace(self, *args, **kwargs)
        finally:
            here.depth -= 1

    # Both: a thread inside a trace may have cleared the flag for a nested compile (_set_compilation_env).
    def tracing_here() -> bool:
        return getattr(here, "depth", 0) > 0 and bool(check())

    library.Tracer.trace, library.is_fx_symbolic_tracing = traced, tracing_here
    _prove(library)


def _prove(library: Any) -> None:
    """With the flag set, as if by another thread, a compiled function must run. Nothing is compiled for this."""
    library._is_fx_tracing_flag = True
    try:
        with torch.compiler.set_stance("force_eager"):
            torch.compile(lambda: None, backend="eager")()
    except RuntimeError as error:
        raise CannotRunHere(f"the replaced check is not the one that this torch asks: {error}") from error
    finally:
        library._is_fx_tracing_flag = False
