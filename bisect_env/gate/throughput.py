"""Is the candidate as fast as the baseline, but for a small part? A non-inferiority test on pairs. Pure.

A pair is one round of each that ran beside each other; its log ratio takes out what both shared. The pairs of one
session (one start of both) share what these two processes have of their own, such as where their memory lies. So a
session is one unit: the Hodges-Lehmann centre of its log ratios. Wilcoxon's signed-rank test of the units, one-sided,
against the log of the least ratio:

- PASS: the lower bound of the ratio is at least ``min_throughput``;
- FAIL: the upper bound is below it, at the stricter level that a fail has (:data:`races.STATISTICAL`);
- else INCONCLUSIVE.

**How many.** The first sessions tell the noise, and that tells how many to take in all. They count for the answer as
well, which with the usual estimate of the noise would raise the error. So the noise is read from the *absolute*
distances to the tested ratio alone: if that is the true one, signs are independent of distances, whatever these are,
and the signed-rank test, which is one of the signs given the distances, holds its level exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, exp, floor, inf, log, pi, sqrt

import numpy as np

from bisect_env.gate.races import STATISTICAL, WANTED
from bisect_env.gate.records import Decision, Rules
from bisect_env.verdicts.statistics import MOST_RANKED, signed_rank_interval

FIRST_SESSIONS, FIRST_PAIRS = 8, 20
"""The first sessions: at least so many, with at least so many pairs. 8 is the fewest with which the test is not coarse:
at 5 % it has 3.9 %."""
MOST_PAIRS = 400
"""However noisy the machine is, no more are taken."""
POWER = 0.995
"""The chance with which a candidate as fast as the baseline shall pass; what the noise is mistaken in takes some of it,
so that about 0.99 is left."""
EFFICIENCY = 3 / pi
"""Of the signed-rank test beside Student's under normal noise."""
LOW, HIGH = 0.10, 0.85
"""Quantiles of the absolute distances that tell the noise: stalled rounds do not."""
BETWEEN = 1.4395 - 0.1257
"""The difference of these quantiles over the noise, where distances are about 0 (half-normal). Elsewhere it is more, up
to 1.8 times, so that the noise is never taken for less than it is, but by chance."""

Session = Sequence[tuple[float, float]]
"""Pairs of one start of both: tokens a second of the candidate's round, and of the baseline's beside it."""


@dataclass(frozen=True)
class Judged:
    """What sessions say of the question."""

    decision: Decision
    units: int
    pairs: int
    ratio: float | None = None
    """Of the candidate to the baseline; None without a usable pair."""
    low: float | None = None
    """One-sided bound at the confidence, which decides a pass; None with a single session."""
    high: float | None = None
    """One-sided bound at the level of a fail."""


def units(sessions: Sequence[Session]) -> list[float]:
    """Log ratio of candidate to baseline of each session that has any pair whose values are positive and finite."""
    logs = [[log(own) - log(other) for own, other in each if 0 < own < inf and 0 < other < inf] for each in sessions]
    return [_bounds(each, 0.9)[0] for each in logs if each]


