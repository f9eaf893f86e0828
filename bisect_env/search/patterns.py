"""Any pattern of points that fail with p and points that fail with q: what is left when no rule explains the failures.

Each point is on either side by the toss of a coin, all points of a side share its rate, both rates have their priors.
It pays for explaining everything with a factor of 2 a point.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import betaincinv, comb, expit, logsumexp

from bisect_env.search.rates import BAD, GOOD, Floats, RatePrior

STEPS = 48
"""Nodes in each component of a rate's prior: equal shares of its probability, each at its median."""


def _nodes(prior: RatePrior) -> tuple[Floats, Floats]:
    """Rates, and the logarithm of the prior probability that each stands for."""
    middles = (np.arange(STEPS) + 0.5) / STEPS
    rates = [betaincinv(alpha, beta, middles) for _, alpha, beta in prior.components]
    shares = [np.full(STEPS, np.log(share / STEPS)) for share, _, _ in prior.components]
    return np.concatenate(rates), np.concatenate(shares)


(_BAD, _LOG_BAD), (_GOOD, _LOG_GOOD) = _nodes(BAD), _nodes(GOOD)


class Patterns:
    """The posterior over patterns, given (failures, passes) of each point that was tested."""

    def __init__(self, counts: Sequence[tuple[int, int]]) -> None:
        """Begin with nothing known of which pattern it is, but for these counts."""
        table = np.array(counts, dtype=np.float64).reshape(-1, 2)
        bad, good = (table[:, :1] * np.log(nodes) + table[:, 1:] * np.log1p(-nodes) for nodes in (_BAD, _GOOD))
        bad, good = bad[:, :, None], good[:, None, :]
        joint = (np.logaddexp(bad, good) - np.log(2)).sum(axis=0) + _LOG_BAD[:, None] + _LOG_GOOD
        self.log_likelihood = float(logsumexp(joint))
        """Natural log of the likelihood of all outcomes in their order."""
        self._rates: Floats = np.exp(joint - logsumexp(joint))
        side = expit(bad - good) * self._rates
        self._on_bad: Floats = side.sum(axis=2)
        self._on_good: Floats = (self._rates - side).sum(axis=1)

    def predictive(self, size: int) -> Floats:
        """Probabilities of 0..size failures at each tested point, last at any other one: (tested + 1, size + 1)."""
        more = np.arange(size + 1)
        bad, good = (
            comb(size, more) * nodes[:, None] ** more * (1 - nodes[:, None]) ** (size - more) for nodes in (_BAD, _GOOD)
        )
        tested = self._on_bad @ bad + self._on_good @ good
        new = (self._rates.sum(axis=1) @ bad + self._rates.sum(axis=0) @ good) / 2
        return np.concatenate([tested, new[None]])
