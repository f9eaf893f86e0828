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
ALONE = 0.1
"""Weight of "this very mix, for a reason of its own" beside conflicts that begin with 1 each."""
LEAST = 0.02
"""A mix with a smaller probability of resolving is not asked; what only such mixes could tell apart stays together."""


class Unresolvable:
    """Probabilities that mixes resolve."""

    def __init__(self, factors: int) -> None:
        self._cleared: Bools = np.eye(factors, dtype=bool)
        self._forbidden: dict[bytes, Bools] = {}
        self._resolves: Floats = np.zeros((factors, factors))

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
        """Log probability that there is no conflict between i at bad and j at good, for each i and j."""
        if not self._forbidden:
            return
        points = np.array(list(self._forbidden.values()))
        possible = points[:, :, None] & ~points[:, None, :] & ~self._cleared
        share = np.ones_like(self._resolves)
        for _ in range(ROUNDS):
            blame = possible * share
            blame /= blame.sum(axis=(1, 2), keepdims=True) + ALONE
            share = blame.sum(axis=0)
        self._resolves = np.log1p(-np.minimum(blame, 1 - 1e-9)).sum(axis=0)

    def chance(self, points: Bools) -> Floats:
        """Probability that each point (C, factors) resolves: (C,)."""
        if not self._forbidden:
            return np.ones(len(points))
        known = np.array([point.tobytes() in self._forbidden for point in points])
        risk = ((points.astype(float) @ self._resolves) * ~points).sum(axis=1)
        return np.where(known, 0.0, np.exp(risk))

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
