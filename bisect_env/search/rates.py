"""Failure rates that nobody knows: what counts say once the rate is integrated out.

A rate has a Beta prior, so n trials with f failures in a stated order have the marginal probability
B(a + f, b + n - f) / B(a, b), the Beta-binomial model (Gelman et al., Bayesian Data Analysis, section 2.4). Everything
here takes arrays of counts, one element a hypothesis, and looks log-gamma up in tables, since counts are integers.
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


class RatePrior:
    """A failure rate with the prior Beta(alpha, beta)."""

    def __init__(self, alpha: float, beta: float) -> None:
        self.alpha, self.beta = alpha, beta
        self._failures, self._passes, self._both = _LogGamma(alpha), _LogGamma(beta), _LogGamma(alpha + beta)
        zero = np.zeros(1, dtype=np.int64)
        self._nothing = float(self._unscaled(zero, zero)[0])

    def _unscaled(self, failures: Counts, passes: Counts) -> Floats:
        return self._failures(failures) + self._passes(passes) - self._both(failures + passes)

    def log_marginal(self, failures: Counts, passes: Counts) -> Floats:
        """Natural log of the probability of these outcomes in their order, rate integrated out; shape of the counts."""
        return self._unscaled(failures, passes) - self._nothing

    def mean(self, failures: Counts, passes: Counts) -> Floats:
        """Probability that the next trial fails, given these counts; shape of the counts."""
        return (self.alpha + failures) / (self.alpha + self.beta + failures + passes)

    def predictive(self, failures: Counts, passes: Counts, size: int) -> Floats:
        """Probability of 0..size failures in the next ``size`` trials: shape of the counts plus (size + 1,)."""
        more = np.arange(size + 1)
        ways = gammaln(size + 1) - gammaln(more + 1) - gammaln(size - more + 1)
        after = self._unscaled(failures[..., None] + more, passes[..., None] + (size - more))
        return np.asarray(np.exp(ways + after - self._unscaled(failures, passes)[..., None]), dtype=np.float64)

    def interval(self, failures: Counts, passes: Counts, weights: Floats, level: float = 0.95) -> Interval:
        """The rate's posterior mean and central interval, over hypotheses with these counts and weights (sum above 0).

        The posterior is a mixture of Betas; its quantiles are found by halving, to 1e-6.
        """
        share = weights / weights.sum()
        a, b = self.alpha + failures, self.beta + passes

        def quantile(target: float) -> float:
            low, high = 0.0, 1.0
            while high - low > 1e-6:
                middle = (low + high) / 2
                low, high = (middle, high) if float(share @ betainc(a, b, middle)) < target else (low, middle)
            return (low + high) / 2

        tail = (1 - level) / 2
        return Interval(float(share @ self.mean(failures, passes)), quantile(tail), quantile(1 - tail))


BAD = RatePrior(1.0, 1.0)
"""Of p, the failure rate past the change: nothing is known of it."""
GOOD = RatePrior(0.5, 20.0)
"""Of q, the failure rate before the change: mostly none or few in a hundred, but never taken to be 0."""
