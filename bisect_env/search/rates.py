"""Failure rates that nobody knows: what counts say once the rate is integrated out.

A rate's prior is a mixture of Betas, so n trials with f failures in a stated order have the marginal probability
sum_i w_i B(a_i + f, b_i + n - f) / B(a_i, b_i), the Beta-binomial model (Gelman et al., Bayesian Data Analysis, section
2.4). Everything here takes arrays of counts, one element a hypothesis, and looks log-gamma up in tables, since counts
are integers.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, gammaln

from bisect_env.search.records import Interval

Counts: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]


class _LogGamma:
    """log Gamma(offset + k) for integers k from 0, in a table that grows."""

    def __init__(self, offset: float) -> None:
        self._offset = offset
        self._table = self._make(1024)

    def _make(self, size: int) -> Floats:
        return np.asarray(gammaln(self._offset + np.arange(size)), dtype=np.float64)

    def __call__(self, counts: Counts) -> Floats:
        highest = int(counts.max(initial=0))
        if highest >= len(self._table):
            self._table = self._make(2 * highest + 1)
        return self._table[counts]


class _Beta:
    """One component, with its share."""

    def __init__(self, share: float, alpha: float, beta: float) -> None:
        self.alpha, self.beta = alpha, beta
        self._failures, self._passes, self._both = _LogGamma(alpha), _LogGamma(beta), _LogGamma(alpha + beta)
        self._scale = np.log(share) - float(gammaln(alpha) + gammaln(beta) - gammaln(alpha + beta))

    def log_joint(self, failures: Counts, passes: Counts) -> Floats:
        """Log of the share times the marginal probability of the counts."""
        joint = self._failures(failures) + self._passes(passes) - self._both(failures + passes) + self._scale
        return np.asarray(joint, dtype=np.float64)


class RatePrior:
    """A failure rate with a mixture of Beta distributions as its prior."""

    def __init__(self, *components: tuple[float, float, float]) -> None:
        """Begin.

        Args:
            components: (share, alpha, beta) of each; the shares sum to 1.
        """
        self.components = components
        self._betas = [_Beta(*component) for component in components]

    def log_marginal(self, failures: Counts, passes: Counts) -> Floats:
        """Natural log of the probability of these outcomes in their order, rate integrated out; shape of the counts."""
        total = self._betas[0].log_joint(failures, passes)
        for beta in self._betas[1:]:
            total = np.logaddexp(total, beta.log_joint(failures, passes))
        return total

    def mean(self, failures: Counts, passes: Counts) -> Floats:
        """Probability that the next trial fails, given these counts; shape of the counts."""
        return np.asarray(np.exp(self.log_marginal(failures + 1, passes) - self.log_marginal(failures, passes)))

    def predictive(self, failures: Counts, passes: Counts, size: int) -> Floats:
        """Probability of 0..size failures in the next ``size`` trials: shape of the counts plus (size + 1,)."""
        if size == 1:
            fails = self.mean(failures, passes)
            return np.stack([1 - fails, fails], axis=-1)
        more = np.arange(size + 1)
        ways = gammaln(size + 1) - gammaln(more + 1) - gammaln(size - more + 1)
        after = self.log_marginal(failures[..., None] + more, passes[..., None] + (size - more))
        return np.asarray(np.exp(ways + after - self.log_marginal(failures, passes)[..., None]))

    def interval(self, failures: Counts, passes: Counts, weights: Floats, level: float = 0.95) -> Interval:
        """The rate's posterior mean and central interval, over hypotheses with these counts and weights (sum above 0).

        The posterior is a mixture of Betas; its quantiles are found by halving, to 1e-6.
        """
        joint = np.stack([beta.log_joint(failures, passes) for beta in self._betas])
        shares = np.exp(joint - np.logaddexp.reduce(joint, axis=0)) * weights / weights.sum()
        a = np.stack([beta.alpha + failures for beta in self._betas])
        b = np.stack([beta.beta + passes for beta in self._betas])

        def quantile(target: float) -> float:
            low, high = 0.0, 1.0
            while high - low > 1e-6:
                middle = (low + high) / 2
                below = float((shares * betainc(a, b, middle)).sum())
                low, high = (middle, high) if below < target else (low, middle)
            return (low + high) / 2

        tail = (1 - level) / 2
        return Interval(float((shares * a / (a + b)).sum()), quantile(tail), quantile(1 - tail))


BAD = RatePrior((0.7, 1.0, 2.0), (0.3, 12.0, 0.6))
"""Of p, the failure rate past the change: any, and in three of ten cases nearly always. Low rates have more weight
than in a flat prior: three failures in a row are taken for luck before they are taken for a high rate, since a search
that believes in a high rate takes few passes for proof. Chosen on simulations (docs/search.md)."""
GOOD = RatePrior((1.0, 1.0, 20.0))
"""Of q, the failure rate before the change: mostly few in a hundred, never taken to be 0. Wide enough for one false
failure in twenty: two failures at a version that is good are then luck more often than a narrow prior allows for."""
EITHER = RatePrior(*((share / 2, alpha, beta) for prior in (BAD, GOOD) for share, alpha, beta in prior.components))
"""Of a rate of which it is not known which of the two it is."""
