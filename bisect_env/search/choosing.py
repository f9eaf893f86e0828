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
from bisect_env.search.patterns import Patterns
from bisect_env.search.rates import Counts, Floats

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
    """What batches would tell, given all counts so far."""

    def __init__(self, hypotheses: Hypotheses, patterns: Patterns, misfit: float) -> None:
        """``misfit`` is the probability of a cause of another kind; ``patterns`` says what that would show."""
        weights = hypotheses.weights()
        self._hypotheses, self._patterns, self._misfit = hypotheses, patterns, misfit
        self._kept = np.flatnonzero(weights > NEGLIGIBLE)
        self._weights = weights[self._kept] / weights[self._kept].sum()
        self.unknown = float(_bits(np.append(self._weights * (1 - misfit), misfit)))
        """Bits that are missing to know the culprit."""
        self._predicted: dict[int, tuple[Floats, Floats]] = {}
        self._sums: dict[int, tuple[Floats, Floats]] = {}
        self._other: dict[int, Floats] = {}

    def _predictive(self, size: int) -> tuple[Floats, Floats]:
        """Probabilities of 0..size failures on the bad and on the good side: each (hypotheses kept, size + 1)."""
        if size not in self._predicted:
            self._predicted[size] = self._hypotheses.predictive(self._kept, size)
        return self._predicted[size]

    def _weighted(self, size: int) -> tuple[Floats, Floats]:
        """Probabilities of 0..size failures, then the bits of noise in them, times the hypothesis's own probability.

        Once how the bad side differs from the good one, (hypotheses kept, size + 2), and the good side's sum.
        """
        if size not in self._sums:
            bad, good = (
                np.column_stack([side, _bits(side)]) * self._weights[:, None] for side in self._predictive(size)
            )
            self._sums[size] = (bad - good, good.sum(axis=0))
        return self._sums[size]

    def information(self, points: Bools, size: int, tested: Counts | None = None) -> Floats:
        """Bits that ``size`` trials at each point are expected to tell about the culprit.

        Args:
            points: (C, factors).
            size: trials at each.
            tested: (C,), the place of each point in what ``patterns`` was made from, -1 for one that is not there.

        Returns:
            (C,), at least 0.
        """
        differences, constant = self._weighted(size)
        bad = self._hypotheses.positive(points)[:, self._kept].astype(np.float64)
        # Not a BLAS product: on a busy machine its threads wait for each other, thirty times as long as this takes.
        return self._told(np.einsum("ch,hs->cs", bad, differences) + constant, size, tested)

    def around(self, points: Bools) -> Floats:
        """Bits that one trial would tell at each point's neighbours, by the factor flipped: (C, factors).

        Sums over all singles and pairs that are inside a point x are the quadratic form x A x, A with the singles on
        its diagonal and the pairs above it. A flip of factor i changes it by that factor's row and column, so no
        neighbour needs a product of its own.
        """
        differences, constant = self._weighted(1)
        factors = points.shape[1]
        inside = points.astype(np.float64)
        square = self._hypotheses.square(differences, self._kept)
        alone = square[np.arange(factors), np.arange(factors)]
        both = (square + square.transpose(1, 0, 2)) * (1 - np.eye(factors))[..., None]
        joined = (inside @ both.reshape(factors, -1)).reshape(*points.shape, 3)
        here = np.einsum("cf,cfs->cs", inside, joined / 2 + alone) + constant
        return self._told(here[:, None] + (1 - 2 * inside)[..., None] * (joined + alone), 1, None)

    def _told(self, sums: Floats, size: int, tested: Counts | None) -> Floats:
        """Bits, given probabilities of the numbers of failures with the bits of noise in them last: (..., size + 2)."""
        if size not in self._other:
            predicted = self._patterns.predictive(size)
            self._other[size] = np.column_stack([predicted, _bits(predicted)])
        other = self._other[size][-1 if tested is None else tested]
        sums = (1 - self._misfit) * np.maximum(sums, 0.0) + self._misfit * other
        return np.asarray(np.maximum(_bits(sums[..., :-1]) - sums[..., -1], 0.0), dtype=np.float64)

    def draw(self, point: Bools, size: int, random: np.random.Generator) -> int:
        """Failures that ``size`` trials at a point might show: one draw from what is expected."""
        which = int(random.choice(len(self._weights), p=self._weights))
        bad = self._hypotheses.positive(point[None])[0, self._kept[which]]
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


def climb(around: Callable[[Bools], Floats], starts: Bools) -> Bools:
    """The points reached from each start (C, factors) by the best flip of one factor, again and again.

    ``around`` gives the height of each neighbour, by the factor flipped: (C, factors) of (C, factors).
    """
    points = starts.copy()
    rising = np.arange(len(points))
    heights = np.zeros(len(points))
    for _ in range(STEPS):
        reached = around(points[rising])
        best = first_highest(reached)
        reached = reached.max(axis=1)
        better = reached > heights[rising] * (1 + 1e-9) + NEGLIGIBLE
        rising, best = rising[better], best[better]
        heights[rising] = reached[better]
        points[rising, best] ^= True
        if not len(rising):
            break
    return points


def candidates(around: Callable[[Bools], Floats], built: Bools, random: np.random.Generator) -> Bools:
    """Points worth weighing against each other: those that are built, and the best others that can be found."""
    factors = built.shape[1]
    if factors <= FEW:
        found = every_point(factors)
    else:
        shares = np.linspace(0.35, 0.85, STARTS)[:, None]
        found = climb(around, random.random((STARTS, factors)) < shares)
    return np.unique(np.concatenate([built, found]), axis=0)


def choose(
    prospects: Prospects,
    points: Bools,
    tested: Counts,
    chances: Floats,
    seconds: Callable[[int], Floats],
    sizes: Sequence[int],
) -> Choice | None:
    """The point and size with the most expected information per second; None where nothing tells anything.

    Args:
        prospects: what batches would tell.
        points: candidates (C, factors).
        tested: as for ``Prospects.information``.
        chances: probability that a trial of each gives a countable outcome: (C,).
        seconds: expected seconds of a batch of a size, for each candidate.
        sizes: batch sizes to choose from.
    """
    best, choice = 0.0, None
    for size in sizes:
        # A batch cannot tell more than there is to know. (It can tell more than its trials would one by one, since
        # they have an unknown rate in common.)
        if (prospects.unknown * chances / seconds(size)).max() <= best:
            continue
        bits = prospects.information(points, size, tested) * chances
        rates = np.where(bits > NEGLIGIBLE, bits, 0.0) / seconds(size)
        top = int(first_highest(rates))
        if rates[top] > best:
            best, choice = float(rates[top]), Choice(points[top], size)
    return choice
