"""How long trials and rounds take, and which questions can be answered."""

from __future__ import annotations

from bisect_env.gate import pace
from bisect_env.gate.records import Question
from bisect_env.trials.records import Outcome, Round, Side, StepTime
from tests.gate.build import trial


def test_seconds_of_a_trial_are_those_of_the_machine() -> None:
    samples = [
        trial(0, seconds=4.0),
        trial(1, seconds=6.0),
        trial(2, seconds=8.0),
        trial(3, Outcome.INFRA, seconds=99.0),
    ]
    assert pace.per_trial(samples, 1) == 6.0 and pace.per_trial(samples, 3) == 2.0
    assert pace.per_trial([], 1) is None


def test_seconds_of_a_pair_have_their_part_of_the_start() -> None:
    rounds = tuple(Round(index, 10, 1.0, 0.0) for index in range(4))
    session = [
        trial(0, side=Side.ROUNDS, started=100.0, seconds=20.0, rounds=rounds),
        trial(0, side=Side.ROUNDS, started=101.0, seconds=27.0, rounds=rounds),
    ]
    assert pace.per_pair(session) == 7.0
    assert pace.per_pair([trial(0)]) is None


def test_a_command_is_asked_what_it_has_reported() -> None:
    assert pace.asked(True, 0, []) == tuple(Question), "a shipped reproducer: all, until it is known better"
    assert pace.asked(False, 0, []) == (Question.ENVIRONMENT, Question.RACES)
    told = trial(0, peak_bytes=5, steps=(StepTime("w", 10, 0.1, 1.0, True),))
    assert pace.asked(False, 0, [told]) == pace.asked(True, 0, [told]) == (
        Question.ENVIRONMENT, Question.RACES, Question.THROUGHPUT, Question.MEMORY,
    )  # fmt: skip
    assert Question.THROUGHPUT in pace.asked(False, 8, [])
