"""Asking for several batches at once: how much sooner the answer comes, and how many more trials that takes.

The shipped searches in simulated worlds with a clock, with several slots and with one: in rounds, as a bisection asks,
and with each slot taking the next batch as soon as it is free. A trial takes 1 s here, and a build as many seconds as
the table says; only the ratio matters.

    python benchmarks/search_parallel.py --runs 60 --further-runs 40 --jobs 2 --write docs/search.md

Without ``--write`` the tables are printed. All that is drawn comes from ``--seed``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from tables import put

from bisect_env.search.simulated_parallel import simulate_parallel
from bisect_env.search.simulated_subsets import FactorRun, FactorWorld, simulate_factors
from bisect_env.search.simulation import LineRun, LineWorld, simulate_line
from bisect_env.verdicts.statistics import clopper_pearson

CONFIDENCE = 0.95
BUILD = 10.0
"""Of an environment, in trials, where it costs anything."""
LINES = [LineWorld(32, 0.3, q, build) for build in (BUILD, 0.0) for q in (0.0, 0.02)]
FACTORS = [FactorWorld(16, culprits, 0.5, 0.02, BUILD) for culprits in (1, 2)]
SLOTS = 8
FURTHER = (2, 4, 16)
"""Slots of the second table, along one of the lines."""
ALONE = 1000
"""Runs with one slot along a line: all go in step, which costs little."""


@dataclass(frozen=True)
class Cell:
    """A world, and how it is searched."""

    world: LineWorld | FactorWorld
    slots: int
    rounds: bool


@dataclass(frozen=True)
class Outcome:
    """Of all runs of a cell."""

    seconds: tuple[float, float]
    """Mean and 95th percentile."""
    trials: float
    environments: float
    wrong: int
    runs: int


def outcome(cell: Cell, runs: int, seed: int) -> Outcome:
    """Simulate a cell."""
    searches = simulate_parallel(
        cell.world, slots=cell.slots, rounds=cell.rounds, confidence=CONFIDENCE, batch="auto", runs=runs, seed=seed
    )
    return summed((each.run.trials, each.run.environments, each.seconds, each.run.wrong) for each in searches)


def alone(world: LineWorld | FactorWorld, runs: int, seed: int) -> Outcome:
    """With one slot: the search as it is."""
    searches: Iterable[LineRun | FactorRun] = (
        simulate_line(world, confidence=CONFIDENCE, batch="auto", runs=ALONE, seed=seed)
        if isinstance(world, LineWorld)
        else simulate_factors(world, confidence=CONFIDENCE, batch="auto", runs=runs, seed=seed)
    )
    return summed(
        (run.trials, run.environments, run.trials * world.trial + run.environments * world.build, run.wrong)
        for run in searches
    )


def summed(runs: Iterable[tuple[int, int, float, bool]]) -> Outcome:
    """Of trials, environments, seconds, and whether the answer is wrong."""
    trials, environments, seconds, wrong = (np.array(each) for each in zip(*runs, strict=True))
    spread = float(seconds.mean()), float(np.percentile(seconds, 95))
    return Outcome(spread, float(trials.mean()), float(environments.mean()), int(wrong.sum()), len(trials))


def rows(
    cells: Iterable[Cell], found: dict[Cell, Outcome], base: dict[LineWorld | FactorWorld, Outcome]
) -> Iterator[str]:
    """A line for each cell, before those of a world the one with one slot."""
    yield (
        "| world | build | slots | seconds | p95 | times as fast | trials | times as many | environments "
        "| wrong % (95 %) |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|"
    shown: set[LineWorld | FactorWorld] = set()
    for cell in cells:
        one = base[cell.world]
        if cell.world not in shown:
            shown.add(cell.world)
            yield row(cell.world, "1", one, one)
        yield row(cell.world, f"{cell.slots}, {'rounds' if cell.rounds else 'as free'}", found[cell], one)


def row(world: LineWorld | FactorWorld, slots: str, seen: Outcome, one: Outcome) -> str:
    """One line."""
    interval = clopper_pearson(seen.wrong, seen.runs)
    what = f"{world.candidates} versions" if isinstance(world, LineWorld) else f"{world.culprits} of {world.factors}"
    return (
        f"| {what}, p {world.fail_rate:g}, q {world.false_rate:g} | {world.build:g} | {slots} | {seen.seconds[0]:.1f} "
        f"| {seen.seconds[1]:.0f} | {one.seconds[0] / seen.seconds[0]:.2f} | {seen.trials:.1f} "
        f"| {seen.trials / one.trials:.2f} | {seen.environments:.1f} "
        f"| {100 * seen.wrong / seen.runs:.1f} ({100 * interval.low:.1f}-{100 * interval.high:.1f}) |"
    )


def main() -> None:
    """Make the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=60, help="a line of the first table along versions")
    parser.add_argument("--further-runs", type=int, default=40, help="a line of the others")
    parser.add_argument("--seed", type=int, default=31)
    parser.add_argument("--jobs", type=int, default=1, help="lines at a time")
    parser.add_argument("--write", type=Path, help="document whose tables are replaced")
    arguments = parser.parse_args()
    first = [Cell(world, SLOTS, rounds) for world in LINES for rounds in (True, False)]
    more = [Cell(LINES[1], slots, True) for slots in FURTHER]
    more += [Cell(world, SLOTS, rounds) for world in FACTORS for rounds in (True, False)]
    worlds: list[LineWorld | FactorWorld] = [*LINES, *FACTORS]
    with ProcessPoolExecutor(arguments.jobs) as pool:
        slow = pool.map(partial(outcome, runs=arguments.runs, seed=arguments.seed), first)
        further = pool.map(partial(outcome, runs=arguments.further_runs, seed=arguments.seed), more)
        singles = pool.map(partial(alone, runs=arguments.further_runs, seed=arguments.seed), worlds)
        found = dict(zip([*first, *more], [*slow, *further], strict=True))
        base = dict(zip(worlds, singles, strict=True))
    lines = [
        *("### Eight batches at a time along versions", ""),
        f"{arguments.runs} runs a line, {ALONE} with one slot; the intervals are exact (95 %).",
        *("", *rows(first, found, base)),
        *("", "### Other numbers of batches, and factors", ""),
        f"{arguments.further_runs} runs a line, {ALONE} along versions with one slot.",
        *("", *rows(more, found, base)),
    ]
    put(lines, arguments.write, __file__)


if __name__ == "__main__":
    main()
