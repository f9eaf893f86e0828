"""Tokens a second of a cell, and its ratio to the reference cell."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from bisect_env.trials.records import Outcome
from bisect_env.verdicts.records import Throughput
from bisect_env.verdicts.samples import Sample
from bisect_env.verdicts.statistics import quartiles, ratio_interval


def throughput(
    threads: Sequence[Sample],
    reference: Sequence[Sample] = (),
    warmed: Sequence[Sample] = (),
    confidence: float = 0.95,
) -> Throughput | None:
    """Warm throughput over the threaded trials that came through; None when there is none anywhere.

    Args:
        threads: the cell's threaded trials.
        reference: the reference cell's. The ratio pairs the trials of equal blocks, which ran next to each other.
        warmed: the same cell's trials under its warmed-up condition; they serve, marked and without a ratio, where
            every trial of the cell itself failed.
        confidence: of the ratio's interval.
    """
    own = _rates(threads)
    if not own:
        own, reference = _rates(warmed), ()
        if not own:
            return None
        low, middle, high = quartiles([rate for _, rate in own])
        return Throughput(middle, low, high, len(own), warmed=True)
    low, middle, high = quartiles([rate for _, rate in own])
    beside = dict(_rates(reference))
    found = ratio_interval([(rate, beside[block]) for block, rate in own if block in beside], confidence)
    return Throughput(middle, low, high, len(own), *(found or (None, None, None)))


def _rates(samples: Sequence[Sample]) -> list[tuple[int, float]]:
    """Block and tokens a second of each clean trial that measured any."""
    rates = [
        (sample.block, sample.record.tokens_per_second) for sample in samples if sample.record.outcome is Outcome.CLEAN
    ]
    return [(block, rate) for block, rate in rates if rate is not None and isfinite(rate) and rate > 0]
