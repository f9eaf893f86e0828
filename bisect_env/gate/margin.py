"""Does the candidate race more than the baseline, by more than a margin? Two proportions, exactly. Pure.

The samples are ordered by the score statistic for a difference d = candidate's rate - baseline's rate against a margin
(Farrington & Manning, Statistics in Medicine 9 (1990) 1447-1454): the rates under "d equals the margin" are those of
highest likelihood. What is compared with it is no normal quantile, which is off by half for rates near 0, but the
value whose error, enumerated over all samples and the highest over the baseline's rate, is at most what is allowed
(Chan, Statistics in Medicine 17 (1998) 1403-1413). The regions are made monotone (a candidate with fewer bad trials,
or a baseline with more, is never judged worse), so that the error is highest where d equals the margin.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from bisect_env.gate.races import MOST_TRIALS, STATISTICAL, WANTED, Judged
from bisect_env.gate.records import Chance, Decision, Rules

_GRID = 400
"""Baseline's rates over which the highest error is looked for, closer together near 0 and 1."""
_ALLOWANCE = 2e-4
"""Kept of each error for what lies between two of them: a test looks there, twenty times as closely."""
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class MarginDesign:
    """Fixed before the first trial. Trials of the candidate, then of the baseline."""

    candidate: int
    baseline: int
    margin: float
    confidence: float
    passes: tuple[int, ...]
    """At place j, the baseline's bad trials: most bad trials of the candidate with which it passes; -1: none do."""
    fails: tuple[int, ...]
    """The same: fewest with which it fails; one more than its trials: none do."""


@lru_cache(maxsize=64)
def margin_design(candidate: int, baseline: int, margin: float, confidence: float) -> MarginDesign:
    """The regions of a design with so many trials of each.

    A pass, and a fail, is wrong with at most ``1 - confidence``, and a fail with its part of that (STATISTICAL).
    """
    score = _score(candidate, baseline, margin)
    rates = _rates(margin)
    alpha = 1 - confidence

    def passing(limit: float) -> Ints:
        most = (score <= -limit).sum(axis=0) - 1
        return np.minimum.accumulate(most[::-1])[::-1]

    def failing(limit: float) -> Ints:
        fewest = candidate + 1 - (score >= limit).sum(axis=0)
        return np.maximum.accumulate(fewest)

    low = _chances(candidate, baseline, rates + margin, rates)
    passes = _largest(passing, lambda region: float(low(region).max()), alpha - _ALLOWANCE)
    fails = _largest(failing, lambda region: float(1 - low(region - 1).min()), alpha / STATISTICAL - _ALLOWANCE)
    return MarginDesign(candidate, baseline, margin, confidence, tuple(map(int, passes)), tuple(map(int, fails)))


def chance(design: MarginDesign, candidate: float, baseline: float) -> Chance:
    """How likely a candidate of this true rate passes, and fails, beside a baseline of that one: exact."""
    at_most = _chances(design.candidate, design.baseline, np.array([candidate]), np.array([baseline]))
    passes, fails = at_most(np.array(design.passes)), 1 - at_most(np.array(design.fails) - 1)
    return Chance(candidate, float(passes[0]), max(0.0, float(fails[0])))


def errors(design: MarginDesign, rates: Floats) -> tuple[float, float]:
    """The highest chance of a wrong pass and of a wrong fail, over these rates of the baseline: exact.

    Where the candidate's rate exceeds the baseline's by just the margin; elsewhere either is rarer.
    """
    at_most = _chances(design.candidate, design.baseline, rates + design.margin, rates)
    passes, fails = np.array(design.passes), np.array(design.fails)
    return float(at_most(passes).max()), float(1 - at_most(fails - 1).min())


def judge(design: MarginDesign, candidate: Sequence[bool], baseline: Sequence[bool]) -> Judged:
    """What trials say, both in the order of their blocks; those beyond the design's numbers are not read.

    PASS only when all are in; FAIL then too, or as soon as it is certain: even if all of the baseline's missing trials
    were bad and all of the candidate's were clean.
    """
    own, other = candidate[: design.candidate], baseline[: design.baseline]
    bad, beside, missing = sum(own), sum(other), design.baseline - len(other)
    if bad >= design.fails[beside + missing]:
        return Judged(Decision.FAIL, bad, len(own))
    if len(own) < design.candidate or missing or bad > design.passes[beside]:
        return Judged(Decision.INCONCLUSIVE, bad, len(own))
    return Judged(Decision.PASS, bad, len(own))


