"""Which factors are to blame: asks mixes of good and bad levels, and is told how often they failed."""

from __future__ import annotations

from typing import Literal

import numpy as np

from bisect_env.search.choosing import SIZES, Prospects, candidates, choose
from bisect_env.search.costs import Measured
from bisect_env.search.hypotheses import Bools, Hypotheses
from bisect_env.search.rates import BAD, GOOD, Counts, Floats, RatePrior
from bisect_env.search.records import Batch, Costs, Interval, Result, Status, Tally, Told
from bisect_env.search.unresolvable import LEAST, Unresolvable
from bisect_env.search.wider import Wider

Point = frozenset[int]
Answer = tuple[int, ...]

NOTABLE = 1e-3
"""Answers with less probability are not looked at for whether they can be told from the best one."""
OTHERS = 8
"""A point of which so many trials ended by something else, and none counted, is not asked again."""


class Subsets:
    """A search for the factor, or the pair of factors, whose bad level makes a failure appear.

    A point is the set of factors at their bad level; what is not in it is at its good level. Asks and tells may
    overlap. The same arguments, asks, tells and forbidden points in the same order give the same asks.
    """

    def __init__(
        self,
        factors: int,
        *,
        confidence: float = 0.95,
        seed: int = 0,
        costs: Costs[Point] | Measured | None = None,
        batch: int | Literal["auto"] = "auto",
    ) -> None:
        """Begin.

        Args:
            factors: how many there are, numbered from 0.
            confidence: probability at which an answer is given.
            seed: of the starts of the search for mixes, and of what batches in flight might show.
            costs: what a trial and a build are expected to cost, until it is told what they did cost; or what was
                measured by now, which then is shared.
            batch: trials a batch; "auto" for the most information per second.

        Raises:
            ValueError: there is no factor, the confidence is no probability between 0.5 and 1, or the batch is empty.
        """
        if not 0.5 <= confidence < 1:
            raise ValueError(f"the confidence is at least 0.5 and below 1, not {confidence}")
        if batch != "auto" and batch < 1:
            raise ValueError(f"a batch has at least one trial, not {batch}")
        self._factors, self._confidence, self._seed = factors, confidence, seed
        self._costs: Measured = costs if isinstance(costs, Measured) else Measured(costs)
        self._sizes = SIZES if batch == "auto" else (batch,)
        self._hypotheses = Hypotheses(factors)
        self._wider = Wider(factors)
        self._misfit = 0.0
        self._unresolvable = Unresolvable(factors)
        self._tallies: dict[Point, Tally] = {}
        self._asked: dict[int, Batch[Point]] = {}
        self._next = 0
        self._built: set[Point] = set()
        self._barred: set[Point] = set()
        self._builds = 0
        self._nothing_left = False

    def forbid(self, point: Point) -> None:
        """This mix does not resolve: it is never asked, and mixes that share its likely conflict are avoided."""
        self._barred.add(point)
        self._asked = {key: batch for key, batch in self._asked.items() if batch.point != point}
        self._unresolvable.forbid(self._row(point))

    def ask(self, busy: int = 0) -> Batch[Point] | None:
        """The batch to run next; None when the search is over.

        Args:
            busy: how many of the batches asked before still run. For the choice, each is taken to show what it may
                be expected to show.
        """
        if self.status in (Status.CONFIDENT, Status.MISFIT):
            return None
        random = np.random.default_rng([self._seed, self._next, len(self._unresolvable)])
        prospects = self._prospects(busy, random)
        built = np.array([self._row(point) for point in sorted(self._built, key=sorted)], dtype=bool)
        points = candidates(
            lambda points: prospects.around(points) * self._chances_around(points),
            built.reshape(-1, self._factors),
            random,
        )
        mixes = map(_point, points)
        beside = 1 + len({batch.point for batch in self._flying(busy)} - self._tallies.keys())
        builds = np.array([0.0 if point in self._built else self._costs.build(point) / beside for point in mixes])
        trial = self._costs.trial
        tested = np.array([self._wider.place(point) for point in points])
        chances = self._chances(points)
        choice = choose(prospects, points, tested, chances, lambda size: builds + size * trial, self._sizes)
        self._nothing_left = choice is None and not busy
        if choice is None:
            return None
        batch = Batch(self._next, _point(choice.point), choice.size)
        self._asked[batch.id] = batch
        self._built.add(batch.point)
        self._next += 1
        return batch

    def tell(self, told: Told[Point]) -> None:
        """What became of a batch, or of trials that were run anyway, such as those of the two ends."""
        point = told.batch.point
        self._asked.pop(told.batch.id, None)
        self._nothing_left = False
        tally = self._tallies.get(point, Tally()) + Tally(told.failures, told.passes, told.other)
        self._tallies[point] = tally
        row = self._row(point)
        self._hypotheses.tell(row, told.failures, told.passes)
        if told.failures or told.passes:
            self._wider.tell(row, told.failures, told.passes, self._hypotheses.positive(row[None])[0])
            self._misfit = self._wider.probability(self._hypotheses)
        self._builds += told.build_seconds is not None
        ended = told.failures + told.passes + told.other
        self._costs.tell(told.build_seconds, told.trial_seconds, ended)
        if told.skipped:
            self._built.discard(point)
            self.forbid(point)
        elif ended:
            self._built.add(point)
            self._unresolvable.works(row)
        if tally.other >= OTHERS and not tally.counted:
            self._barred.add(point)

    def result(self) -> Result[Answer]:
        """What is known by now. ``probability`` allows for a cause of another kind; ``posterior`` is without it."""
        weights = self._hypotheses.weights()
        order = np.argsort(-weights[:-1], kind="stable")
        answers = self._hypotheses.answers
        status, fits = self.status, 1 - self._misfit
        best = self._best(weights, status)
        counted = [tally for tally in self._tallies.values() if tally.counted]
        return Result(
            status=status,
            best=tuple(answers[index] for index in best),
            probability=float(weights[best].sum() if best else weights[-1]) * fits,
            posterior=tuple((answers[index], float(weights[index])) for index in order),
            none=float(weights[-1]),
            rate_bad=self._interval(BAD, self._hypotheses.at_bad(), weights),
            rate_good=self._interval(GOOD, self._hypotheses.at_good(), weights),
            trials=sum(tally.counted for tally in counted),
            points_built=self._builds,
            misfit=self._contradiction() if status is Status.MISFIT else "",
        )

    @property
    def status(self) -> Status:
        """Where it stands, by what it was told."""
        if self._misfit >= self._confidence:
            return Status.MISFIT
        weights = self._hypotheses.weights()
        best = self._alike(weights)
        if max(float(weights[best].sum()), float(weights[-1])) * (1 - self._misfit) >= self._confidence:
            return Status.CONFIDENT
        return Status.EXHAUSTED if self._nothing_left else Status.SEARCHING

    def _best(self, weights: Floats, status: Status) -> list[int]:
        """Indices of the answers to report; none for "none of these"."""
        alike = self._alike(weights)
        if weights[-1] > weights[alike].sum():
            return []
        if status is not Status.EXHAUSTED:
            return alike
        order = np.argsort(-weights[:-1], kind="stable")
        needed = int(np.searchsorted(np.cumsum(weights[order]), self._confidence)) + 1
        return [int(index) for index in order[:needed]]

    def _alike(self, weights: Floats) -> list[int]:
        """The most probable answer and those that no mix which may resolve could tell from it."""
        best = int(weights[:-1].argmax())
        if not len(self._unresolvable):
            return [best]
        answers = self._hypotheses.answers
        others = [int(index) for index in np.flatnonzero(weights[:-1] > NOTABLE) if index != best]
        return [best, *(index for index in others if not self._unresolvable.apart(answers[best], answers[index]))]

    def _contradiction(self) -> str:
        """The worst point for the best answer, in words."""
        answer = set(self._hypotheses.answers[int(self._hypotheses.weights()[:-1].argmax())])
        counted = [(point, tally) for point, tally in self._tallies.items() if tally.counted]
        failing = [tally for point, tally in counted if not answer <= point and tally.failures]
        passing = [tally for point, tally in counted if answer <= point and not tally.failures]
        said = "Neither one factor nor a pair explains where it failed"
        if failing:
            worst = max(failing, key=lambda tally: tally.failures)
            return f"{said}: without the best of them, {worst.failures} of {worst.counted} trials of one mix failed."
        if passing:
            worst = max(passing, key=lambda tally: tally.passes)
            return f"{said}: with the best of them, none of {worst.counted} trials of one mix failed."
        return f"{said}: the rates of mixes that should be alike differ."

    def _interval(self, prior: RatePrior, counts: tuple[Counts, Counts], weights: Floats) -> Interval:
        if not any(tally.counted for tally in self._tallies.values()):
            return Interval(float("nan"), float("nan"), float("nan"))
        kept = np.flatnonzero(weights[:-1] > 1e-4 * weights[:-1].max())
        return prior.interval(counts[0][kept], counts[1][kept], weights[kept])

    def _prospects(self, busy: int, random: np.random.Generator) -> Prospects:
        """What batches would tell once those in flight have shown what may be expected of them."""
        prospects = Prospects(self._hypotheses, self._wider.patterns, self._misfit)
        if not busy:
            return prospects
        supposed = self._hypotheses.copy()
        for batch in self._flying(busy):
            row = self._row(batch.point)
            failures = prospects.draw(row, batch.size, random)
            supposed.tell(row, failures, batch.size - failures)
            prospects = Prospects(supposed, self._wider.patterns, self._misfit)
        return prospects

    def _flying(self, busy: int) -> list[Batch[Point]]:
        return list(self._asked.values())[-busy:] if busy else []

    def _chances(self, points: Bools) -> Floats:
        """Probability that a trial of each point can be run and counts: (C,)."""
        chances = self._unresolvable.chance(points)
        chances[chances < LEAST] = 0.0
        if self._barred or any(tally.other for tally in self._tallies.values()):
            chances *= [self._counting(point) for point in map(_point, points)]
        return chances

    def _chances_around(self, points: Bools) -> Floats:
        """The same of each point's neighbours, by the factor flipped: (C, factors)."""
        if not len(self._unresolvable):
            return np.ones(points.shape)
        neighbours = points[:, None, :] ^ np.eye(self._factors, dtype=bool)
        return self._chances(neighbours.reshape(-1, self._factors)).reshape(points.shape)

    def _counting(self, point: Point) -> float:
        tally = self._tallies.get(point, Tally())
        return 0.0 if point in self._barred else (tally.counted + 1) / (tally.counted + tally.other + 1)

    def _row(self, point: Point) -> Bools:
        row = np.zeros(self._factors, dtype=bool)
        row[list(point)] = True
        return row


def _point(row: Bools) -> Point:
    return frozenset(int(index) for index in np.flatnonzero(row))
