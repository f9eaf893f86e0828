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

from bisect_env.search.rates import BAD, EITHER, GOOD, Counts, Floats

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
        self.log_prior: Floats = np.log(prior / prior.sum())
        self._failures: Counts = np.zeros(len(prior), dtype=np.int64)
        self._passes: Counts = np.zeros(len(prior), dtype=np.int64)
        self._all = (0, 0)

    def positive(self, points: Bools) -> Bools:
        """Whether the rate is p: points (C, factors) to (C, hypotheses). Where none is to blame it is q everywhere."""
        inside = points[:, self._first] & points[:, self._second]
        return np.concatenate([inside, np.zeros((len(points), 1), dtype=bool)], axis=1)

    def square(self, values: Floats, which: Counts) -> Floats:
        """Values (len(which), K) of the hypotheses ``which`` as (factors, factors, K), zero elsewhere.

        Singles are on the diagonal and pairs above it. The value of none is left out.
        """
        values, which = values[which < len(self.answers)], which[which < len(self.answers)]
        square = np.zeros((self._factors, self._factors, values.shape[1]))
        square[self._first[which], self._second[which]] = values
        return square

    def tell(self, point: Bools, failures: int, passes: int) -> None:
        """Count trials at a point (factors,)."""
        positive = self.positive(point[None])[0]
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

    def log_likelihood(self) -> Floats:
        """Natural log of the likelihood of all outcomes in their order, for each hypothesis."""
        likelihood = BAD.log_marginal(*self.at_bad()) + GOOD.log_marginal(*self.at_good())
        # Whatever the cause of another kind is, it may fail often or seldom.
        likelihood[-1:] = EITHER.log_marginal(*self._everywhere())
        return likelihood

    def predictive(self, which: Counts, size: int) -> tuple[Floats, Floats]:
        """Probabilities of 0..size failures in ``size`` trials where the rate is p and where it is q.

        Both are (len(which), size + 1), for the hypotheses with the indices ``which``, which are in order.
        """
        failures, passes = self.at_bad()
        bad = BAD.predictive(failures[which], passes[which], size)
        failures, passes = self.at_good()
        good = GOOD.predictive(failures[which], passes[which], size)
        if which[-1] == len(self.answers):
            good[-1:] = EITHER.predictive(*self._everywhere(), size)
        return bad, good

    def _everywhere(self) -> tuple[Counts, Counts]:
        return np.array(self._all[:1]), np.array(self._all[1:])

    def weights(self) -> Floats:
        """Posterior probabilities, in the order of ``answers`` and none last; they sum to 1."""
        joint = self.log_prior + self.log_likelihood()
        return np.asarray(np.exp(joint - logsumexp(joint)), dtype=np.float64)
