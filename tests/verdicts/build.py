"""Records for the tests of the verdicts and the reports."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Any

from bisect_env.matrix.cells import Condition
from bisect_env.trials.records import (
    Failure,
    Outcome,
    PathCount,
    Side,
    Signature,
    StepTime,
    TrialRecord,
)
from bisect_env.verdicts.samples import Placed

FX = Signature("RuntimeError", "Detected that you are using FX to symbolically trace", "torch._dynamo.eval_frame")
SUBGRAPH = Signature("InductorError", "'Subgraph' object has no attribute 'dtype'", "torch._inductor.graph")
LETTERS = {
    ".": Outcome.CLEAN,
    "F": Outcome.FAILED,
    "S": Outcome.FAILED,
    "H": Outcome.HANG,
    "O": Outcome.OOM,
    "W": Outcome.WRONG,
    "I": Outcome.IMPORT_FAILED,
    "K": Outcome.SKIPPED,
    "X": Outcome.INFRA,
}
COLD = Condition.of({"threads": 2, "pattern": "hot", "cache": "cold", "device": "cpu"})
_numbers = count()


def failure(signature: Signature, thread: str = "w0") -> Failure:
    """A thread's failure."""
    text = f'Traceback (most recent call last):\n  File "x.py", line 1\n{signature}'
    return Failure(thread, signature, signature.template, "f:1", text, 1.0)


def record(side: Side, outcome: Outcome = Outcome.CLEAN, **more: Any) -> TrialRecord:
    """A trial; a failed one fails with the FX signature unless told otherwise."""
    if outcome in (Outcome.FAILED, Outcome.IMPORT_FAILED):
        more.setdefault("failures", (failure(FX),))
    values: dict[str, Any] = {
        "id": f"trial-{next(_numbers):06}",
        "environment": "env",
        "reproducer": "hash",
        "condition": COLD,
        "side": side,
        "seed": 0,
        "outcome": outcome,
    }
    return TrialRecord(**(values | more))


def side(which: Side, letters: str, **more: Any) -> list[TrialRecord]:
    """One trial for each letter; F fails with the FX signature, S with the Subgraph one."""
    return [
        record(which, LETTERS[x], **({"failures": (failure(SUBGRAPH),)} if x == "S" else {}), **more) for x in letters
    ]


def cell(threads: str, serial: str, solo: str = "", **more: Any) -> list[TrialRecord]:
    """The trials of a cell, such as ``cell("FF.F", "....")``; ``more`` goes to the threaded ones."""
    return side(Side.THREADS, threads, **more) + side(Side.SERIAL, serial) + side(Side.SOLO, solo)


def rates(values: Iterable[float], first: int = 0) -> list[Placed]:
    """Clean threaded trials of so many tokens a second, in blocks from ``first``."""
    return [
        Placed(record(Side.THREADS, steps=(StepTime("w0", round(value * 10), 10.0, 10.0, True),)), first + i)
        for i, value in enumerate(values)
    ]


def paths(*counts: tuple[str, int, dict[str, int]]) -> tuple[PathCount, ...]:
    """Attention paths, as (thread, calls, {sign: unfused})."""
    return tuple(PathCount(thread, calls, tuple(signs.items())) for thread, calls, signs in counts)
