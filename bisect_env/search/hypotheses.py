"""What can be to blame among factors: each of them, each pair that must be present together, or none.

The posterior over them is exact: a hypothesis says of every point whether the failure's rate there is p or q, so the
likelihood of all trials depends on the counts on either side alone, and both rates are integrated out (``rates``).
"""

from __future__ import annotations

from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from bisect_env.search.rates import BAD, GOOD, Counts, Floats

Bools: TypeAlias = NDArray[np.bool_]

SINGLE, PAIR, NONE = 0.6, 0.35, 0.05
"""Prior probabilities: of any single factor, of any pair, of none of them. Within a kind all are alike."""


class Hypotheses:
    """All singles, then all pairs, then none; counts of trials on both sides of each, and what they say."""

    def __init__(self, factors: int) -> None:
        if factors < 1:
            raise ValueError(f"a search among factors needs at least one, not {factors}")
        self._factors = factors
        self.answers: tuple[tuple[int, ...], ...] = (
            *((factor,) for factor in range(factors)),
            *combinations(range(factors), 2),
        )
        self._first, self._second = (np.array([answer[end] for answer in self.answers]) for end in (0, -1))
        pairs = len(self.answers) - factors
        prior = np.concatenate([np.full(factors, SINGLE / factors), np.full(pairs, PAIR / max(pairs, 1)), [NONE]])
        self._log_prior = np.log(prior / prior.sum())
        self._failures: Counts = np.zeros(len(prior), dtype=np.int64)
        self._passes: Counts = np.zeros(len(prior), dtype=np.int64)
        self._all = (0, 0)

    def positive(self, point: Bools) -> Bools:
        """Whether the rate at a point (factors,) is p: (hypotheses,). Where none is to blame it is q everywhere."""
        return np.append(point[self._first] & point[self._second], False)

    def form(self, values: Floats, which: Counts) -> Floats:
        """Values (len(which), K) of the hypotheses ``which`` as a matrix (factors, factors * K), zero elsewhere.

        Row i, columns j * K and on: the pair (i, j), or the single i where j is i. The value of none is left out.
        """
        values, which = values[which < len(self.answers)], which[which < len(self.answers)]
        form = np.zeros((self._factors, self._factors, values.shape[1]))
        form[self._first[which], self._second[which]] = values
        return form.reshape(self._factors, -1)

    def tell(self, point: Bools, failures: int, passes: int) -> None:
        """Count trials at a point (factors,)."""
        positive = self.positive(point)
        self._failures += failures * positive
        self._passes += passes * positive
        self._all = (self._all[0] + failures, self._all[1] + passes)

    def copy(self) -> Hypotheses:
        """The same counts, to be told what did not happen yet."""
        other = object.__new__(Hypotheses)
        other.__dict__.update(self.__dict__)
        other._failures, other._passes = self._failures.copy(), self._passes.copy()
        return other

    def at_bad(self) -> tuple[Counts, Counts]:
        """Failures and passes where the rate is p, for each hypothesis."""
        return self._failures, self._passes

    def at_good(self) -> tuple[Counts, Counts]:
        """Failures and passes where the rate is q, for each hypothesis."""
        return self._all[0] - self._failures, self._all[1] - self._passes

    def log_joint(self) -> Floats:
        """Natural log of prior times likelihood of all outcomes in their order, for each hypothesis."""
        joint: Floats = self._log_prior + BAD.log_marginal(*self.at_bad()) + GOOD.log_marginal(*self.at_good())
        joint[-1] = self._log_prior[-1] + self._none()
        return joint

    def _none(self) -> float:
        """Log likelihood of one rate everywhere, which may be of either kind: the cause is not among the factors."""
        failures, passes = (np.array([count]) for count in self._all)
        both = np.concatenate([BAD.log_marginal(failures, passes), GOOD.log_marginal(failures, passes)])
        return float(logsumexp(both)) - float(np.log(2))

    def weights(self) -> Floats:
        """Posterior probabilities, in the order of ``answers`` and none last; they sum to 1."""
        joint = self.log_joint()
        return np.asarray(np.exp(joint - logsumexp(joint)), dtype=np.float64)
