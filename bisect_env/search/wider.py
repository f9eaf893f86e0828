"""What neither one factor nor a pair explains, and how probable that has become.

Hypotheses are held against: three factors that must be present together, two of which either is enough, one that
fails only without another, and, for everything else, any pattern of failing points (``patterns``). What says of every
tested point the same as one of the hypotheses does not count against them.
"""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp

from bisect_env.search.hypotheses import Bools, Hypotheses
from bisect_env.search.patterns import Patterns
from bisect_env.search.rates import BAD, GOOD, Counts, Floats

WIDER = 0.02
"""Prior probability of all this together; the kinds have equal shares of it."""
MOST_FOR_TRIPLES = 64
"""Up to this many factors triples (41,664 of them) are listed; of more, they are among the patterns."""


class Wider:
    """The causes of other kinds, conditioned on the same trials as the hypotheses."""

    def __init__(self, factors: int) -> None:
        triples = combinations(range(factors if factors <= MOST_FOR_TRIPLES else 0), 3)
        self._triples = np.array(list(triples), dtype=np.intp).reshape(-1, 3).T
        self._either = np.array(list(combinations(range(factors), 2)), dtype=np.intp).reshape(-1, 2).T
        self._without = np.array(list(permutations(range(factors), 2)), dtype=np.intp).reshape(-1, 2).T
        sizes = [kind.shape[1] for kind in (self._triples, self._either, self._without)]
        self._kinds = 1 + sum(size > 0 for size in sizes)
        self._prior: Floats = np.concatenate([np.full(size, 1 / max(size, 1)) for size in sizes])
        self._failures: Counts = np.zeros(len(self._prior), dtype=np.int64)
        self._passes: Counts = np.zeros(len(self._prior), dtype=np.int64)
        self._marks: NDArray[np.int64] = np.zeros(len(self._prior), dtype=np.int64)
        """Of each rule: the same for two rules when they say the same of every tested point, and hardly ever else."""
        self._hypotheses_marks: NDArray[np.int64] = np.zeros(factors * (factors + 1) // 2 + 1, dtype=np.int64)
        self._counts: dict[bytes, tuple[int, int]] = {}
        self.patterns = Patterns([])
        """Its points are in the order in which they were told for the first time."""

    def tell(self, point: Bools, failures: int, passes: int, predicted: Bools) -> None:
        """Count trials at a point (factors,), of which the hypotheses predict this: (hypotheses,)."""
        positive = self._positive(point)
        self._failures += failures * positive
        self._passes += passes * positive
        if point.tobytes() not in self._counts:
            mark = np.random.default_rng(len(self._counts)).integers(1 << 62)
            self._marks ^= mark * positive
            self._hypotheses_marks ^= mark * predicted
        failed, passed = self._counts.get(point.tobytes(), (0, 0))
        self._counts[point.tobytes()] = (failed + failures, passed + passes)
        self.patterns = Patterns(list(self._counts.values()))

    def place(self, point: Bools) -> int:
        """Of a point in ``patterns``; -1 if nothing was told of it."""
        return list(self._counts).index(point.tobytes()) if point.tobytes() in self._counts else -1

    def probability(self, hypotheses: Hypotheses) -> float:
        """Posterior probability that the cause is one of these, and none of the hypotheses."""
        likelihood = hypotheses.log_likelihood()
        ours = logsumexp(hypotheses.log_prior + likelihood)
        wider = np.logaddexp(self._rules(), self._other_patterns(likelihood)) - np.log(self._kinds)
        return float(expit(np.log(WIDER / (1 - WIDER)) + wider - ours))

    def _positive(self, point: Bools) -> Bools:
        first, second, third = self._triples
        either, without = point[self._either], point[self._without]
        triples = point[first] & point[second] & point[third]
        return np.concatenate([triples, either[0] | either[1], without[0] & ~without[1]])

    def _rules(self) -> float:
        """Log of the summed likelihoods of the kinds that are listed. What many have in common is computed once."""
        failed, passed = (sum(counts[which] for counts in self._counts.values()) for which in (0, 1))
        own = self._prior * ~np.isin(self._marks, self._hypotheses_marks)
        prior = np.bincount(self._failures * (passed + 1) + self._passes, weights=own)
        found = np.flatnonzero(prior)
        if not len(found):
            return float("-inf")
        failures, passes = np.divmod(found, passed + 1)
        likelihood = BAD.log_marginal(failures, passes) + GOOD.log_marginal(failed - failures, passed - passes)
        return float(logsumexp(np.log(prior[found]) + likelihood))

    def _other_patterns(self, likelihood: Floats) -> float:
        """Log likelihood of all patterns but those that a hypothesis predicts."""
        _, distinct = np.unique(self._hypotheses_marks, return_index=True)
        ours = logsumexp(likelihood[distinct]) - len(self._counts) * np.log(2)
        # The patterns' rates are on a grid, the hypotheses' are not: nearly nothing may come out as less than nothing.
        share = max(1 - float(np.exp(ours - self.patterns.log_likelihood)), 1e-9)
        return self.patterns.log_likelihood + float(np.log(share))
