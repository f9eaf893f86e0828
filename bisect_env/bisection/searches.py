"""The searches as the stages use them: one place that knows how they are built and told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from bisect_env.bisection.records import Observation, Specification
from bisect_env.search import line, subsets
from bisect_env.search.costs import Measured
from bisect_env.search.records import Batch, Result, Tally, Told


class Search(Protocol):
    """What a stage needs of a search."""

    def ask(self, busy: int) -> Batch[Any] | None:
        """The batch to run next, beside so many of those asked before; None when there is none, or it is over."""

    def tell(self, batch: Batch[Any], seen: Observation | None) -> None:
        """What became of it; None: its trials are told with another batch of the same point, or were not run.

        What it has cost is told to the costs that it was given.
        """

    def know(self, point: Any, tally: Tally) -> None:
        """Trials that were run anyway."""

    def forbid(self, point: Any) -> None:
        """This point has no environment."""

    def result(self) -> Result[Any]:
        """What is known by now."""


def _told(batch: Batch[Any], seen: Observation | None) -> Told[Any]:
    if seen is None:
        return Told(batch, 0, 0)
    return Told(batch, seen.failures, seen.passes, seen.other, seen.skipped)


def _known(point: Any, tally: Tally) -> Told[Any]:
    return Told(Batch(-1, point, max(1, tally.counted)), tally.failures, tally.passes, tally.other)


class Subsets:
    """Which factors: :class:`bisect_env.search.subsets.Subsets`."""

    def __init__(self, factors: int, confidence: float, asked: Specification, costs: Measured) -> None:
        seed, batch = asked.seed, asked.batch
        self._search = subsets.Subsets(factors, confidence=confidence, seed=seed, costs=costs, batch=batch or "auto")

    def ask(self, busy: int) -> Batch[frozenset[int]] | None:
        """See :class:`Search`."""
        return self._search.ask(busy)

    def tell(self, batch: Batch[Any], seen: Observation | None) -> None:
        """See :class:`Search`."""
        self._search.tell(_told(batch, seen))

    def know(self, point: frozenset[int], tally: Tally) -> None:
        """See :class:`Search`."""
        if tally.counted:
            self._search.tell(_known(point, tally))

    def forbid(self, point: frozenset[int]) -> None:
        """See :class:`Search`."""
        self._search.forbid(point)

    def result(self) -> Result[tuple[int, ...]]:
        """See :class:`Search`."""
        return self._search.result()


class Line:
    """Along versions or commits: :class:`bisect_env.search.line.Line`."""

    def __init__(
        self,
        candidates: int,
        confidence: float,
        asked: Specification,
        costs: Measured,
        weights: Sequence[float] | None = None,
    ) -> None:
        seed, batch = asked.seed, asked.batch
        self._search = line.Line(
            candidates, confidence=confidence, seed=seed, costs=costs, batch=batch or "auto", weights=weights
        )

    def ask(self, busy: int) -> Batch[int] | None:
        """See :class:`Search`."""
        return self._search.ask(busy)

    def tell(self, batch: Batch[Any], seen: Observation | None) -> None:
        """See :class:`Search`."""
        self._search.tell(_told(batch, seen))

    def know(self, point: int, tally: Tally) -> None:
        """See :class:`Search`."""
        if tally.counted:
            self._search.tell(_known(point, tally))

    def forbid(self, point: int) -> None:
        """See :class:`Search`."""
        self._search.skip(point)

    def result(self) -> Result[int]:
        """See :class:`Search`."""
        return self._search.result()
