"""Whether both ends are what they are said to be: how many trials that takes, and when it is settled. Pure."""

from __future__ import annotations

from enum import Enum

from bisect_env.search.records import Tally
from bisect_env.verdicts.statistics import clean_trials_needed, fisher_greater

FIRST = 4
"""Trials of each end before the first look; each further look doubles them. 4 of 4 against 0 of 4 is 1 in 70."""
RARE = 0.1
"""The bad end is given up when it is shown to fail less often than this."""
LOOKS = 3
"""At the ends of a line, each of which may spend an equal part of ``1 - confidence``; 4 of 4 against 0 of 4 will do."""
LONGEST = 2
"""So many times the trials of that are spent on a bad end that does fail, but hardly more than the good one."""


class Ends(Enum):
    """What both ends' trials say."""

    OPEN = "open"
    DIFFER = "differ"
    NOT_REPRODUCED = "not reproduced"
    GOOD_FAILS = "good fails"


def judge(good: Tally, bad: Tally, confidence: float) -> Ends:
    """Whether the search may begin, needs more trials of both ends, or has nothing to search for.

    One-sided exact test of the two ends at each look. It is a gate and no finding: what is found is confirmed on fresh
    trials, so that several looks may each spend ``1 - confidence``.

    Args:
        good: counted trials of the good end.
        bad: of the bad end; both are given equally many.
        confidence: of the bisection.
    """
    alpha = 1 - confidence
    if good.counted and fisher_greater(bad.failures, bad.counted, good.failures, good.counted) <= alpha:
        return Ends.DIFFER
    enough = clean_trials_needed(RARE, confidence)
    if not bad.failures and bad.counted >= enough:
        return Ends.NOT_REPRODUCED
    alike = good.failures >= 2 and good.failures * bad.counted >= bad.failures * good.counted
    if alike and good.counted >= 2 * FIRST:
        return Ends.GOOD_FAILS
    if min(good.counted, bad.counted) >= LONGEST * enough:
        # It fails, rarely, and the other end never did: worth a search, which will say what it costs.
        return Ends.GOOD_FAILS if good.failures else Ends.DIFFER
    return Ends.OPEN


def line_differs(low: Tally, high: Tally, confidence: float, rate: float) -> bool | None:
    """Whether the two ends of a line differ by as much as the bisection's own ends did; None: more trials are needed.

    Unlike those, ends that hardly differ are not worth a search: how often the failure shows is known by now.

    Args:
        low: trials at the end that should not fail.
        high: at the one that should.
        confidence: of the bisection.
        rate: of failures at the bad end of the bisection. A line whose bad end fails less than half as often is none.
    """
    alpha = (1 - confidence) / LOOKS
    if low.counted and fisher_greater(high.failures, high.counted, low.failures, low.counted) <= alpha:
        return True
    enough = clean_trials_needed(rate / 2, confidence)
    tried = min(low.counted, high.counted)
    alike = low.failures >= 2 and low.failures * high.counted >= high.failures * low.counted
    if (not high.failures and high.counted >= enough) or (alike and tried >= 2 * FIRST):
        return False
    return False if tried >= LONGEST * enough else None


def next_size(trials: int) -> int:
    """How many trials of each end come next, after so many."""
    return FIRST if trials == 0 else trials
