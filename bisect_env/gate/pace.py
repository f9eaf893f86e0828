"""How long the trials and rounds of a gate take, and what they report, by those that are stored. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import median

from bisect_env.gate.records import Question
from bisect_env.store.trials import StoredTrial
from bisect_env.trials.records import Outcome, Side, TrialRecord

ALWAYS = (Question.ENVIRONMENT, Question.RACES)
"""Asked of any command."""


def per_trial(samples: Iterable[StoredTrial], at_once: int) -> float | None:
    """Seconds of the machine for one trial, those side by side sharing it; None before the first."""
    counted = (Side.THREADS, Side.SERIAL)
    found = [s.record.seconds for s in samples if s.record.side in counted and s.record.outcome is not Outcome.INFRA]
    return median(found) / at_once if found else None


def per_pair(samples: Iterable[StoredTrial]) -> float | None:
    """Seconds for a pair of rounds, its part of its session's start included; None before the first session."""
    sessions: defaultdict[tuple[str, int], list[TrialRecord]] = defaultdict(list)
    for sample in samples:
        if sample.record.side is Side.ROUNDS and sample.record.rounds:
            sessions[sample.run_id, sample.block].append(sample.record)
    found = [
        (max(r.started + r.seconds for r in records) - min(r.started for r in records))
        / max(len(r.rounds) for r in records)
        for records in sessions.values()
    ]
    return median(found) if found else None


def asked(protocol: bool, rounds: int, samples: Sequence[StoredTrial]) -> tuple[Question, ...]:
    """The questions that can be answered, as far as is known before the end.

    A shipped reproducer answers all, but for what its condition or the machine leaves out, which its lines then say; a
    command of the user's own those that it has reported something of.

    Args:
        protocol: whether it is a shipped one.
        rounds: pairs of rounds of a session; 0: it has none.
        samples: trials of both sides.
    """
    records = [sample.record for sample in samples if sample.record.side in (Side.THREADS, Side.SERIAL)]
    reported = {
        Question.THROUGHPUT: rounds > 0 or any(record.tokens_per_second is not None for record in records),
        Question.MEMORY: any(record.peak_bytes is not None for record in records),
        Question.ATTENTION: any(record.paths for record in records),
        Question.NUMBERS: any(record.numbers or record.losses for record in records),
    }
    if protocol and not records:
        return tuple(Question)
    return tuple(question for question in Question if question in ALWAYS or reported[question])
