"""Whether a trial computed the right numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite

from bisect_env.trials.records import TrialRecord

UNIT_ROUNDOFF = {"float32": 2.0**-11, "bfloat16": 2.0**-9, "float16": 2.0**-11}
"""Of the arithmetic that matrix products use: bfloat16 keeps 8 bits, float16 11, and float32 the 11 of TF32 where that
is allowed. (IEEE 754; NVIDIA A100 white paper for TF32.)"""
ROUNDOFFS = 8
"""Losses may differ by so many unit roundoffs, of the control's largest loss: 1.6 % in bfloat16, 0.4 % in float32. Two
correct runs of one seed differ by the order of their sums only; a loss is a mean, so these errors mostly cancel, and
eight leave room for their growth over the steps. A wrong attention or a lost update is far above."""


def wrong_numbers(record: TrialRecord) -> str:
    """What was checked and found beyond its tolerance, or an empty string. Not a number counts as beyond."""
    beyond = [(error, what, tolerance) for what, error, tolerance in record.numbers if not error <= tolerance]
    if not beyond:
        return ""
    error, what, tolerance = min(beyond, key=lambda item: (item[1], item[2]))
    return f"{what}: relative error {error:.2g}, tolerance {tolerance:.2g}"


def wrong_losses(record: TrialRecord, control: TrialRecord | None) -> str:
    """In which thread the losses left those of the control with the same seed, or an empty string.

    Only steps that both sides made are compared; a thread that the control does not have is not.
    """
    if control is None:
        return ""
    tolerance = loss_tolerance(record)
    expected: Mapping[str, Sequence[float]] = dict(control.losses)
    for thread, losses in sorted(record.losses):
        wanted = expected.get(thread, ())
        scale = max((abs(value) for value in wanted if isfinite(value)), default=0.0)
        for step, (loss, right) in enumerate(zip(losses, wanted, strict=False)):
            same = abs(loss - right) <= tolerance * scale if isfinite(loss) and isfinite(right) else _alike(loss, right)
            if not same:
                return f"{thread}: loss {loss:.6g} at step {step}, {right:.6g} in the serial control with the same seed"
    return ""


def loss_tolerance(record: TrialRecord) -> float:
    """Relative to the largest loss; bfloat16's where the condition does not name a ``dtype``."""
    return ROUNDOFFS * UNIT_ROUNDOFF.get(str(record.condition.get("dtype", "")), UNIT_ROUNDOFF["bfloat16"])


def _alike(a: float, b: float) -> bool:
    return a == b or (a != a and b != b)
