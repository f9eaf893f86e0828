"""What a failed gate offers: a question that a bisection has for it, and a command line for a shell."""

from __future__ import annotations

import shlex

from bisect_env.gate import offering
from bisect_env.gate.records import Question
from bisect_env.trials.records import Outcome, StepTime
from tests.gate.build import trial


def speeds(*tokens: int) -> list[object]:
    return [trial(at, steps=(StepTime("w", each, 0.01, 1.0, True),)) for at, each in enumerate(tokens)]


def test_a_race_is_the_default_question() -> None:
    said = offering.command(
        [Question.RACES], ("a b.txt", "cell:3f"), ("--threads", "3", "--", "python", "x.py"), ([], [])
    )
    assert shlex.split(said) == [
        "bisect-env", "bisect", "--good", "a b.txt", "--bad", "cell:3f", "--threads", "3", "--", "python", "x.py",
    ]  # fmt: skip


def test_slower_and_larger_are_asked_for_half_way() -> None:
    sides = (speeds(1000, 1000, 10), speeds(400, 250, 250))
    assert offering.question([Question.THROUGHPUT], sides) == "throughput<50000"  # type: ignore[arg-type]
    assert offering.question([Question.THROUGHPUT], sides[::-1]) is None  # type: ignore[arg-type]
    memory = ([trial(0, peak_bytes=100)], [trial(0, peak_bytes=400)])
    assert offering.question([Question.MEMORY], memory) == "memory>200"
    assert offering.question([Question.MEMORY, Question.NUMBERS], memory) == ""


def test_what_no_bisection_can_ask() -> None:
    assert offering.question([Question.ENVIRONMENT], ([], [])) is None
    assert offering.question([Question.ENVIRONMENT], ([], [trial(0, Outcome.IMPORT_FAILED)])) == ""
    assert offering.question([Question.ATTENTION], ([], [])) is None
    assert offering.command([Question.ATTENTION], ("a", "b"), (), ([], [])) == ""
