"""A simulated world of factors for the search that is shipped: how many trials it takes, how often it is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from bisect_env.search.records import Costs, Status, Told
from bisect_env.search.subsets import Answer, Point, Subsets

MOST_TRIALS = 20_000
"""A run that is not decided by then counts as undecided."""


@dataclass(frozen=True)
class FactorWorld:
    """What is true of every run; which factors are to blame is drawn anew for each.

    Attributes:
        factors: how many there are.
        culprits: how many of them must be at their bad level together: 1 or 2.
        fail_rate: of trials where all culprits are at bad.
        false_rate: of all other trials.
        build: seconds that each environment takes to build, the first time.
        trial: seconds a trial takes.
    """

    factors: int
    culprits: int
    fail_rate: float
    false_rate: float
    build: float
    trial: float


@dataclass(frozen=True)
class FactorRun:
    """How one search ended.

    Attributes:
        truth: the factors that are to blame.
        answer: the ones that the search named; None where it was undecided.
        stated: the probability it gave them.
        status: how the search ended; SEARCHING where it was cut off.
        trials: that were run.
        environments: that were built.
    """

    truth: Answer
    answer: tuple[Answer, ...] | None
    stated: float
    status: Status
    trials: int
    environments: int

    @property
    def wrong(self) -> bool:
        """Whether the answer leaves the truth out."""
        return self.answer is not None and self.truth not in self.answer


def run(world: FactorWorld, confidence: float, batch: int | Literal["auto"], seed: int) -> FactorRun:
    """One search from nothing known, in a world drawn from the seed."""
    random = np.random.default_rng([seed, world.factors, world.culprits])
    truth = tuple(sorted(int(factor) for factor in random.choice(world.factors, world.culprits, replace=False)))
    search = Subsets(
        world.factors, confidence=confidence, seed=seed, costs=Costs(world.trial, world.build), batch=batch
    )
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
