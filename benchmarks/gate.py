"""How sure a gate is: simulated gates of a known truth, and the exact chances of its boundaries.

Run with the package's own environment, and let it replace the tables in the document:

    python benchmarks/gate.py --runs 1000 --write docs/gate.md

Without ``--write`` the tables are printed. All that is drawn comes from ``--seed``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from tables import put

from bisect_env.gate import margin, races
from bisect_env.gate.records import Decision, Rules
from bisect_env.gate.simulation import World, simulate
from bisect_env.verdicts.statistics import clopper_pearson

MARGIN = Rules(no_worse=0.1, trials=123)


@dataclass(frozen=True)
class Row:
    """A truth, what is asked, and what was aimed at: the least or highest percentage of an answer."""

    truth: str
    world: World
    rules: Rules = field(default_factory=Rules)
    passes_least: float | None = None
    passes_most: float | None = None
    fails_most: float | None = None


ROWS = (
    Row("unchanged", World(), passes_least=95, fails_most=5),
    Row("unchanged, each round a start of its own", World(rounds=1), passes_least=95, fails_most=5),
    Row("unchanged, starts differ by 1 %", World(start=0.01), passes_least=95, fails_most=5),
    Row("unchanged, 1 round in 20 stalls", World(stalled=0.05), passes_least=95, fails_most=5),
    Row("unchanged, noise 8 %", World(noise=0.08), fails_most=5),
    Row("races at 3 %", World(candidate_rate=0.03), fails_most=5),
    Row("races at 5 %: the limit", World(candidate_rate=0.05), passes_most=5, fails_most=5),
    Row("races at 10 %", World(candidate_rate=0.1), passes_most=5),
    Row("races at 30 %", World(candidate_rate=0.3), passes_most=5),
    Row("3 % slower: the limit", World(ratio=0.97), passes_most=5, fails_most=5),
    Row("3 % slower, each round a start of its own", World(ratio=0.97, rounds=1), passes_most=5, fails_most=5),
    Row("3 % slower, starts differ by 1 %", World(ratio=0.97, start=0.01), passes_most=5, fails_most=5),
    Row("5 % slower", World(ratio=0.95), passes_most=5),
    Row("5 % slower, each round a start of its own", World(ratio=0.95, rounds=1), passes_most=5),
    Row(
        "races at 5 % and 3 % slower: both limits", World(candidate_rate=0.05, ratio=0.97), passes_most=5, fails_most=5
    ),
    Row("`--trials 93`, races at 0.5 %", World(candidate_rate=0.005), Rules(trials=93), fails_most=5),
    Row("`--max-race-rate 0.15`, unchanged", World(), Rules(max_race_rate=0.15), passes_least=95, fails_most=5),
    Row("`--max-race-rate 0.15`, races at 15 %", World(0.15), Rules(max_race_rate=0.15), passes_most=5, fails_most=5),
    Row("`--no-worse 0.1 --trials 123`, both race at 10 %", World(0.1, 0.1), MARGIN, fails_most=5),
    Row("the same, at 20 % against 10 %: the margin", World(0.2, 0.1), MARGIN, passes_most=5, fails_most=5),
    Row("the same, at 50 % against 10 %", World(0.5, 0.1), MARGIN, passes_most=5),
)


def share(count: int, runs: int) -> str:
    """A share with its exact 95 % interval, in percent."""
    interval = clopper_pearson(count, runs)
    return f"{100 * count / runs:.1f} ({100 * interval.low:.1f}-{100 * interval.high:.1f})"


def gates(runs: int, seed: int) -> Iterator[str]:
    """Whole gates; an aim is missed where the interval of what was seen lies wholly beyond it."""
    yield f"{runs} gates a row, all questions together, 3 % noise a round and a trial unless told otherwise."
    yield ""
    yield "| truth | pass % (95 %) | fail % (95 %) | inconclusive % | trials | pairs | aim | met |"
    yield "|---|---|---|---|---|---|---|---|"
    for row in ROWS:
        print(row.truth, file=sys.stderr)
        done = list(simulate(row.world, row.rules, runs, seed))
        passes, fails = (sum(run.decision is each for run in done) for each in (Decision.PASS, Decision.FAIL))
        bounds = (("pass >=", row.passes_least), ("pass <=", row.passes_most), ("fail <=", row.fails_most))
        aims = ", ".join(f"{what} {value:g}" for what, value in bounds if value is not None)
        pass_low, pass_high = _interval(passes, runs)
        missed = (
            (row.passes_least is not None and pass_high < row.passes_least)
            or (row.passes_most is not None and pass_low > row.passes_most)
            or (row.fails_most is not None and _interval(fails, runs)[0] > row.fails_most)
        )
        yield (
            f"| {row.truth} | {share(passes, runs)} | {share(fails, runs)} "
            f"| {100 * (runs - passes - fails) / runs:.1f} | {np.mean([run.trials for run in done]):.0f} "
            f"| {np.mean([run.pairs for run in done]):.0f} | {aims} | {'no' if missed else 'yes'} |"
        )


def _interval(count: int, runs: int) -> tuple[float, float]:
    found = clopper_pearson(count, runs)
    return 100 * found.low, 100 * found.high


def boundaries() -> Iterator[str]:
    """Exact: nothing is drawn."""
    rates = (0.001, 0.01, 0.03, 0.05, 0.1, 0.2, 0.5)
    yield "Races alone, exact: a candidate of the true rate passes / fails, in percent."
    yield ""
    yield f"| trials, limit | may go wrong | {' | '.join(f'{100 * rate:g} %' for rate in rates)} |"
    yield "|---|---|" + "---|" * len(rates)
    for trials, limit in ((59, 0.05), (93, 0.05), (124, 0.05), (181, 0.05), (19, 0.15)):
        design = races.design_of(trials, limit, 0.95)
        found = [races.chance(design, rate) for rate in rates]
        cells = " | ".join(f"{100 * each.passes:.1f} / {100 * each.fails:.1f}" for each in found)
        yield f"| {trials}, {100 * limit:g} % | {design.allowed} | {cells} |"


def margins() -> Iterator[str]:
    """Exact: the highest error over 20,001 rates of the baseline."""
    yield "With a margin, exact: the highest chance of a wrong answer where the rates differ by just the margin, over"
    yield "20,001 rates of the baseline, in percent; and how often an unchanged candidate passes where both race."
    yield ""
    yield "| margin | trials of candidate, baseline | wrong pass | wrong fail | passes at 0 % | 5 % | 10 % | 30 % |"
    yield "|---|---|---|---|---|---|---|---|"
    for by, own, base in ((0.05, 59, 59), (0.05, 262, 262), (0.1, 59, 59), (0.1, 59, 200), (0.1, 123, 123)):
        design = margin.margin_design(own, base, by, 0.95)
        wrong_pass, wrong_fail = margin.errors(design, np.linspace(0, 1 - by, 20_001))
        chances = " | ".join(f"{100 * margin.chance(design, rate, rate).passes:.1f}" for rate in (0, 0.05, 0.1, 0.3))
        yield f"| {by} | {own}, {base} | {100 * wrong_pass:.2f} | {100 * wrong_fail:.2f} | {chances} |"


def main() -> None:
    """Make the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--write", type=Path, help="document whose tables are replaced")
    arguments = parser.parse_args()
    lines = [*gates(arguments.runs, arguments.seed), "", *boundaries(), "", *margins()]
    put(lines, arguments.write, __file__)


if __name__ == "__main__":
    main()
