"""One change along a line of positions: where it is, and what more trials would tell. Exact, for many lines at once.

Positions 0..n; the change c in 1..n says that positions from c on fail with an unknown rate p and those before it with
an unknown rate q; "none" says that all have the same rate. All arrays have the positions last and any shape before it:
a single search, or thousands that are simulated in step.

The changes may have prior weights; without them each has the same.
"""

from __future__ import annotations

import numpy as np
from scipy.special import xlogy

from bisect_env.search.rates import BAD, EITHER, GOOD, Counts, Floats, RatePrior

NONE = 0.005
"""Prior probability that nothing along the line changes the rate. The rest is shared by the changes."""
CACHED = 1 << 14
"""Numbers of an array that stays in a processor's cache."""


class ChangePoints:
    """The posterior over the change, rates integrated out."""

    def __init__(self, failures: Counts, passes: Counts, prior: Floats | None = None) -> None:
        """Condition on counts.

        Args:
            failures: at positions: (..., n + 1).
            passes: as the failures.
            prior: positive weights of the changes 1..n, on any scale: (..., n); None: all alike.
        """
        below = np.cumsum(failures, axis=-1), np.cumsum(passes, axis=-1)
        self.all = (below[0][..., -1:], below[1][..., -1:])
        self.good = (below[0][..., :-1], below[1][..., :-1])
        self.bad = (self.all[0] - self.good[0], self.all[1] - self.good[1])
        count = failures.shape[-1] - 1
        even = np.array((1 - NONE) / count)
        shares = even if prior is None else (1 - NONE) * prior / prior.sum(axis=-1, keepdims=True)
        joint = np.concatenate(
            [
                np.log(NONE) + EITHER.log_marginal(*self.all),
                np.log(shares) + BAD.log_marginal(*self.bad) + GOOD.log_marginal(*self.good),
            ],
            axis=-1,
        )
        highest = joint.max(axis=-1, keepdims=True)
        scaled = np.exp(joint - highest)
        total = scaled.sum(axis=-1, keepdims=True)
        self.weights: Floats = scaled / total
        """Posterior (..., n + 1): of none first, then of the changes 1..n."""
        self.log_evidence: Floats = (highest + np.log(total))[..., 0]
        """Log probability of all outcomes under one change or none: (...)."""

    def failing(self) -> Floats:
        """Probability that the next trial at each position fails: (..., n + 1)."""
        sides = [prior.mean(*counts) for prior, counts in self._sides()]
        return self._mixed(*sides)

    def information(self, size: int) -> Floats:
        """What ``size`` trials at each position are expected to tell about the change, in nats: (..., n + 1).

        The mutual information between the change and the number of failures (Lindley 1956).
        """
        sides = [np.moveaxis(prior.predictive(*counts, size), -1, 0) for prior, counts in self._sides()]
        told = np.zeros(self.weights.shape)
        # So many numbers of failures at a time as stay in the cache: of thousands of lines one after the other.
        some = max(1, CACHED // told.size)
        for first in range(0, size + 1, some):
            bad, good, same = (np.ascontiguousarray(side[first : first + some]) for side in sides)
            mixed = self._mixed(bad, good, same)
            for each in self._mixed(xlogy(bad, bad), xlogy(good, good), xlogy(same, same)) - xlogy(mixed, mixed):
                told += each
        return np.maximum(told, 0.0)

    def predictive(self, position: int, size: int) -> Floats:
        """Probability of 0..size failures in so many trials at one position: (..., size + 1)."""
        bad, good, same = (prior.predictive(*counts, size) for prior, counts in self._sides())
        past = np.arange(1, self.weights.shape[-1]) <= position
        one = np.einsum("...c,...cs->...s", self.weights[..., 1:], np.where(past[:, None], bad, good))
        return np.asarray(one + self.weights[..., :1] * same[..., 0, :], dtype=np.float64)

    def _sides(self) -> tuple[tuple[RatePrior, tuple[Counts, Counts]], ...]:
        return ((BAD, self.bad), (GOOD, self.good), (EITHER, self.all))

    def _mixed(self, bad: Floats, good: Floats, same: Floats) -> Floats:
        """Mean over the posterior, at each position, of what a hypothesis says for its bad and its good side.

        At position m the changes 1..m have it on their bad side and m+1..n on their good side.
        """
        weights = self.weights[..., 1:]
        mean = np.empty((*good.shape[:-1], self.weights.shape[-1]))
        mean[..., :1] = (weights * good).sum(axis=-1, keepdims=True)
        mean[..., 1:] = np.cumsum(weights * (bad - good), axis=-1) + mean[..., :1]
        return np.asarray(mean + self.weights[..., :1] * same, dtype=np.float64)
