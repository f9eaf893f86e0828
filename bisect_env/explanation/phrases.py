"""Times, places and pieces of state in the words of an account. Pure.

Times are seconds since the witness began, as in the pictures.
"""

from __future__ import annotations

from collections.abc import Sequence

from bisect_env.explanation.records import Frame, State, WitnessLog

WRAPPERS = frozenset(
    {
        "_fn",
        "inner",
        "wrapper",
        "wrapped",
        "__call__",
        "__enter__",
        "__exit__",
        "enter_context",
        "__next__",
        "decorate_context",
    }
    | {"_call_impl", "_wrapped_call_impl"}
)
"""Functions that only pass a call on; no sentence names them."""
CALLERS = 3
"""Further frames that a sentence names behind the innermost one."""
LONGEST = 200
"""Characters of a message in a sentence."""
NAMES = {
    State.TRACING: "the tracing flag",
    State.COMPILING: "the flag behind is_compiling()",
    State.TRACE: "a trace",
    State.COMPILE: "a compile",
    State.LOCK: "the compile lock",
    State.CONFIG: "dynamo's configuration",
    State.RECOMPILE_LIMIT: "the recompile limit",
    State.ANNOTATION: "FX annotations",
    State.PATCHER: "the patches of a trace",
    State.METRICS: "the metrics of a compile",
    State.KERNEL: "a kernel's load or tuning",
    State.BACKWARD: "a compiled function's backward",
    State.UNFUSED: "the eager attention",
    State.STANDING: "where it stood",
    State.UNCAUGHT: "an exception",
}


class Clock:
    """Times as sentences tell them."""

    def __init__(self, log: WitnessLog) -> None:
        self._zero = min([log.started, *(event.t for event in log.events[:1])])

    def at(self, t: float) -> str:
        """``3.2041 s``."""
        return f"{t - self._zero:.4f} s"


def took(seconds: float) -> str:
    """A short time: ``0.1 ms``, ``23 ms``, ``1.4 s``."""
    if seconds < 0.00005:
        return "less than 0.1 ms"
    if seconds < 0.0095:
        return f"{1000 * seconds:.1f} ms"
    return f"{1000 * seconds:.0f} ms" if seconds < 0.9995 else f"{seconds:.1f} s"


def place(stack: Sequence[Frame], callers: int = CALLERS) -> str:
    """``Tracer.trace (torch/fx/_symbolic_trace.py:781) <- dispatch_trace <- make_fx``; empty without a stack."""
    if not stack:
        return ""
    first, *rest = stack
    names: list[str] = []
    for frame in rest:
        passes_on = frame.function in WRAPPERS or frame.function.startswith("<")
        if not passes_on and frame.function != [first.function, *names][-1]:
            names.append(frame.function)
    behind = "".join(f" <- {name}" for name in names[:callers])
    return f"{first.function} ({first.path}:{first.line}){behind}"


def cut(message: str) -> str:
    """A message of one line, with a full stop."""
    line = " ".join(message.split())
    line = line if len(line) <= LONGEST else line[: LONGEST - 3] + "..."
    return line if line.endswith((".", "!", "?")) else line + "."
