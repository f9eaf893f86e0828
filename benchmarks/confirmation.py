"""The confirmation: how often it misses a culprit, how often it confirms an innocent, and how many trials it takes.

It runs what a bisection runs (``bisect_env.bisection.confirming``) on trials that are drawn, four environments in turn:

- a **culprit** fails with rate p at bad and with q at good, whatever the rest is;
- one that **needs the rest** does so only where everything else is at bad, and beside the good side fails with q;
- an **innocent** makes no difference: where everything else is at bad, the true culprit included, both of its arms fail
  with p, beside the good side both with q.

The rate by which the trials are planned is not p itself: it is estimated from as many trials as give 8 failures.
``--write docs/search.md`` replaces the table there; without it, it is printed. All that is drawn comes from ``--seed``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from pathlib import Path

import numpy as np
from tables import put

from bisect_env.bisection.confirming import Planned, conclude, looks
from bisect_env.bisection.records import BAD, GOOD
from bisect_env.search.records import Tally
from bisect_env.verdicts.statistics import clopper_pearson, fisher_greater

CONFIDENCE = 0.95
RATES = [(p, q) for p in (0.9, 0.5, 0.3, 0.2, 0.1, 0.05) for q in (0.0, 0.02)]
ARMS = tuple(
    Planned(f"{level} beside {side}", side, (("culprit", level), ("rest", side)), level == BAD)
    for side in (BAD, GOOD)
    for level in (BAD, GOOD)
)
UNBOUNDED = 10**9

Counts = tuple[int, ...]
"""Failures of each arm, of equally many trials."""


@dataclass(frozen=True)
class Rule:
    """When to look, by the estimated rate, and whether what is seen there is enough, of so many looks."""

    looks: Callable[[float], tuple[int, ...]]
    enough: Callable[[Counts, int, int], bool]


def together(counts: Counts, size: int, times: int) -> bool:
    """What ships: both directions in one exact test."""
    tallies = {arm.point: Tally(k, size - k) for arm, k in zip(ARMS, counts, strict=True)}
    found = conclude(ARMS, tallies, {}, CONFIDENCE, times)
    return found is not None and found.confirmed


def apart(counts: Counts, size: int, times: int) -> bool:
    """To compare with: the better direction by itself, at half of the risk."""
    limit = (1 - CONFIDENCE) / times / 2
    return any(fisher_greater(bad, size, good, size) <= limit for bad, good in (counts[:2], counts[2:]))


SHIPPED = Rule(lambda rate: looks(rate, 4, 2, None), together)
ALONE = Rule(lambda rate: looks(rate, 2, 1, None, UNBOUNDED), apart)
FREE = Rule(lambda rate: looks(rate, 4, 2, None, UNBOUNDED), together)


def share(rule: Rule, rates: tuple[float, ...], p: float, runs: int, seed: int) -> tuple[int, float]:
    """How many runs confirm, and the mean of their trials; ``rates`` are those of the four arms."""
    random = np.random.default_rng(seed)
    trials = ceil(8 / p)
    confirmed, spent = 0, 0
    for _ in range(runs):
        estimate = (random.binomial(trials, p) + 1) / (trials + 2)
        counts = np.zeros(4, int)
        sizes = rule.looks(float(estimate))
        for before, size in pairwise((0, *sizes)):
            counts += random.binomial(size - before, rates)
            spent += 4 * (size - before)
            if rule.enough(tuple(map(int, counts)), size, len(sizes)):
                confirmed += 1
                break
    return confirmed, spent / runs


def table(runs: int, seed: int) -> Iterator[str]:
    """A row for each pair of rates."""
    yield "### Confirmation: missed culprits, confirmed innocents, trials"
    yield ""
    yield f"{runs} runs a cell, all four environments counted; the intervals are exact (95 %)."
    yield ""
    heads = (
        "p", "q", "culprit missed %", "trials", "needs the rest: missed %", "innocent confirmed %", "its trials",
        "each direction by itself: missed %", "trials", "without a limit: missed %", "trials",
    )  # fmt: skip
    yield f"| {' | '.join(heads)} |"
    yield "|" + "---|" * len(heads)
    for p, q in RATES:
        culprit, needy, innocent = (p, q, p, q), (p, q, q, q), (p, p, q, q)
        cells = [f"{p:g}", f"{q:g}"]
        for rule, rates, kind in (
            (SHIPPED, culprit, "missed"),
            (SHIPPED, needy, "missed alone"),
            (SHIPPED, innocent, "confirmed"),
            (ALONE, culprit, "missed"),
            (FREE, culprit, "missed"),
        ):
            confirmed, trials = share(rule, rates, p, runs, seed)
            shown = clopper_pearson(confirmed if kind == "confirmed" else runs - confirmed, runs)
            cells.append(f"{100 * shown.k / runs:.1f} ({100 * shown.low:.1f}-{100 * shown.high:.1f})")
            if kind != "missed alone":
                cells.append(f"{trials:.0f}")
        yield f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table, or put it into a document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000, help="of each cell")
    parser.add_argument("--seed", type=int, default=4)
    parser.add_argument("--write", type=Path, help="document with the lines between which the table goes")
    arguments = parser.parse_args()
    lines = list(table(arguments.runs, arguments.seed))
    put(lines, arguments.write, __file__)


if __name__ == "__main__":
    main()
