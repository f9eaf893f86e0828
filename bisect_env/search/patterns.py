"""How well no hypothesis at all does: any pattern of points that fail with p and points that fail with q.

The alternative against which hypotheses are held: each point is on either side by the toss of a coin, all points of a
side share its rate, both rates have their priors. It explains a cause made of three factors, two causes of which each
is enough, or a history that broke, was fixed and broke again; and it pays for that with a factor of 2 a point.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from scipy.special import betaincinv, logsumexp

from bisect_env.search.rates import BAD, GOOD, Floats, RatePrior

STEPS = 48
"""Nodes in each rate: equal shares of the prior's probability, each at its median."""


def _nodes(prior: RatePrior) -> Floats:
    return np.asarray(betaincinv(prior.alpha, prior.beta, (np.arange(STEPS) + 0.5) / STEPS), dtype=np.float64)


_NODES = {"bad": _nodes(BAD), "good": _nodes(GOOD)}


def log_any_pattern(counts: Iterable[tuple[int, int]]) -> float:
    """Natural log of the likelihood of all outcomes, given (failures, passes) of each point that was tested."""
    table = np.array(list(counts), dtype=np.float64).reshape(-1, 2)
    at_bad, at_good = (
        table[:, :1] * np.log(nodes) + table[:, 1:] * np.log1p(-nodes) for nodes in (_NODES["bad"], _NODES["good"])
    )
    sides = np.logaddexp(at_bad[:, :, None], at_good[:, None, :]) - np.log(2)
    return float(logsumexp(sides.sum(axis=0))) - 2 * float(np.log(STEPS))
