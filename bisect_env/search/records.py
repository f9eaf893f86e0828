"""What a search says and is told. Immutable; the same for a line of versions and for sets of factors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

P = TypeVar("P")
"""What can be tested: a position on a line (int), or the set of factors at their bad level (frozenset of int)."""
A = TypeVar("A")
"""What can be to blame: a culprit position (int), or the factors that fail together (tuple of int)."""


class Status(Enum):
    """Where a search stands."""

    SEARCHING = "searching"
    CONFIDENT = "confident"
    """The answer has the probability asked for."""
    EXHAUSTED = "exhausted"
    """There is nothing left to ask: what could be tested is forbidden or skipped, or would tell next to nothing."""
    MISFIT = "misfit"
    """The data contradict every hypothesis: it broke, was fixed and broke again, or more factors are involved."""


@dataclass(frozen=True)
class Interval:
    """A rate with the interval that has the stated probability.

    All three are NaN where nothing is known: no trial has been told.
    """

    estimate: float
    low: float
    high: float


@dataclass(frozen=True)
class Tally:
    """Counts of the trials of one point, or of several."""

    failures: int = 0
    passes: int = 0
    other: int = 0

    @property
    def counted(self) -> int:
        """Trials that count for one side or the other."""
        return self.failures + self.passes

    def __add__(self, more: Tally) -> Tally:
        return Tally(self.failures + more.failures, self.passes + more.passes, self.other + more.other)


@dataclass(frozen=True)
class Batch(Generic[P]):
    """Trials to run at one point. Ids are unique within a search and increase."""

    id: int
    point: P
    size: int

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError(f"a batch has at least one trial, not {self.size}")


@dataclass(frozen=True)
class Told(Generic[P]):
    """What became of a batch.

    ``failures`` and ``passes`` count; ``other`` is the number of trials that ended by another signature, or otherwise
    say nothing about the question. Their sum may differ from the batch's size (a batch may end early).
    """

    batch: Batch[P]
    failures: int
    passes: int
    other: int = 0
    skipped: str = ""
    """Why the point cannot be tested (unresolvable, build failed, import failed); empty when it can. A skipped point
    is never asked again, but can still be blamed; counts told along with it still count."""
    build_seconds: float | None = None
    """What building the point's environment took; None if nothing was built."""
    trial_seconds: float | None = None
    """What one trial took, on average; None if unknown."""

    def __post_init__(self) -> None:
        if min(self.failures, self.passes, self.other) < 0:
            raise ValueError("counts of trials are not negative")


@dataclass(frozen=True)
class Costs(Generic[P]):
    """Expected seconds. What is told later (``Told.build_seconds``, ``Told.trial_seconds``) takes their place.

    Only ratios matter to what is asked next, so any unit will do.
    """

    trial: float = 1.0
    build: Mapping[P, float] | float = 0.0
    """Of a point that has no environment yet, by point or for all. A point missing in the mapping is built already."""

    def __post_init__(self) -> None:
        builds = self.build.values() if isinstance(self.build, Mapping) else [self.build]
        if not (math.isfinite(self.trial) and self.trial > 0):
            raise ValueError(f"the cost of a trial is a positive number, not {self.trial}")
        if not all(math.isfinite(cost) and cost >= 0 for cost in builds):
            raise ValueError("the cost of a build is a number that is not negative")

    def of_build(self, point: P) -> float:
        """Seconds that building this point is expected to take, before any build was seen."""
        return self.build.get(point, 0.0) if isinstance(self.build, Mapping) else self.build


@dataclass(frozen=True)
class Result(Generic[A]):
    """What is known by now."""

    status: Status
    best: tuple[A, ...]
    """The smallest set of answers that cannot be told apart, or are needed to reach the confidence; as a rule one.
    On a line it is a range without gaps. Empty when "none of these" is the best answer."""
    probability: float
    """That one of ``best`` is to blame; of none where ``best`` is empty."""
    posterior: tuple[tuple[A, float], ...]
    """All answers with their probabilities, the most probable first; with ``none`` they sum to 1."""
    none: float
    """Probability that nothing in here is to blame."""
    rate_bad: Interval
    """Failure rate past the change, p, averaged over all hypotheses but none."""
    rate_good: Interval
    """Failure rate before the change, q."""
    trials: int
    """Counted ones: failures and passes."""
    points_built: int
    """Points that were asked and whose environment had to be built."""
    misfit: str = ""
    """With MISFIT: what contradicts the hypotheses, as a sentence."""
