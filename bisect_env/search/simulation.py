"""A simulated world of versions for the search that is shipped: how many trials it takes, how often it is wrong.

All runs go in step, which is many times faster than one after the other. They use the very functions that
:class:`~bisect_env.search.line.Line` decides with, on arrays with one row a run; that both take the same trials and
come to the same answers is tested.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bisect_env.search.along import (
    LOOK_AGAIN,
    NEGLIGIBLE,
    SIZES,
    choose,
    most_probable,
    several,
    status,
)
from bisect_env.search.change_points import ChangePoints
from bisect_env.search.rates import Floats
from bisect_env.search.records import Status
from bisect_env.search.segments import log_several_changes, worst_explained

MOST_TRIALS = 20_000
"""A run that is not decided by then counts as undecided."""


@dataclass(frozen=True)
class LineWorld:
    """What is true of every run; which version is to blame is drawn anew for each."""

    candidates: int
    fail_rate: float
    """Of trials from the culprit on."""
    false_rate: float
    """Of trials before it."""
    build: float = 0.0
    """Seconds that each environment takes to build, the first time."""
    trial: float = 1.0
    """Seconds a trial takes."""


@dataclass(frozen=True)
class SimulatedReading:
    """What reading says beforehand in every run: some candidates, drawn anew for each, are marked and weigh more."""

    right: bool
    """Whether the culprit is among those that are marked; if not, it never is."""
    marked: int
    """Of the candidates."""
    weight: float
    """Of a marked candidate; of the others it is 1."""


@dataclass(frozen=True)
class LineRun:
    """How one search ended."""

    truth: int
    answer: int | None
    """The change that it named, 0 for "none of these"; None where it was undecided."""
    stated: float
    """The probability that it gave its answer."""
    status: Status
    """How it ended; SEARCHING where it was cut off."""
    trials: int
    environments: int

    @property
    def wrong(self) -> bool:
        """Whether it named another one."""
        return self.answer is not None and self.answer != self.truth


class _Runs:
    """All runs' state, one row each; rows of runs that ended stay as they were."""

    def __init__(self, world: LineWorld, runs: int, seed: int, reading: SimulatedReading | None) -> None:
        self.world = world
        self.randoms = [np.random.default_rng([seed, run]) for run in range(runs)]
        self.truth = np.array([int(random.integers(1, world.candidates + 1)) for random in self.randoms])
        self.prior: Floats | None = None
        """Weights of the candidates: (runs, candidates)."""
        if reading is not None:
            marked = [marks(reading, world.candidates, truth, [seed, run]) for run, truth in enumerate(self.truth)]
            self.prior = np.where(marked, reading.weight, 1.0)
        self.failures = np.zeros((runs, world.candidates + 1), dtype=np.int64)
        self.passes = self.failures.copy()
        self.asked = np.zeros(self.failures.shape, dtype=bool)
        self.looked_at = np.zeros(runs)
        self.several = np.zeros(runs)

    def test(self, run: np.int64, position: int, size: int) -> None:
        """Run a batch."""
        rate = self.world.fail_rate if position >= self.truth[run] else self.world.false_rate
        failed = int(self.randoms[run].binomial(size, rate))
        self.failures[run, position] += failed
        self.passes[run, position] += size - failed
        self.asked[run, position] = True


def marks(reading: SimulatedReading, candidates: int, truth: int, seed: Sequence[int]) -> NDArray[np.bool_]:
    """Which candidates 1..n are marked: (n,). Drawn beside what is drawn for the trials, which stay the same.

    Raises:
        ValueError: so many cannot be marked.
    """
    others = reading.marked - reading.right
    if not 0 <= others < candidates or not reading.marked:
        raise ValueError(
            f"a {'right' if reading.right else 'misleading'} reading marks at least one of "
            f"{candidates} candidates, and not the culprit where it misleads: not {reading.marked}"
        )
    innocent = np.delete(np.arange(candidates), truth - 1)
    drawn = np.random.default_rng([*seed, 1]).choice(innocent, others, replace=False)
    found = np.zeros(candidates, dtype=bool)
    found[drawn] = True
    found[truth - 1] = reading.right
    return found


def simulate_line(
    world: LineWorld,
    *,
    confidence: float,
    batch: int | Literal["auto"],
    runs: int,
    seed: int,
    reading: SimulatedReading | None = None,
) -> list[LineRun]:
    """So many searches from nothing known, each in a world of its own drawn from the seed.

    Args:
        world: what is true of every run.
        confidence: at which an answer is given.
        batch: trials a batch; "auto" for the most information per second.
        runs: how many.
        seed: of all of them; run i is the same whatever the number of runs.
        reading: what is read beforehand; None: all candidates weigh alike.

    Raises:
        ValueError: the reading marks more candidates than there are.
    """
    state = _Runs(world, runs, seed, reading)
    done: list[LineRun | None] = [None] * runs
    going = np.arange(runs)
    sizes = SIZES if batch == "auto" else (batch,)
    while len(going):
        prior = None if state.prior is None else state.prior[going]
        points = ChangePoints(state.failures[going], state.passes[going], prior)
        askable = np.ones(points.weights.shape, dtype=bool)
        probable = most_probable(points.weights, askable)
        trials = state.failures[going].sum(axis=-1) + state.passes[going].sum(axis=-1)
        look = (trials >= LOOK_AGAIN * state.looked_at[going]) | (probable >= confidence)
        for run, tried, one in zip(going[look], trials[look], points.log_evidence[look], strict=True):
            if tried:
                state.looked_at[run] = tried
                own = None if state.prior is None else state.prior[run]
                others = log_several_changes(state.failures[run], state.passes[run], own)
                state.several[run] = several(others, float(one))
        build = np.where(state.asked[going], 0.0, world.build)
        choice = choose(points.information, askable, build, np.full(len(going), world.trial), sizes)
        kept = []
        for row, run in enumerate(going):
            standing = status(float(probable[row]), float(state.several[run]), confidence)
            position, size = int(choice.position[row]), int(choice.size[row])
            if standing is Status.SEARCHING and probable[row] >= confidence:
                change = int(points.weights[row].argmax())
                doubtful = worst_explained(state.failures[run], state.passes[run], change, askable[row])
                assert doubtful is not None
                position, size = doubtful, sizes[0]
            elif standing is Status.SEARCHING and choice.information[row] < NEGLIGIBLE:
                standing = Status.EXHAUSTED
            if standing is Status.SEARCHING and trials[row] < MOST_TRIALS:
                state.test(run, position, size)
                kept.append(run)
                continue
            done[run] = LineRun(
                truth=int(state.truth[run]),
                answer=int(points.weights[row].argmax()) if standing is Status.CONFIDENT else None,
                stated=float(probable[row]) * (1 - float(state.several[run])),
                status=standing,
                trials=int(trials[row]),
                environments=int(state.asked[run].sum()),
            )
        going = np.array(kept, dtype=np.int64)
    return [run for run in done if run is not None]
