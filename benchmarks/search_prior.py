"""Priors from reading, simulated: what a right one saves along a line, what a misleading one costs, and who is wrong.

Some of 32 candidates are marked as changed and weigh more; the culprit is among them in every run ("right"), or in none
("misleading"). Both are held against the same search without a prior in the same runs: the culprits are the same. The
first table has every share and weight; the second one a line for each pair of rates, at the weight that ships and the
shares at which it is used.

    python benchmarks/search_prior.py --runs 100 --detailed-runs 2000 --jobs 2 --write docs/search.md

Without ``--write`` the tables are printed. All that is drawn comes from ``--seed``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from tables import put

from bisect_env.bisection.reading import MOST_MARKED, weight
from bisect_env.search.simulation import LineRun, LineWorld, SimulatedReading, simulate_line
from bisect_env.verdicts.statistics import clopper_pearson

CONFIDENCE = 0.95
CANDIDATES = 32
"""In the first table; in the second one there are fewer and more as well."""
RATES = [(p, q) for q in (0.0, 0.02) for p in (0.9, 0.5, 0.3, 0.1)]
MARKED = (2, 3, 5, 8, 16)
WEIGHTS = (2.0, 4.0, 8.0, 12.0, 30.0)
SHIPPED = ((8, 1), (16, 2), (24, 4), (32, 2), (32, 5))
"""Candidates and how many of them are marked: the most at which a bisection uses what was read, and fewer."""


@dataclass(frozen=True)
class Cell:
    """One pair of rates with some of the candidates marked."""

    p: float
    q: float
    candidates: int
    marked: int
    weight: float


@dataclass(frozen=True)
class Outcome:
    """Of a cell."""

    without: float
    """Mean trials without a prior."""
    right: float
    """With one that marks the culprit."""
    misleading: float
    """With one that marks others."""
    wrong: tuple[int, int, int]
    """Wrong answers of each."""
    runs: int

    @property
    def saved(self) -> float:
        """Share of the trials that a right prior saves."""
        return 1 - self.right / self.without

    @property
    def cost(self) -> float:
        """Share of trials more that a misleading one costs."""
        return self.misleading / self.without - 1


def outcomes(
    runs: int, seed: int, lines: Sequence[tuple[int, int, float]], rates: tuple[float, float]
) -> dict[Cell, Outcome]:
    """Of all cells of one pair of rates; ``lines`` are numbers of candidates, of those that are marked, and weights."""
    p, q = rates
    found = {}
    for candidates in dict.fromkeys(each for each, _, _ in lines):
        world = LineWorld(candidates, p, q)
        simulate = partial(simulate_line, world, confidence=CONFIDENCE, batch=1, runs=runs, seed=seed)
        plain = simulate()
        for marked, heavy in ((marked, heavy) for each, marked, heavy in lines if each == candidates):
            right, misleading = (simulate(reading=SimulatedReading(each, marked, heavy)) for each in (True, False))
            means = [float(np.mean([run.trials for run in done])) for done in (plain, right, misleading)]
            wrong = (_wrong(plain), _wrong(right), _wrong(misleading))
            found[Cell(p, q, candidates, marked, heavy)] = Outcome(means[0], means[1], means[2], wrong, runs)
    return found


def _wrong(done: Iterable[LineRun]) -> int:
    return sum(run.wrong for run in done)


def by_share_and_weight(found: dict[Cell, Outcome], runs: int) -> Iterator[str]:
    """On average over all pairs of rates, with the worst of them: the search knows none of them."""
    yield (
        f"{CANDIDATES} candidates, {runs} runs a cell of p 0.9, 0.5, 0.3, 0.1 and q 0, 0.02; on average over these "
        "eight, and in brackets the worst of them."
    )
    yield ""
    yield "| marked | weight | right: saved % | misleading: more % | misleading: wrong % |"
    yield "|---|---|---|---|---|"
    for marked, heavy in dict.fromkeys((cell.marked, cell.weight) for cell in found):
        own = [outcome for cell, outcome in found.items() if (cell.marked, cell.weight) == (marked, heavy)]
        saved, cost = [each.saved for each in own], [each.cost for each in own]
        wrong = [100 * each.wrong[2] / each.runs for each in own]
        yield (
            f"| {marked} of {CANDIDATES} | {heavy:g} | {_with_worst(saved, min(saved))} "
            f"| {_with_worst(cost, max(cost))} | {np.mean(wrong):.1f} ({max(wrong):.1f}) |"
        )


def _with_worst(shares: Sequence[float], worst: float) -> str:
    return f"{100 * np.mean(shares):.0f} ({100 * worst:.0f})"


def by_rates(found: dict[Cell, Outcome], runs: int) -> Iterator[str]:
    """Every pair of rates, with the shares that were wrong and their exact 95 % intervals."""
    yield f"{runs} runs a cell; the intervals are exact (95 %)."
    yield ""
    yield (
        "| marked | weight | p | q | trials without | right | saved % | misleading | more % | wrong % without "
        "| wrong % right | wrong % misleading |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|"
    for cell, outcome in sorted(
        found.items(), key=lambda each: (each[0].candidates, each[0].marked, each[0].q, -each[0].p)
    ):
        shares = " | ".join(_share(count, outcome.runs) for count in outcome.wrong)
        yield (
            f"| {cell.marked} of {cell.candidates} | {cell.weight:g} | {cell.p:g} | {cell.q:g} "
            f"| {outcome.without:.1f} | {outcome.right:.1f} | {100 * outcome.saved:.0f} "
            f"| {outcome.misleading:.1f} | {100 * outcome.cost:.0f} | {shares} |"
        )


def _share(count: int, runs: int) -> str:
    interval = clopper_pearson(count, runs)
    return f"{100 * count / runs:.1f} ({100 * interval.low:.1f}-{100 * interval.high:.1f})"


def main() -> None:
    """Make the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100, help="a cell of the first table")
    parser.add_argument("--detailed-runs", type=int, default=2000, help="a cell of the second table")
    parser.add_argument("--seed", type=int, default=22)
    parser.add_argument("--jobs", type=int, default=1, help="pairs of rates at a time")
    parser.add_argument("--write", type=Path, help="document whose tables are replaced")
    arguments = parser.parse_args()
    assert all(marked <= MOST_MARKED * candidates for candidates, marked in SHIPPED)
    # Low rates take longest: they come first.
    with ProcessPoolExecutor(arguments.jobs) as pool:
        # A seed of its own: the weights were chosen on others, and on that of the first table.
        shipping = [(candidates, marked, weight(candidates)) for candidates, marked in SHIPPED]
        shipped = partial(outcomes, arguments.detailed_runs, arguments.seed + 1, shipping)
        detailed = pool.map(shipped, RATES[::-1])
        every = [(CANDIDATES, marked, heavy) for marked in MARKED for heavy in WEIGHTS]
        choosing = pool.map(partial(outcomes, arguments.runs, arguments.seed, every), RATES[::-1])
        lines = [
            *("### Priors from reading: by share and weight", ""),
            *by_share_and_weight({cell: made for each in choosing for cell, made in each.items()}, arguments.runs),
            *("", "### Priors from reading: as it ships", ""),
            *by_rates({cell: made for each in detailed for cell, made in each.items()}, arguments.detailed_runs),
        ]
    put(lines, arguments.write, __file__)


if __name__ == "__main__":
    main()
