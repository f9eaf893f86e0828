"""Does the candidate race? A number of process starts fixed beforehand, and exact binomial boundaries. Pure.

The unit is one threaded trial: what happens inside one process is never independent. With N trials and a limit L:

- PASS after all N, with at most ``allowed`` bad ones: the most with ``P(Bin(N, L) <= allowed) <= 1 - confidence``.
- FAIL as soon as the bad trials reach a boundary that more than ``allowed`` bad ones and evidence of their own make up:
  were the rate L, they would reach it with at most the part of ``1 - confidence`` that a fail of this question may
  have. A candidate that cannot pass any more is not thereby shown to be bad: that is INCONCLUSIVE.

Both are computed exactly, the second by following the number of bad trials from trial to trial. Reaching a boundary is
an event that more bad trials only make more likely, so what holds at the limit holds for every rate beyond it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import exp, log

import numpy as np

from bisect_env.gate.records import Chance, Decision, Rules
from bisect_env.verdicts.statistics import clean_trials_needed, clopper_pearson, upper_bound

STATISTICAL = 2
"""Questions that noise alone can fail: races and throughput. Each may fail a good candidate with an equal part of
``1 - confidence``, so that a gate does so with no more than the whole (Bonferroni)."""
WANTED = 0.8
"""The chance of an answer for which a number of trials is proposed."""
MOST_TRIALS = 2000
"""No more are proposed."""


@dataclass(frozen=True)
class RaceDesign:
    """Fixed before the first trial."""

    trials: int
    limit: float
    confidence: float
    allowed: int
    """Bad trials of all with which it passes; -1: so few trials cannot pass."""
    fails: tuple[int, ...]
    """At place n - 1: bad trials among the first n that make it fail; n + 1 where none do."""


@dataclass(frozen=True)
class Judged:
    """What trials say of the question."""

    decision: Decision
    bad: int
    trials: int
    """Of which so many count: up to the one that decided, at most the design's."""


def race_design(rules: Rules) -> RaceDesign:
    """The design that the rules make: the number of trials asked for, or the fewest that can pass."""
    least = clean_trials_needed(rules.max_race_rate, rules.confidence)
    return design_of(rules.trials or least, rules.max_race_rate, rules.confidence)


@lru_cache(maxsize=256)
def design_of(trials: int, limit: float, confidence: float) -> RaceDesign:
    """The design of so many trials.

    The boundary is "an exact one-sided p-value of at most a, or the last trial's boundary", where ``a`` is the largest
    with which it is reached often enough by chance: a candidate that always fails is told in a few trials, and hardly
    anything of the last trial's power is given for that (curtailment and a constant nominal level, as Pocock,
    Biometrika 64 (1977) 191-199, for each trial instead of for groups).
    """
    allowed = -1
    while allowed + 1 < trials and _at_most(allowed + 1, trials, limit) <= 1 - confidence:
        allowed += 1
    alpha = (1 - confidence) / STATISTICAL
    last = next((k for k in range(allowed + 1, trials + 1) if _at_least(k, trials, limit) <= alpha), trials + 1)
    low, high = log(alpha) - 30, log(alpha)
    for _ in range(40):
        middle = (low + high) / 2
        bounds = _bounds(trials, limit, exp(middle), allowed, last)
        low, high = (middle, high) if _follow(bounds, limit)[0] <= alpha else (low, middle)
    return RaceDesign(trials, limit, confidence, allowed, _bounds(trials, limit, exp(low), allowed, last))


def chance(design: RaceDesign, rate: float) -> Chance:
    """How likely a candidate of this true rate passes, and fails: exact."""
    fails, left = _follow(design.fails, rate)
    return Chance(rate, float(left[: design.allowed + 1].sum()), fails)


def judge(design: RaceDesign, bad: Sequence[bool]) -> Judged:
    """What trials say, in the order of their blocks; those beyond the design's number are not read.

    PASS only when all are in, FAIL as soon as a boundary is reached, else INCONCLUSIVE, finished or not.
    """
    count = 0
    for n, (was_bad, bound) in enumerate(zip(bad, design.fails, strict=False), 1):
        count += was_bad
        if count >= bound:
            return Judged(Decision.FAIL, count, n)
    done = min(len(bad), design.trials)
    passes = done == design.trials and count <= design.allowed
    return Judged(Decision.PASS if passes else Decision.INCONCLUSIVE, count, done)


def trials_to_tell(bad: int, trials: int, limit: float, confidence: float) -> tuple[int, Decision] | None:
    """Trials of a new gate that decide about a candidate of the rate seen here with a chance of at least WANTED.

    Returns:
        Their number, and which answer it would be; None when the rate is so near the limit that MOST_TRIALS do not do.
    """
    rate = bad / trials
    if rate < limit:
        # The chance goes up in saw-teeth, one for each further bad trial that is allowed, and each is best where it
        # begins.
        passing = (n for k, n in enumerate(_teeth(limit, confidence)) if _at_most(k, n, rate) >= WANTED)
        n = next(passing, 0)
        return (n, Decision.PASS) if n else None
    alpha, n = (1 - confidence) / STATISTICAL, trials
    while n <= MOST_TRIALS:
        last = next((k for k in range(int(n * limit), n + 1) if _at_least(k, n, limit) <= alpha), n + 1)
        if _at_least(last, n, rate) >= WANTED:
            return n, Decision.FAIL
        n += max(1, n // 20)
    return None


def bound(bad: int, trials: int, confidence: float) -> tuple[float, float]:
    """One-sided lower and upper bound of the rate, each at the confidence."""
    return clopper_pearson(bad, trials, 2 * confidence - 1).low, upper_bound(bad, trials, confidence)


@lru_cache(maxsize=32)
def _teeth(limit: float, confidence: float) -> tuple[int, ...]:
    """The fewest trials that allow 0, 1, 2, ... bad ones."""
    found: list[int] = []
    n, k = 1, 0
    while True:
        while n <= MOST_TRIALS and _at_most(k, n, limit) > 1 - confidence:
            n += 1
        if n > MOST_TRIALS:
            return tuple(found)
        found.append(n)
        k += 1


def _bounds(trials: int, limit: float, nominal: float, allowed: int, last: int) -> tuple[int, ...]:
    bounds, k = [], max(allowed + 1, 1)
    for n in range(1, trials + 1):
        while k < last and k <= n and _at_least(k, n, limit) > nominal:
            k += 1
        bounds.append(min(k, n + 1))
    return tuple(bounds)


def _follow(bounds: Sequence[int], rate: float) -> tuple[float, np.ndarray]:
    """How likely a boundary is reached; and how likely each number of bad trials is at the end without that."""
    crossed, going = 0.0, np.ones(1)
    for limit in bounds:
        going = np.append(going, 0.0) * (1 - rate) + np.append(0.0, going) * rate
        crossed += float(going[limit:].sum())
        going = going[:limit]
    return crossed, going


def _at_most(k: int, n: int, rate: float) -> float:
    """P(Bin(n, rate) <= k)."""
    from scipy.special import bdtr

    return float(bdtr(k, n, rate))


def _at_least(k: int, n: int, rate: float) -> float:
    """P(Bin(n, rate) >= k)."""
    from scipy.special import bdtrc

    return float(bdtrc(k - 1, n, rate)) if k > 0 else 1.0
