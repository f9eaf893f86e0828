"""How many trials and environments the search among factors takes, how often it is wrong, and what it states.

Simulated: the culprits are known, the rates are not told to the search. Each cell is so many searches from nothing
known at 0.95, builds costing as much as BUILD trials. The first table has the cells; the second one is the calibration:
of all answers at several confidences, grouped by the probability stated for them, the share that was right. The cells
with rates in HELD_OUT were not looked at while the priors were chosen.

    python benchmarks/search_subsets.py --runs 2000 --markdown docs/results/search-subsets.md
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from bisect_env.cli.simulate import one_at_a_time
from bisect_env.search.simulated_subsets import FactorRun, FactorWorld, simulate_factors
from bisect_env.verdicts.statistics import clopper_pearson

BUILD = 1.0
SEEN = (0.9, 0.5, 0.3), (0.0, 0.02)
HELD_OUT = (0.7, 0.2), (0.005, 0.05)
CONFIDENCES = (0.6, 0.8, 0.9, 0.95, 0.99)
EDGES = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 1.0)


def worlds() -> Iterator[FactorWorld]:
    """One and two culprits of 16, then of 60."""
    for culprits in (1, 2):
        for rates in (SEEN, HELD_OUT):
            for fail, false in itertools.product(*rates):
                yield FactorWorld(16, culprits, fail, false, BUILD)
    for culprits in (1, 2):
        yield FactorWorld(60, culprits, 0.5, 0.0, BUILD)


def cells(runs: int, seed: int) -> Iterator[str]:
    """Rows of the first table, each as soon as it is known. Those of 60 factors have a tenth of the runs."""
    yield from heading("factors culprits p q runs trials at-most environments wrong interval undecided")
    for world in worlds():
        count = runs if world.factors <= 16 else max(runs // 10, 1)
        done = list(simulate_factors(world, confidence=0.95, batch="auto", runs=count, seed=seed))
        found = one_at_a_time(done, world.build, world.trial)
        yield (
            f"| {world.factors} | {world.culprits} | {world.fail_rate:g} | {world.false_rate:g} | {count} "
            f"| {found.mean_trials:.1f} | {found.p95_trials:.0f} | {found.mean_environments:.1f} | {found.wrong:.2%} "
            f"| {found.wrong_low:.2%} to {found.wrong_high:.2%} | {found.undecided:.2%} |"
        )


def calibration(runs: int, seed: int) -> Iterator[str]:
    """Stated against true probability, over answers at several confidences in worlds of 16 factors."""
    chosen = [FactorWorld(16, culprits, fail, 0.01, BUILD) for culprits in (1, 2) for fail in (0.7, 0.4)]
    answers = [
        run
        for confidence, world in itertools.product(CONFIDENCES, chosen)
        for run in simulate_factors(world, confidence=confidence, batch="auto", runs=runs, seed=seed)
        if run.answer is not None
    ]
    yield from curve(answers)


def curve(answers: Iterable[FactorRun]) -> Iterator[str]:
    """Rows of the second table; the bar has one sign for each 2 %, the mark is where the stated one is."""
    yield from heading("stated answers on-average right interval from-50-%-to-100-%:-right-(bar)-and-stated-(mark)")
    stated = np.array([run.stated for run in answers])
    right = np.array([not run.wrong for run in answers])
    for low, high in itertools.pairwise(EDGES):
        inside = (stated >= low) & ((stated < high) | (high == 1))
        count, good = int(inside.sum()), int(right[inside].sum())
        if not count:
            continue
        interval = clopper_pearson(good, count)
        mean, share = float(stated[inside].mean()), good / count
        yield (
            f"| {low:g} to {high:g} | {count} | {mean:.1%} | {share:.1%} | {interval.low:.1%} to {interval.high:.1%} "
            f"| `{bar(share, mean)}` |"
        )


def heading(names: str) -> tuple[str, str]:
    """Of a table: names with spaces between, hyphens for the spaces in them."""
    columns = [name.replace("-", " ") for name in names.split()]
    return f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"


def bar(share: float, mark: float) -> str:
    """A share from 50 % on as text, with a mark at another one."""
    signs = ["#" if 0.5 + place / 50 < share else "." for place in range(25)]
    signs[min(int((mark - 0.5) * 50), 24)] = "|"
    return "".join(signs)


def main() -> None:
    """Print both tables, and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200, help="searches a cell (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--markdown", type=Path, help="write the tables to this file")
    chosen = parser.parse_args()
    began, lines = time.monotonic(), []
    parts = (
        ("Cells", cells(chosen.runs, chosen.seed)),
        ("Calibration", calibration(max(chosen.runs // 4, 1), chosen.seed)),
    )
    for title, rows in parts:
        for line in ("", f"## {title}", ""):
            lines.append(line)
            print(line)
        for line in rows:
            lines.append(line)
            print(line, flush=True)
    print(f"\n{time.monotonic() - began:.0f} s")
    if chosen.markdown:
        command = f"python benchmarks/search_subsets.py --runs {chosen.runs} --seed {chosen.seed}"
        head = f"# Search among factors, simulated\n\n`{command}`\n\n{__doc__}"
        chosen.markdown.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
