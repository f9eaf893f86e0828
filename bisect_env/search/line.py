"""Which version along a line it is: asks positions, and is told how often trials there failed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Literal

import numpy as np

from bisect_env.search.along import (
    LOOK_AGAIN,
    NEGLIGIBLE,
    SIZES,
    choose,
    most_probable,
    several,
    smallest_range,
    status,
)
from bisect_env.search.change_points import ChangePoints
from bisect_env.search.costs import Measured
from bisect_env.search.rates import BAD, GOOD, Counts, Floats, RatePrior
from bisect_env.search.records import Batch, Costs, Interval, Result, Status, Told
from bisect_env.search.segments import log_several_changes, worst_explained

OTHERS = 8
"""A position of which so many trials ended by something else, and none counted, is not asked again."""
DRAWS = 8
"""Outcomes that are drawn for the batches in flight."""


class Line:
    """A search for the one change in a row of versions, of which each fails with some unknown probability.

    Positions 0..n: 0 is the good end, n the bad one. The answer c, in 1..n, says that positions from c on fail with the
    rate p and those before it with the rate q. Asks and tells may overlap. The same arguments, asks, tells and skips
    in the same order give the same asks.
    """

    def __init__(
        self,
        candidates: int,
        *,
        confidence: float = 0.95,
        seed: int = 0,
        costs: Costs[int] | Measured | None = None,
        batch: int | Literal["auto"] = "auto",
        weights: Sequence[float] | None = None,
    ) -> None:
        """Begin.

        Args:
            candidates: how many versions can be to blame, n.
            confidence: probability at which an answer is given.
            seed: of what batches in flight might show.
            costs: what a trial and a build are expected to cost, until it is told what they did cost; or what was
                measured by now, which then is shared.
            batch: trials a batch; "auto" for the most information per second.
            weights: of the candidates 1..n before any trial, positive and on any scale: one that weighs twice as much
                is twice as probable. "None of them" keeps its own share. None: all alike.

        Raises:
            ValueError: there is no candidate, the confidence is no probability between 0.5 and 1, the batch is empty,
                or the weights are not a positive one for each candidate.
        """
        if candidates < 1:
            raise ValueError(f"a search along a line needs at least one candidate, not {candidates}")
        if not 0.5 <= confidence < 1:
            raise ValueError(f"the confidence is at least 0.5 and below 1, not {confidence}")
        if batch != "auto" and batch < 1:
            raise ValueError(f"a batch has at least one trial, not {batch}")
        if weights is not None and not (len(weights) == candidates and all(0 < each < inf for each in weights)):
            raise ValueError(f"there is one positive weight for each of {candidates} candidates")
        self._prior: Floats | None = None if weights is None else np.array(weights, dtype=np.float64) / max(weights)
        self._confidence, self._seed = confidence, seed
        self._costs: Measured = costs if isinstance(costs, Measured) else Measured(costs)
        self._sizes = SIZES if batch == "auto" else (batch,)
        self._failures: Counts = np.zeros(candidates + 1, dtype=np.int64)
        self._passes = self._failures.copy()
        self._others = self._failures.copy()
        self._askable = np.ones(candidates + 1, dtype=bool)
        self._built = np.array([self._costs.build(position) == 0 for position in range(candidates + 1)])
        self._asked: dict[int, Batch[int]] = {}
        self._next = 0
        self._builds = 0
        self._points = ChangePoints(self._failures, self._passes, self._prior)
        self._looked_at, self._several = 0, 0.0
        self._nothing_left = False

    def skip(self, position: int) -> None:
        """This position cannot be tested: it is never asked again, but can still be to blame."""
        self._askable[self._checked(position)] = False
        self._asked = {key: batch for key, batch in self._asked.items() if batch.point != position}
        self._nothing_left = False

    def ask(self, busy: int = 0) -> Batch[int] | None:
        """The batch to run next; None when the search is over.

        Args:
            busy: how many of the batches asked before still run. What a further one tells is what it is expected to
                add to theirs.
        """
        if self.status in (Status.CONFIDENT, Status.MISFIT):
            return None
        if float(most_probable(self._points.weights, self._askable)) >= self._confidence:
            # Only that there may be more than one change stands against the answer: that is what to ask about.
            position = self._doubtful()
            return None if position is None else self._batch(position, self._sizes[0])
        flying = self._flying(busy)
        trial = np.array(self._costs.trial)
        choice = choose(self._information(flying), self._askable, self._build_costs(flying), trial, self._sizes)
        if float(choice.information) < NEGLIGIBLE:
            self._nothing_left = not busy
            return None
        return self._batch(int(choice.position), int(choice.size))

    def tell(self, told: Told[int]) -> None:
        """What became of a batch, or of trials that were run anyway, such as those of the two ends."""
        position = self._checked(told.batch.point)
        self._asked.pop(told.batch.id, None)
        self._failures[position] += told.failures
        self._passes[position] += told.passes
        self._others[position] += told.other
        ended = told.failures + told.passes + told.other
        self._builds += told.build_seconds is not None
        self._costs.tell(told.build_seconds, told.trial_seconds, ended)
        self._built[position] |= ended > 0
        counted = int(self._failures[position] + self._passes[position])
        if told.skipped or (self._others[position] >= OTHERS and not counted):
            self.skip(position)
        self._nothing_left = False
        self._points = ChangePoints(self._failures, self._passes, self._prior)
        self._look(self._trials() >= LOOK_AGAIN * self._looked_at)

    def result(self) -> Result[int]:
        """What is known by now: ``best`` is the shortest range that has the confidence, its probability is of one
        change or none.
        """
        weights, standing = self._points.weights, self.status
        none = float(weights[0])
        best: tuple[int, ...] = ()
        if none < weights[1:].sum() and none < self._confidence:
            low, high = smallest_range(weights, min(self._confidence, 1 - none), self._prior)
            best = tuple(range(low, high + 1))
        order = np.argsort(-weights[1:], kind="stable") + 1
        return Result(
            status=standing,
            best=best,
            probability=float(weights[list(best)].sum() if best else none) * (1 - self._several),
            posterior=tuple((int(change), float(weights[change])) for change in order),
            none=none,
            rate_bad=self._interval(BAD, self._points.bad),
            rate_good=self._interval(GOOD, self._points.good),
            trials=self._trials(),
            points_built=self._builds,
            misfit=self._contradiction() if standing is Status.MISFIT else "",
        )

    def _batch(self, position: int, size: int) -> Batch[int]:
        batch = Batch(self._next, position, size)
        self._asked[batch.id] = batch
        self._next += 1
        return batch

    def _doubtful(self) -> int | None:
        change = int(self._points.weights.argmax())
        position = worst_explained(self._failures, self._passes, change, self._askable)
        self._nothing_left = position is None
        return position

    def _checked(self, position: int) -> int:
        if not 0 <= position < len(self._failures):
            raise ValueError(f"there is no position {position}: they are 0 to {len(self._failures) - 1}")
        return position

    def _trials(self) -> int:
        return int(self._failures.sum() + self._passes.sum())

    def _look(self, due: bool) -> None:
        """See whether more than one change explains it better: now and then, and before an answer is given."""
        if due or float(most_probable(self._points.weights, self._askable)) >= self._confidence:
            self._looked_at = self._trials()
            others = log_several_changes(self._failures, self._passes, self._prior)
            self._several = several(others, float(self._points.log_evidence))

    @property
    def status(self) -> Status:
        """Where it stands, by what it was told."""
        probability = float(most_probable(self._points.weights, self._askable))
        standing = status(probability, self._several, self._confidence)
        return Status.EXHAUSTED if standing is Status.SEARCHING and self._nothing_left else standing

    def _flying(self, busy: int) -> list[Batch[int]]:
        return list(self._asked.values())[-busy:] if busy else []

    def _information(self, flying: Sequence[Batch[int]]) -> Callable[[int], Floats]:
        """What so many trials at each position are expected to tell beyond the batches in flight, by their number.

        The mean over joint outcomes of those, drawn one batch after the other: each has its share of the draws, so that
        no rare one decides for all.
        """
        if not flying:
            return self._points.information
        failures, passes = (np.repeat(counts[None], DRAWS, axis=0) for counts in (self._failures, self._passes))
        points = ChangePoints(failures, passes, self._prior)
        for batch in flying:
            random = np.random.default_rng([self._seed, batch.id])
            shares = (random.permutation(DRAWS) + random.random(DRAWS)) / DRAWS
            up_to = np.cumsum(points.predictive(batch.point, batch.size), axis=-1)
            failed = (shares[:, None] * up_to[:, -1:] > up_to).sum(axis=-1)
            failures[:, batch.point] += failed
            passes[:, batch.point] += batch.size - failed
            points = ChangePoints(failures, passes, self._prior)
        return lambda size: points.information(size).mean(axis=0)

    def _build_costs(self, flying: Sequence[Batch[int]]) -> Floats:
        """Of each position. Builds side by side take no longer than one: they share its costs, and so do batches that
        wait for one of them."""
        beside = 1 + sum(not self._built[batch.point] for batch in flying)
        costs = (0.0 if built else self._costs.build(position) for position, built in enumerate(self._built))
        return np.array(list(costs)) / beside

    def _interval(self, prior: RatePrior, counts: tuple[Counts, Counts]) -> Interval:
        if not self._trials():
            return Interval(float("nan"), float("nan"), float("nan"))
        weights = self._points.weights[1:]
        kept = weights > 1e-4 * weights.max()
        return prior.interval(counts[0][kept], counts[1][kept], weights[kept])

    def _contradiction(self) -> str:
        """What the best single change cannot explain."""
        change = int(self._points.weights[1:].argmax()) + 1
        before = [m for m in range(change) if self._failures[m]]
        after = [m for m in range(change, len(self._failures)) if self._passes[m]]
        parts = []
        if before:
            worst = max(before, key=lambda m: int(self._failures[m]))
            parts.append(f"{self._of(worst)} failed at position {worst}, which is before it")
        if after:
            worst = max(after, key=lambda m: int(self._passes[m]))
            parts.append(f"{self._of(worst)} failed at position {worst}, which is past it")
        said = f"One change does not explain the failures. The best single one is at position {change}"
        return f"{said}, but {' and '.join(parts)}." if parts else f"{said}, and the rates on a side of it differ."

    def _of(self, position: int) -> str:
        return f"{self._failures[position]} of {self._failures[position] + self._passes[position]} trials"
