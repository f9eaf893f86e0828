"""What a gate that failed offers: the bisection's command line for the same two snapshots. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Sequence
from math import sqrt
from statistics import median

from bisect_env.gate.records import Question
from bisect_env.store.trials import StoredTrial
from bisect_env.trials.records import Outcome, Side, TrialRecord

Sides = tuple[Sequence[StoredTrial], Sequence[StoredTrial]]


def command(failed: Collection[Question], sources: tuple[str, str], words: Sequence[str], samples: Sides) -> str:
    """The command line for a shell; empty where a bisection has no question for what failed.

    A candidate that races or computes something else fails its trials. One that is slower, or larger, is asked for by
    a threshold half way between the two sides' threaded trials.

    Args:
        failed: the questions that failed.
        sources: of baseline and candidate, as a bisection can read them.
        words: the options that say how trials run and where packages come from, the reproducer's command last.
        samples: of baseline and candidate.
    """
    asked = question(failed, samples)
    if asked is None:
        return ""
    options = ["--question", asked] if asked else []
    return shlex.join(["bisect-env", "bisect", "--good", sources[0], "--bad", sources[1], *options, *words])


def question(failed: Collection[Question], samples: Sides) -> str | None:
    """What ``--question`` is to be: empty for the default one, None where there is none."""
    if {Question.RACES, Question.NUMBERS} & set(failed):
        return ""
    if {Question.THROUGHPUT, Question.ATTENTION} & set(failed):
        speeds = [_median(side, lambda record: record.tokens_per_second) for side in samples]
        if speeds[0] is not None and speeds[1] is not None and speeds[1] < speeds[0]:
            return f"throughput<{sqrt(speeds[0] * speeds[1]):.0f}"
    if Question.MEMORY in failed:
        peaks = [_median(side, lambda record: record.peak_bytes) for side in samples]
        if peaks[0] is not None and peaks[1] is not None and peaks[1] > peaks[0]:
            return f"memory>{sqrt(peaks[0] * peaks[1]):.0f}"
    # An import that fails is a failure of its trials as well.
    return "" if Question.ENVIRONMENT in failed and any(_imports_fail(sample.record) for sample in samples[1]) else None


def _imports_fail(record: TrialRecord) -> bool:
    return record.outcome is Outcome.IMPORT_FAILED


def _median(side: Sequence[StoredTrial], figure: Callable[[TrialRecord], float | None]) -> float | None:
    clean = [s.record for s in side if s.record.side is Side.THREADS and s.record.outcome is Outcome.CLEAN]
    found = [value for record in clean if (value := figure(record)) is not None]
    return median(found) if found else None
