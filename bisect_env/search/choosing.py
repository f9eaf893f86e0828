"""Which mix of factors to test next, and how often: the most information about the culprit per second.

Information is the mutual information between the culprit and the number of failures in a batch (Lindley 1956), both
rates integrated out. It is exact for each candidate. Candidates are the environments that are built already, and mixes
found by climbing from several starts, one factor flipped at a time; with few factors, all mixes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from bisect_env.search.hypotheses import Bools, Hypotheses
from bisect_env.search.rates import BAD, GOOD, Floats

SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
FEW = 7
"""Up to this many factors all their mixes are looked at."""
STARTS = 6
STEPS = 40
NEGLIGIBLE = 1e-7
"""Hypotheses with less probability are left out of the sums, and less information than this (bits) is none."""


@dataclass(frozen=True)
class Choice:
    """A point (factors,) and how many trials of it."""

    point: Bools
    size: int


class Prospects:
    """What batches would tell, given all counts so far.

    Sums over all singles and pairs that are inside a point x are the quadratic form x A x, A with the singles on its
    diagonal and the pairs above it: one product of matrices for all candidates.
    """

    def __init__(self, hypotheses: Hypotheses) -> None:
        weights = hypotheses.weights()
        self._hypotheses = hypotheses
        self._kept = np.flatnonzero(weights > NEGLIGIBLE)
        self._weights = weights[self._kept] / weights[self._kept].sum()
        self._predicted: dict[int, tuple[Floats, Floats]] = {}
        self._forms: dict[int, tuple[Floats, Floats]] = {}

    def _predictive(self, size: int) -> tuple[Floats, Floats]:
        """Probabilities of 0..size failures on the bad and on the good side: each (hypotheses kept, size + 1)."""
        if size not in self._predicted:
            bad, good = (
                tuple(counts[self._kept] for counts in side)
                for side in (self._hypotheses.at_bad(), self._hypotheses.at_good())
            )
            self._predicted[size] = (BAD.predictive(bad[0], bad[1], size), GOOD.predictive(good[0], good[1], size))
        return self._predicted[size]

    def _form(self, size: int) -> tuple[Floats, Floats]:
        """Probabilities of 0..size failures, and last the bits of noise in them: the form and what is constant in it.

        Shapes (factors, factors * (size + 2)) and (size + 2,).
        """
        if size not in self._forms:
            bad, good = (
                np.column_stack([side, _bits(side)]) * self._weights[:, None] for side in self._predictive(size)
            )
            self._forms[size] = (self._hypotheses.form(bad - good, self._kept), good.sum(axis=0))
        return self._forms[size]

    def information(self, points: Bools, size: int) -> Floats:
        """Bits that ``size`` trials at each point (C, factors) are expected to tell about the culprit: (C,)."""
        form, constant = self._form(size)
        inside = points.astype(np.float64)
        halves = (inside @ form).reshape(len(points), points.shape[1], size + 2)
        sums = np.einsum("cf,cfs->cs", inside, halves) + constant
        return np.asarray(np.maximum(_bits(np.maximum(sums[:, :-1], 0.0)) - sums[:, -1], 0.0), dtype=np.float64)

    def draw(self, point: Bools, size: int, random: np.random.Generator) -> int:
        """Failures that ``size`` trials at a point might show: one draw from what is expected."""
        which = int(random.choice(len(self._weights), p=self._weights))
        bad = self._hypotheses.positive(point)[self._kept[which]]
        shares = self._predictive(size)[0 if bad else 1][which]
        return int(random.choice(size + 1, p=shares / shares.sum()))


def _bits(probabilities: Floats) -> Floats:
    return np.asarray(-xlogy(probabilities, probabilities).sum(axis=-1) / np.log(2), dtype=np.float64)


def first_highest(values: Floats) -> NDArray[np.intp]:
    """Index of the first of the highest along the last axis, where a relative 1e-9 counts as a tie.

    Ties are the rule, since factors nothing is known of are alike: rounding, which differs between machines, must not
    decide them.
    """
    highest = values >= values.max(axis=-1, keepdims=True) * (1 - 1e-9)
    return np.asarray(highest.argmax(axis=-1), dtype=np.intp)


def every_point(factors: int) -> Bools:
    """All mixes of so many factors: (2**factors, factors)."""
    return np.asarray((np.arange(1 << factors)[:, None] >> np.arange(factors)) % 2, dtype=bool)


def climb(value: Callable[[Bools], Floats], starts: Bools) -> Bools:
    """The points reached from each start (C, factors) by the best flip of one factor, again and again."""
    points, heights = starts.copy(), value(starts)
    factors = starts.shape[1]
    flips = np.eye(factors, dtype=bool)
    rising = np.arange(len(points))
    for _ in range(STEPS):
        neighbours = points[rising, None, :] ^ flips
        reached = value(neighbours.reshape(-1, factors)).reshape(len(rising), factors)
        best = first_highest(reached)
        better = reached.max(axis=1) > heights[rising] + NEGLIGIBLE
        heights[rising[better]] = reached.max(axis=1)[better]
        points[rising[better]] = neighbours[np.arange(len(rising)), best][better]
        rising = rising[better]
        if not len(rising):
            break
    return points


def candidates(value: Callable[[Bools], Floats], built: Bools, random: np.random.Generator) -> Bools:
    """Points worth weighing against each other: those that are built, and the best others that can be found."""
    factors = built.shape[1]
    if factors <= FEW:
        found = every_point(factors)
    else:
        shares = np.linspace(0.35, 0.85, STARTS)[:, None]
        found = climb(value, random.random((STARTS, factors)) < shares)
    return np.unique(np.concatenate([built, found]), axis=0)


def choose(
    prospects: Prospects,
    points: Bools,
    chances: Floats,
    seconds: Callable[[int], Floats],
    sizes: Sequence[int],
) -> Choice | None:
    """The point and size with the most expected information per second; None where nothing tells anything.

    Args:
        prospects: what batches would tell.
        points: candidates (C, factors).
        chances: probability that a trial of each gives a countable outcome: (C,).
        seconds: expected seconds of a batch of a size, for each candidate.
        sizes: batch sizes to choose from.
    """
    best, choice = 0.0, None
    for size in sizes:
        bits = prospects.information(points, size) * chances
        rates = np.where(bits > NEGLIGIBLE, bits, 0.0) / seconds(size)
        top = int(first_highest(rates))
        if rates[top] > best:
            best, choice = float(rates[top]), Choice(points[top], size)
    return choice