def sessions_wanted(rules: Rules, sessions: Sequence[Session], rounds: int, most: int = MOST_PAIRS) -> int:
    """Sessions to take in all, by those that are in. To be asked again as they come in, until there are as many.

    With ``(z(confidence) + z(POWER))**2 (s / log(min_throughput))**2 / EFFICIENCY`` sessions a candidate as fast as the
    baseline passes with POWER (Chow, Shao & Wang, Sample Size Calculations in Clinical Research, 3.2); s, the noise of
    a session, is read as told above. It is read from the first sessions, then from as many as that says, and so on:
    how often this is asked in between changes nothing.

    Args:
        rules: ``pairs`` fixes the number beforehand.
        sessions: those that are in, in their order; may be none. One without a usable pair is made up for, up to
            FIRST_SESSIONS times.
        rounds: pairs that a session has.
        most: pairs at most, by the budget; a session is never cut.
    """
    at_most = max(1, most // rounds)
    if rules.pairs is not None:
        return min(ceil(rules.pairs / rounds), at_most)
    found, tested = units(sessions), log(rules.min_throughput)
    useless = min(len(sessions) - len(found), FIRST_SESSIONS)
    wanted = max(FIRST_SESSIONS, ceil(FIRST_PAIRS / rounds))
    while wanted < at_most and len(found) >= wanted:
        low, high = np.quantile([abs(value - tested) for value in found[:wanted]], (LOW, HIGH))
        needed = ceil(_units_for(rules.confidence, POWER, float(high - low) / BETWEEN / tested))
        if needed <= wanted:
            break
        wanted = needed
    return min(wanted + useless, at_most)


def judge(rules: Rules, sessions: Sequence[Session]) -> Judged:
    """What the sessions say. To be asked once, when all that are wanted are in: a look earlier would be one more."""
    found, pairs = units(sessions), sum(map(len, sessions))
    if not found:
        return Judged(Decision.INCONCLUSIVE, 0, pairs)
    middle, low, _ = _bounds(found, rules.confidence)
    _, _, high = _bounds(found, 1 - (1 - rules.confidence) / STATISTICAL)
    if low is None or high is None:
        return Judged(Decision.INCONCLUSIVE, len(found), pairs, exp(middle))
    least = log(rules.min_throughput)
    decision = Decision.PASS if low >= least else Decision.FAIL if high < least else Decision.INCONCLUSIVE
    return Judged(decision, len(found), pairs, exp(middle), exp(low), exp(high))


def pairs_to_tell(rules: Rules, sessions: Sequence[Session]) -> tuple[int, Decision] | None:
    """Pairs of a new gate that decide with a chance of WANTED, if ratio and noise are those seen here.

    Returns:
        Their number and which answer it would be; None when the ratio is too near the limit, or with one session.
    """
    found, least = units(sessions), log(rules.min_throughput)
    if len(found) < 2:
        return None
    middle, low, _ = _bounds(found, rules.confidence)
    _, _, high = _bounds(found, strict := 1 - (1 - rules.confidence) / STATISTICAL)
    if low is None or high is None or middle == least:
        return None
    # By how much the bound that had to clear the limit lies off the centre: that shrinks with the root of the number.
    passes = middle > least
    width, level = (middle - low, rules.confidence) if passes else (high - middle, strict)
    number = len(found) * _units_for(level, WANTED, width / (middle - least)) / _units_for(level, 0.5, 1.0)
    pairs = ceil(number * sum(map(len, sessions)) / len(found))
    return (pairs, Decision.PASS if passes else Decision.FAIL) if pairs <= 10 * MOST_PAIRS else None


def _bounds(values: Sequence[float], confidence: float) -> tuple[float, float | None, float | None]:
    """Centre of symmetric values, and its one-sided lower and upper bound, each at the confidence.

    As :func:`~bisect_env.verdicts.statistics.signed_rank_interval`, which is exact; but beyond MOST_RANKED values,
    where that one turns to Student's interval, by the normal approximation of the signed-rank statistic (Hollander,
    Wolfe & Chicken, Nonparametric Statistical Methods, 3.1): a machine that stalls now and then is not normal at any
    number.
    """
    if len(values) <= MOST_RANKED:
        found = signed_rank_interval([(exp(value), 1.0) for value in values], 2 * confidence - 1)
        assert found is not None
        middle, low, high = found
        return log(middle), None if low is None else log(low), None if high is None else log(high)
    from scipy.special import ndtri

    array, n = np.array(values), len(values)
    means = np.sort(((array[:, None] + array) / 2)[np.tril_indices(n)])
    half = float(ndtri(confidence)) * sqrt(n * (n + 1) * (2 * n + 1) / 24)
    cut = max(1, floor(n * (n + 1) / 4 - half))
    return float(np.median(means)), float(means[cut - 1]), float(means[-cut])


def _units_for(confidence: float, power: float, relative: float) -> float:
    """Units that tell, with this power, a distance beside which the noise of a unit is ``relative`` times as large."""
    from scipy.special import ndtri

    return float((ndtri(confidence) + ndtri(power)) ** 2 * relative**2 / EFFICIENCY)
