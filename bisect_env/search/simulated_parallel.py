"""Searches that ask for several batches at once, in a simulated world with a clock: what that gains, and what it costs.

The asks are those of the shipped searches, each given the batches in flight. A batch runs in one slot: the build of its
environment first, where there is none yet, then its trials one after the other. An environment is built once, and what
else asks for it waits for that. Two ways to keep the slots busy:

- *as they are free*: a slot takes the next batch as soon as its last one has ended, and batches are told in the order
  in which they end. What still runs when the answer is given is stopped; the trials that it has begun are counted.
- *in rounds*: as many batches as there are slots are asked for, their environments are built side by side, their trials
  are shared out to the slots, and all are told together, in the order in which they were asked for.

With one slot both are the search as it is without, trial for trial.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any, Literal

import numpy as np

from bisect_env.search.line import Line
from bisect_env.search.records import Batch, Costs, Result, Status, Told
from bisect_env.search.simulated_subsets import FactorRun, FactorWorld
from bisect_env.search.simulation import MOST_TRIALS, LineRun, LineWorld
from bisect_env.search.subsets import Subsets

Search = Line | Subsets
DECIDED = (Status.CONFIDENT, Status.MISFIT)


@dataclass(frozen=True)
class Timed:
    """A search that ended, and the seconds that it took."""

    run: LineRun | FactorRun
    seconds: float


@dataclass(frozen=True)
class _Cost:
    trials: int
    environments: int
    seconds: float


@dataclass
class _World:
    """What one run meets."""

    build: float
    trial: float
    rate: Callable[[Any], float]
    """Of failures at a point."""
    random: np.random.Generator

    def told(self, batch: Batch[Any], new: bool) -> Told[Any]:
        """What the batch will show."""
        failed = int(self.random.binomial(batch.size, self.rate(batch.point)))
        build = self.build if new else None
        return Told(batch, failed, batch.size - failed, build_seconds=build, trial_seconds=self.trial)


def simulate_parallel(
    world: LineWorld | FactorWorld,
    *,
    slots: int,
    rounds: bool,
    confidence: float,
    batch: int | Literal["auto"],
    runs: int,
    seed: int,
) -> Iterator[Timed]:
    """So many searches from nothing known, each in a world of its own drawn from the seed, one after the other.

    Args:
        world: what is true of every run, and the seconds of builds and trials.
        slots: batches at a time.
        rounds: whether all slots wait for each other; else each takes the next batch as soon as it is free.
        confidence: at which an answer is given.
        batch: trials a batch; "auto" for the most information per second.
        runs: how many.
        seed: of all of them; run i is the same whatever the number of runs.
    """
    run_all = _in_rounds if rounds else _as_free
    for run in range(runs):
        random = np.random.default_rng([seed, run])
        if isinstance(world, LineWorld):
            yield _line(world, run_all, slots, confidence, batch, random)
        else:
            yield _factors(world, run_all, slots, confidence, batch, random)


_Runner = Callable[[Search, "_World", int], _Cost]


def _line(
    world: LineWorld,
    run_all: _Runner,
    slots: int,
    confidence: float,
    batch: int | Literal["auto"],
    random: np.random.Generator,
) -> Timed:
    truth = int(random.integers(1, world.candidates + 1))
    costs: Costs[Any] = Costs(world.trial, world.build)
    search = Line(world.candidates, confidence=confidence, costs=costs, batch=batch)
    own = _World(
        world.build, world.trial, lambda point: world.fail_rate if point >= truth else world.false_rate, random
    )
    cost = run_all(search, own, slots)
    result = search.result()
    answer = max(range(world.candidates + 1), key=_weights(result).__getitem__)
    confident = result.status is Status.CONFIDENT
    return Timed(
        LineRun(
            truth, answer if confident else None, result.probability, result.status, cost.trials, cost.environments
        ),
        cost.seconds,
    )


def _weights(result: Result[int]) -> dict[int, float]:
    return {0: result.none, **dict(result.posterior)}


def _factors(
    world: FactorWorld,
    run_all: _Runner,
    slots: int,
    confidence: float,
    batch: int | Literal["auto"],
    random: np.random.Generator,
) -> Timed:
    truth = tuple(sorted(int(factor) for factor in random.choice(world.factors, world.culprits, replace=False)))
    costs: Costs[Any] = Costs(world.trial, world.build)
    search = Subsets(world.factors, confidence=confidence, seed=int(random.integers(1 << 32)), costs=costs, batch=batch)
    own = _World(
        world.build, world.trial, lambda point: world.fail_rate if point >= set(truth) else world.false_rate, random
    )
    cost = run_all(search, own, slots)
    result = search.result()
    answer = result.best if result.status is Status.CONFIDENT else None
    return Timed(
        FactorRun(truth, answer, result.probability, result.status, cost.trials, cost.environments), cost.seconds
    )


def _as_free(search: Search, world: _World, slots: int) -> _Cost:
    now, trials = 0.0, 0
    stands: dict[Any, float] = {}
    """When each environment is built."""
    flying: list[tuple[float, int, float, Told[Any]]] = []
    """End, id, begin of the first trial, outcome; the next to end first."""
    while True:
        while len(flying) < slots and trials < MOST_TRIALS and (batch := search.ask(busy=len(flying))) is not None:
            new = batch.point not in stands
            begin = max(now, stands.setdefault(batch.point, now + world.build))
            heapq.heappush(flying, (begin + batch.size * world.trial, batch.id, begin, world.told(batch, new)))
        if not flying:
            break
        now, _, _, told = heapq.heappop(flying)
        search.tell(told)
        trials += told.batch.size
        if search.status in DECIDED:
            break
    begun = sum(min(told.batch.size, max(0, ceil((now - begin) / world.trial))) for _, _, begin, told in flying)
    return _Cost(trials + begun, len(stands), now)


def _in_rounds(search: Search, world: _World, slots: int) -> _Cost:
    seconds, trials = 0.0, 0
    stands: set[Any] = set()
    while trials < MOST_TRIALS:
        asked: list[Batch[Any]] = []
        while len(asked) < slots and (batch := search.ask(busy=len(asked))) is not None:
            asked.append(batch)
        if not asked:
            break
        built = {batch.point for batch in asked} - stands
        size = sum(batch.size for batch in asked)
        seconds += (world.build if built else 0.0) + ceil(size / slots) * world.trial
        trials += size
        for batch in asked:
            new = batch.point not in stands
            stands.add(batch.point)
            search.tell(world.told(batch, new))
    return _Cost(trials, len(stands), seconds)
