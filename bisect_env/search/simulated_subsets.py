"""A simulated world of factors for the search that is shipped: how many trials it takes, how often it is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bisect_env.search.records import Costs, Status, Told
from bisect_env.search.subsets import Answer, Point, Subsets

MOST_TRIALS = 20_000
"""A run that is not decided by then counts as undecided."""


@dataclass(frozen=True)
class FactorWorld:
    """What is true of every run; which factors are to blame is drawn anew for each."""

    factors: int
    culprits: int
    """How many of them must be at their bad level together: 1 or 2."""
    fail_rate: float
    """Of trials where all culprits are at bad."""
    false_rate: float
    """Of all other trials."""
    build: float = 0.0
    """Seconds that each environment takes to build, the first time."""
    trial: float = 1.0
    """Seconds a trial takes."""


@dataclass(frozen=True)
class FactorRun:
    """How one search ended."""

    truth: Answer
    answer: tuple[Answer, ...] | None
    """The answers that it named, none for "none of these"; None where it was undecided."""
    stated: float
    """The probability that it gave its answer."""
    status: Status
    """How it ended; SEARCHING where it was cut off."""
    trials: int
    environments: int

    @property
    def wrong(self) -> bool:
        """Whether the answer leaves the truth out."""
        return self.answer is not None and self.truth not in self.answer


def simulate_factors(
    world: FactorWorld, *, confidence: float, batch: int | Literal["auto"], runs: int, seed: int
) -> Iterator[FactorRun]:
    """So many searches from nothing known, each in a world of its own drawn from the seed, one after the other.

    Args:
        world: what is true of every run.
        confidence: at which an answer is given.
        batch: trials a batch; "auto" for the most information per second.
        runs: how many.
        seed: of all of them; run i is the same whatever the number of runs.
    """
    for run in range(runs):
        yield _one(world, confidence, batch, seed, run)


def _one(world: FactorWorld, confidence: float, batch: int | Literal["auto"], seed: int, run: int) -> FactorRun:
    random = np.random.default_rng([seed, run])
    truth = tuple(sorted(int(factor) for factor in random.choice(world.factors, world.culprits, replace=False)))
    costs: Costs[Point] = Costs(world.trial, world.build)
    search = Subsets(world.factors, confidence=confidence, seed=int(random.integers(1 << 32)), costs=costs, batch=batch)
    built: set[Point] = set()
    trials = 0
    while trials < MOST_TRIALS and (asked := search.ask()) is not None:
        rate = world.fail_rate if asked.point.issuperset(truth) else world.false_rate
        failures = int(random.binomial(asked.size, rate))
        build = None if asked.point in built else world.build
        search.tell(Told(asked, failures, asked.size - failures, build_seconds=build, trial_seconds=world.trial))
        built.add(asked.point)
        trials += asked.size
    result = search.result()
    answer = result.best if result.status is Status.CONFIDENT else None
    return FactorRun(truth, answer, result.probability, result.status, trials, len(built))