@lru_cache(maxsize=64)
def margin_trials(margin: float, confidence: float, rate: float, wanted: float = WANTED) -> int | None:
    """Trials a side with which a candidate that races as the baseline does, at ``rate``, passes with this chance.

    None when MOST_TRIALS do not do. Steps of a twentieth, and then back as far as every number does: the chance goes up
    in saw-teeth, and somewhat fewer may do as well.
    """

    def does(trials: int) -> bool:
        return chance(margin_design(trials, trials, margin, confidence), rate, rate).passes >= wanted

    n = max(5, int(1 / margin))
    while n <= MOST_TRIALS and _normal_chance(n, margin, confidence, rate) < wanted - 0.25:
        n += max(1, n // 50)
    while n <= MOST_TRIALS:
        if does(n):
            while n > 1 and does(n - 1):
                n -= 1
            return n
        n += max(1, n // 20)
    return None


def planned(rules: Rules, baseline_rate: float) -> int:
    """Trials a side: as asked for, else what passes an unchanged candidate at this rate with a chance of WANTED.

    Where no practical number does, the fewest that can pass.

    Raises:
        ValueError: the rules ask for no margin.
    """
    if rules.no_worse is None:
        raise ValueError("no margin is asked for")
    for rate in (baseline_rate, 0.0):
        found = rules.trials or margin_trials(rules.no_worse, rules.confidence, rate)
        if found is not None:
            return found
    return MOST_TRIALS


def _normal_chance(n: int, margin: float, confidence: float, rate: float) -> float:
    """The chance to pass by the normal approximation: where to begin looking."""
    from scipy.special import ndtr, ndtri

    variance = max(2 * rate * (1 - rate), margin * (1 - margin) / 2) / n
    return float(ndtr(margin / variance**0.5 - ndtri(confidence)))


def _rates(margin: float) -> Floats:
    """The baseline's rates, from 0 to ``1 - margin``."""
    turns = np.linspace(0.0, np.pi / 2, _GRID)
    return np.sin(turns) ** 2 * (1 - margin)


def _chances(n1: int, n0: int, first: Floats, second: Floats) -> Callable[[Ints], Floats]:
    """For pairs of rates: of a threshold for each of the second's counts, how likely the first's is at most that."""
    from scipy.special import bdtr

    counts = np.arange(n0 + 1)
    below = bdtr(counts, n0, second[:, None])
    weights = np.diff(below, axis=1, prepend=0.0)
    at_most = np.hstack([np.zeros((len(first), 1)), bdtr(np.arange(n1 + 1), n1, first[:, None])])

    def of(thresholds: Ints) -> Floats:
        found: Floats = (weights * at_most[:, thresholds + 1]).sum(axis=1)
        return found

    return of


def _largest(region: Callable[[float], Ints], error: Callable[[Ints], float], allowed: float) -> Ints:
    """The largest region, by the least value the score is compared with, whose error is allowed."""
    low, high = 0.0, 40.0
    for _ in range(32):
        middle = (low + high) / 2
        low, high = (low, middle) if error(region(middle)) <= allowed else (middle, high)
    return region(high)


def _score(n1: int, n0: int, margin: float) -> Floats:
    """Farrington and Manning's statistic of every sample: rows the candidate's bad trials, columns the baseline's."""
    p1 = (np.arange(n1 + 1) / n1)[:, None]
    p0 = (np.arange(n0 + 1) / n0)[None, :]
    theta = n0 / n1
    a = 1 + theta
    b = -(1 + theta + p1 + theta * p0 + margin * (theta + 2))
    c = margin**2 + margin * (2 * p1 + theta + 1) + p1 + theta * p0
    d = -p1 * margin * (1 + margin)
    v = b**3 / (3 * a) ** 3 - b * c / (6 * a**2) + d / (2 * a)
    u = np.where(v >= 0, 1.0, -1.0) * np.sqrt(np.maximum(b**2 / (3 * a) ** 2 - c / (3 * a), 0.0))
    cosine = np.divide(v, u**3, out=np.zeros_like(v), where=np.abs(u) > 1e-12)
    w = (np.pi + np.arccos(np.clip(cosine, -1.0, 1.0))) / 3
    restricted = np.clip(2 * u * np.cos(w) - b / (3 * a), margin, 1.0)
    other = restricted - margin
    variance = restricted * (1 - restricted) / n1 + other * (1 - other) / n0
    excess = p1 - p0 - margin
    with np.errstate(divide="ignore", invalid="ignore"):
        score = excess / np.sqrt(variance)
    return np.where(variance > 1e-15, score, np.sign(excess) * 1e3)
