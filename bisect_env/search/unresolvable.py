"""Which mixes of factors probably do not resolve, learnt from those that did not.

Nearly always two levels exclude each other: factor i at bad with factor j at good ("new transformers, old tokenizers").
Every mix that resolved clears the conflicts it contains; every one that did not has at least one of those left in it.
How the blame falls on them is found by expectation-maximisation (Dempster, Laird & Rubin 1977) for "each forbidden mix
has one cause", which settles on the few conflicts that explain many forbidden mixes.
"""

from __future__ import annotations

import numpy as np

from bisect_env.search.hypotheses import Bools
from bisect_env.search.rates import Floats

ROUNDS = 30
ALONE = 0.05
"""Weight of "this very mix, for a reason of its own" beside conflicts that begin with 1 each."""
NOTABLE = 1e-4
"""Conflicts with less blame than this, summed over all forbidden mixes, are not looked at any more."""
LEAST = 0.01
"""A mix with a smaller probability of resolving is not asked; what only such mixes could tell apart stays together."""


class Unresolvable:
    """Probabilities that mixes resolve."""

    def __init__(self, factors: int) -> None:
        self._cleared: Bools = np.eye(factors, dtype=bool)
        self._forbidden: dict[bytes, Bools] = {}
        self._bad, self._good = np.zeros((2, 0), dtype=np.intp)
        """The conflicts that are suspected: this factor at bad with that one at good."""
        self._shares: Floats = np.zeros((0, 0))
        """Of each forbidden mix, the probability that it is because of each of them."""

    def __len__(self) -> int:
        return len(self._forbidden)

    def forbid(self, point: Bools) -> None:
        """This mix (factors,) does not exist."""
        self._forbidden[point.tobytes()] = point.copy()
        self._blame()

    def works(self, point: Bools) -> None:
        """This mix exists, and so does each pair of levels in it."""
        contained = np.outer(point, ~point)
        if np.any(contained & ~self._cleared):
            self._cleared |= contained
            self._blame()

    def _blame(self) -> None:
        """How each forbidden mix's blame falls on the conflicts that may be in it."""
        if not self._forbidden:
            return
        points = np.array(list(self._forbidden.values()))
        possible = points[:, :, None] & ~points[:, None, :] & ~self._cleared
        bad, good = np.nonzero(possible.any(axis=0))
        among = possible[:, bad, good]
        share = np.ones(len(bad))
        for _ in range(ROUNDS):
            blame = among * share
            blame /= blame.sum(axis=1, keepdims=True) + ALONE
            share = blame.sum(axis=0)
        notable = share > NOTABLE
        self._bad, self._good, self._shares = bad[notable], good[notable], blame[:, notable]

    def chance(self, points: Bools) -> Floats:
        """Probability that each point (C, factors) resolves: (C,).

        A point does not if it has in it what a forbidden mix is to blame on; the mix of which it has most decides.
        """
        if not self._forbidden:
            return np.ones(len(points))
        known = np.array([point.tobytes() in self._forbidden for point in points])
        contained = points[:, self._bad] & ~points[:, self._good]
        # As in ``choosing``, not a BLAS product.
        blamed = np.einsum("ck,fk->cf", contained.astype(np.float64), self._shares).max(axis=1)
        return np.where(known, 0.0, np.maximum(1 - blamed, 0.0))

    def apart(self, first: tuple[int, ...], second: tuple[int, ...]) -> bool:
        """Whether some mix that may resolve has all factors of one answer at bad, and one of the other's at good."""
        return any(
            self._likeliest(present, absent) >= LEAST
            for present, other in ((first, second), (second, first))
            for absent in set(other) - set(present)
        )

    def _likeliest(self, present: tuple[int, ...], absent: int) -> float:
        """Probability of resolving of the likeliest mix with these at bad and that one at good.

        Found by flipping one of the others at a time, from all of them at bad and from all of them at good.
        """
        factors = len(self._cleared)
        free = np.flatnonzero(~np.isin(np.arange(factors), [*present, absent]))
        flips = np.concatenate([np.zeros((1, factors), dtype=bool), np.eye(factors, dtype=bool)[free]])
        best = 0.0
        for others in (True, False):
            point = np.full(factors, others)
            point[list(present)], point[absent] = True, False
            chances = self.chance(point ^ flips)
            # Not for rounding errors, which could go back and forth for ever.
            while chances.max() > chances[0] + 1e-9:
                point ^= flips[int(chances.argmax())]
                chances = self.chance(point ^ flips)
            best = max(best, float(chances[0]))
        return best
