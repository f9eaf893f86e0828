from __future__ import annotations

from math import inf, nan

import pytest

from bisect_env.matrix.cells import Condition
from bisect_env.trials.records import Side, TrialRecord
from bisect_env.verdicts.numbers import wrong_losses, wrong_numbers
from tests.verdicts.build import record


@pytest.mark.parametrize(("error", "wrong"), [(0.9e-3, False), (1e-3, False), (1.1e-3, True), (nan, True), (inf, True)])
def test_beyond_its_tolerance(error: float, wrong: bool) -> None:
    found = wrong_numbers(record(Side.THREADS, numbers=(("out", 1e-4, 1e-3), ("dq", error, 1e-3))))
    assert bool(found) is wrong
    assert not wrong or found.startswith("dq: relative error")


def losses(*values: float, thread: str = "w0", dtype: str = "bfloat16") -> TrialRecord:
    return record(Side.THREADS, losses=((thread, values),), condition=Condition.of({"dtype": dtype}))


@pytest.mark.parametrize(
    ("threaded", "control", "wrong"),
    [
        (losses(10, 9, 8), losses(10, 9.1, 8.1), False),
        (losses(10, 9, 8), losses(10, 9, 8.2), True),
        (losses(10, 9.05, dtype="float32"), losses(10, 9), True),
        (losses(10, 9.03, dtype="float32"), losses(10, 9), False),
        (losses(10, 0.01), losses(10, 0.02), False),
        (losses(10, nan), losses(10, 9), True),
        (losses(10, nan), losses(10, nan), False),
        (losses(10, 9), losses(10, inf), True),
        (losses(10), losses(10, 3), False),
        (losses(10, thread="w1"), losses(3), False),
        (losses(10), None, False),
    ],
)
def test_losses_against_the_control(threaded: TrialRecord, control: TrialRecord | None, wrong: bool) -> None:
    assert bool(wrong_losses(threaded, control)) is wrong


def test_the_message_says_where() -> None:
    assert wrong_losses(losses(10, 5), losses(10, 9)) == (
        "w0: loss 5 at step 1, 9 in the serial control with the same seed"
    )
