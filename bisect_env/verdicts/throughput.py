"""Tokens a second of a cell, and its ratio to another: from timed rounds, or else from its threaded trials."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import isfinite

from bisect_env.trials.records import Outcome, Round, TrialRecord
from bisect_env.verdicts.records import Throughput
from bisect_env.verdicts.samples import Sample, Sides
from bisect_env.verdicts.statistics import quartiles, ratio_interval, signed_rank_interval

WARMED = "warmed start"
"""Name in a ROUNDS record's ``extra``: its process began with a single-threaded warm-up, since it failed without."""
SLOWED = "slowed down"
"""The same: a GPU of its session was throttled, and by what."""

Session = tuple[str, int]
"""Run and block: the processes of one session took turns."""


def throughput(
    own: Sides, reference: Sides | None = None, warmed: Sides | None = None, confidence: float = 0.95
) -> Throughput | None:
    """Warm throughput of a cell; None when nothing of it was timed.

    Timed rounds decide where there are any. Else it comes from threaded trials that came through and ran alone, or,
    marked and without a ratio, from those of the same cell under its warmed-up condition.

    Args:
        own: the cell's trials.
        reference: those of the cell it is compared with. Rounds are paired within a session, trials within a block.
        warmed: the same cell's under its warmed-up condition.
        confidence: of the ratio's interval.
    """
    rounds = _rounds(own)
    if rounds:
        return _of_rounds(own, rounds, _rounds(reference), confidence)
    measured = _rates(own)
    if not measured:
        found = _rates(warmed)
        if not found:
            return None
        low, middle, high = quartiles([rate for _, rate in found])
        return Throughput(middle, low, high, len(found), warmed=True)
    low, middle, high = quartiles([rate for _, rate in measured])
    ratio = ratio_interval(_of_blocks(measured, _rates(reference)), confidence)
    return Throughput(middle, low, high, len(measured), *(ratio or (None, None, None)))


def rates(own: Sides) -> tuple[float, ...]:
    """Tokens a second of each round, or else of each trial, of which :func:`throughput` gives the quartiles.

    Empty where it has none of the cell's own.
    """
    rounds = _rounds(own)
    if rounds:
        return tuple(_rate(each) for session in rounds.values() for each in session)
    return tuple(rate for _, rate in _rates(own))


def sessions(own: Sides, reference: Sides) -> tuple[tuple[tuple[float, float], ...], ...]:
    """Tokens a second of both, pairs that were measured beside each other: those of one session of rounds together.

    Where nothing was timed in rounds, the pairs are those of the threaded trials, each a session by itself.
    """
    rounds = _rounds(own)
    if rounds:
        return tuple(_by_session(rounds, _rounds(reference)).values())
    runs = sorted({sample.run_id for sample in own.threads})
    sides = [[_rates(side, run) for side in (own, reference)] for run in runs]
    return tuple((pair,) for measured, beside in sides for pair in _of_blocks(measured, beside))


def was_warmed(record: TrialRecord) -> bool:
    """Whether it is of a process that began with a single-threaded warm-up, since it failed without."""
    return _has(record, WARMED)


def _of_rounds(
    own: Sides,
    rounds: Mapping[Session, Sequence[Round]],
    reference: Mapping[Session, Sequence[Round]],
    confidence: float,
) -> Throughput:
    measured = [_rate(each) for session in rounds.values() for each in session]
    low, middle, high = quartiles(measured)
    pairs = [pair for found in _by_session(rounds, reference).values() for pair in found]
    ratio, ratio_low, ratio_high = signed_rank_interval(pairs, confidence) or (None, None, None)
    used = [sample.record for sample in own.rounds if _session(sample) in rounds and sample.record.rounds]
    warmed = any(was_warmed(record) for record in used)
    return Throughput(middle, low, high, len(measured), ratio, ratio_low, ratio_high, warmed, len(rounds))


def _by_session(
    rounds: Mapping[Session, Sequence[Round]], reference: Mapping[Session, Sequence[Round]]
) -> dict[Session, tuple[tuple[float, float], ...]]:
    return {
        session: tuple((_rate(each), _rate(_nearest(each, reference[session]))) for each in found)
        for session, found in rounds.items()
        if session in reference
    }


def _of_blocks(
    measured: Sequence[tuple[int, float]], reference: Sequence[tuple[int, float]]
) -> list[tuple[float, float]]:
    beside = dict(reference)
    return [(rate, beside[block]) for block, rate in measured if block in beside]


def _rounds(sides: Sides | None) -> dict[Session, list[Round]]:
    """The rounds of each session; those of a throttled one only where all were throttled.

    A process that died later leaves the rounds that it had completed.
    """
    found: defaultdict[bool, defaultdict[Session, list[Round]]] = defaultdict(lambda: defaultdict(list))
    for sample in sides.rounds if sides else ():
        usable = [
            each for each in sample.record.rounds if each.tokens > 0 and _usable(each.seconds) and _usable(each.t)
        ]
        if usable:
            found[_has(sample.record, SLOWED)][_session(sample)] += usable
    return dict(found[False] or found[True])


def _nearest(own: Round, others: Sequence[Round]) -> Round:
    """Of the reference's rounds the one beside ``own``: one process computes at a time, so that the gap tells it."""

    def gap(other: Round) -> float:
        return max(own.t - own.seconds, other.t - other.seconds) - min(own.t, other.t)

    return min(others, key=lambda other: (gap(other), abs(other.index - own.index)))


def _session(sample: Sample) -> Session:
    return sample.run_id, sample.block


def _has(record: TrialRecord, name: str) -> bool:
    return any(key == name for key, _ in record.extra)


def _rate(each: Round) -> float:
    return each.tokens / each.seconds


def _usable(value: float) -> bool:
    return isfinite(value) and value > 0


def _rates(sides: Sides | None, run: str | None = None) -> list[tuple[int, float]]:
    """Block and tokens a second of each clean threaded trial that measured any, with nothing else beside it.

    Those of all runs, or of one.
    """
    measured = [
        (sample.block, sample.record.tokens_per_second)
        for sample in (sides.threads if sides else ())
        if sample.record.outcome is Outcome.CLEAN and sample.record.at_once == 1 and run in (None, sample.run_id)
    ]
    return [(block, rate) for block, rate in measured if rate is not None and _usable(rate)]
