"""The search along a line: how often it is wrong and how many trials it takes, beside git_bayesect and Bayes told p, q.

Run where git_bayesect (PyPI) can be imported, and let it replace the tables in the document:

    uv run --with git_bayesect==1.2 python benchmarks/search_line.py --runs 2000 --peer-runs 1000 --write docs/search.md

Without ``--write`` the tables are printed. All that is drawn comes from ``--seed``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from git_bayesect import Bisector
from scipy.special import entr
from scipy.stats import binomtest
from tables import put

from bisect_env.search.records import Status
from bisect_env.search.simulation import LineRun, LineWorld, simulate_line

CONFIDENCE = 0.95
TUNED = [(p, q) for q in (0.0, 0.02) for p in (0.9, 0.5, 0.3, 0.1)]
"""The priors were chosen on some of these."""
HELD_OUT = [(p, q) for q in (0.005, 0.05) for p in (0.7, 0.2)]
"""Nothing was chosen on these, but that p 0.2 with q 0.05 failed under an earlier prior made it be chosen anew."""
NEVER_SEEN = [(0.85, 0.01), (0.4, 0.03), (0.25, 0.04), (0.15, 0.01)]
"""Not looked at before the present priors stood."""
MARKS = {**dict.fromkeys(HELD_OUT, "*"), **dict.fromkeys(NEVER_SEEN, "**")}
PEER_TRIALS = 5_000


def peer(candidates: int, p: float, q: float, runs: int, seed: int) -> tuple[float, float]:
    """Mean trials and share wrong of git_bayesect's core, set up and stopped as its own command does it.

    It has the newest version first and takes the known good one for a candidate like the others.
    """
    trials, wrong = [], 0
    for run in range(runs):
        random = np.random.default_rng([seed, run])
        truth = int(random.integers(candidates))
        bisector = Bisector([1] * (candidates + 1))
        while bisector.distribution.max() < CONFIDENCE and bisector.num_total_observations < PEER_TRIALS:
            index = bisector.select()
            bisector.record(index, bool(random.random() < (p if index <= truth else q)))
        trials.append(bisector.num_total_observations)
        wrong += int(bisector.distribution.argmax()) != truth
    return float(np.mean(trials)), wrong / runs


def told(candidates: int, p: float, q: float, runs: int, seed: int) -> float:
    """Mean trials of Bayes told both rates: asks where the next trial says most about the change."""
    random = np.random.default_rng(seed)
    truth = random.integers(1, candidates + 1, runs)
    # fails[c - 1, m]: the rate at position m if the change is c.
    past = np.arange(candidates + 1) >= np.arange(1, candidates + 1)[:, None]
    fails = np.where(past, p, max(q, 1e-12))
    noise = entr(fails) + entr(1 - fails)
    weights = np.full((runs, candidates), 1 / candidates)
    ended, going, trials = np.zeros(runs), np.arange(runs), 0
    while len(going):
        over = weights.max(axis=1) >= CONFIDENCE
        ended[going[over]] = trials
        going, weights = going[~over], weights[~over]
        mixed = np.clip(weights @ fails, 0, 1)
        position = (entr(mixed) + entr(1 - mixed) - weights @ noise).argmax(axis=1)
        failed = random.random(len(going)) < np.where(position >= truth[going], p, q)
        rates = fails[:, position].T
        weights = weights * np.where(failed[:, None], rates, 1 - rates)
        weights /= weights.sum(axis=1, keepdims=True)
        trials += 1
    return float(ended.mean())


def share(count: int, runs: int) -> str:
    """A share with its 95 % interval (Wilson), in percent."""
    interval = binomtest(count, runs).proportion_ci(method="wilson")
    return f"{100 * count / runs:.1f} ({100 * interval.low:.1f}-{100 * interval.high:.1f})"


def trials_table(runs: int, peer_runs: int, seed: int, jobs: int) -> Iterator[str]:
    """One trial at a time, nothing counted but trials."""
    yield (
        f"One trial at a time, {runs} runs a cell of the search, {peer_runs} of git_bayesect. *: rates held out; **: "
        "rates held out from the second choice of the priors as well."
    )
    yield ""
    yield "| N | p | q | wrong % (95 %) | undecided % | mean | p95 | git_bayesect (wrong %) | ratio | told p, q |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    cells = [(n, p, q) for n in (8, 32, 256) for p, q in TUNED + HELD_OUT + NEVER_SEEN]
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(partial(trials_row, runs, peer_runs, seed), cells)


def trials_row(runs: int, peer_runs: int, seed: int, cell: tuple[int, float, float]) -> str:
    """The row of one cell."""
    candidates, p, q = cell
    done = simulate_line(LineWorld(candidates, p, q), confidence=CONFIDENCE, batch=1, runs=runs, seed=seed)
    trials = np.array([run.trials for run in done])
    mean, wrong = peer(candidates, p, q, peer_runs, seed)
    return (
        f"| {candidates}{MARKS.get((p, q), '')} | {p} | {q} "
        f"| {share(sum(run.wrong for run in done), runs)} | {undecided(done):.1f} "
        f"| {trials.mean():.1f} | {np.percentile(trials, 95):.0f} "
        f"| {mean:.1f} ({100 * wrong:.1f}) | {trials.mean() / mean:.2f} "
        f"| {told(candidates, p, q, runs, seed):.1f} |"
    )


def undecided(done: list[LineRun]) -> float:
    """Percent of the runs that gave no answer."""
    return 100 * sum(run.status is not Status.CONFIDENT for run in done) / len(done)


def builds_table(runs: int, seed: int) -> Iterator[str]:
    """Batches by information per second."""
    yield f"A build costs as much as 10 trials, batches sized by the search, {runs} runs a cell."
    yield ""
    yield "| N | p | q | wrong % (95 %) | mean environments | p95 environments | mean trials | p95 trials |"
    yield "|---|---|---|---|---|---|---|---|"
    for candidates, p, q in ((32, 0.5, 0.0), (32, 0.3, 0.0), (32, 0.3, 0.02), (256, 0.3, 0.0)):
        world = LineWorld(candidates, p, q, build=10.0)
        done = simulate_line(world, confidence=CONFIDENCE, batch="auto", runs=runs, seed=seed)
        built = np.array([run.environments for run in done])
        trials = np.array([run.trials for run in done])
        yield (
            f"| {candidates} | {p} | {q} | {share(sum(run.wrong for run in done), runs)} "
            f"| {built.mean():.1f} | {np.percentile(built, 95):.0f} | {trials.mean():.1f} "
            f"| {np.percentile(trials, 95):.0f} |"
        )


def calibration_table(runs: int, seed: int) -> Iterator[str]:
    """What was stated when it stopped, against how often that was true, over all cells of 32 candidates."""
    pairs = TUNED + HELD_OUT + NEVER_SEEN
    yield f"N = 32, stopped at several confidences, {runs} runs in each of the {len(pairs)} pairs of rates."
    yield ""
    yield "| confidence | stated on average % | right % (95 %) | undecided % |"
    yield "|---|---|---|---|"
    for confidence in (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99):
        done: list[LineRun] = []
        for p, q in pairs:
            world = LineWorld(32, p, q)
            done += simulate_line(world, confidence=confidence, batch=1, runs=runs, seed=seed + 1)
        given = [run for run in done if run.answer is not None]
        yield (
            f"| {confidence} | {100 * np.mean([run.stated for run in given]):.1f} "
            f"| {share(sum(not run.wrong for run in given), len(given))} | {undecided(done):.1f} |"
        )


def main() -> None:
    """Make the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--peer-runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1, help="cells at a time")
    parser.add_argument("--write", type=Path, help="document whose tables are replaced")
    arguments = parser.parse_args()
    lines: list[str] = []
    for line in (
        *("### Along a line: errors and trials", ""),
        *trials_table(arguments.runs, arguments.peer_runs, arguments.seed, arguments.jobs),
        *("", "### Along a line: where builds cost", ""),
        *builds_table(arguments.runs, arguments.seed),
        *("", "### Along a line: calibration", ""),
        *calibration_table(max(1, arguments.runs // 5), arguments.seed),
    ):
        lines.append(line)
    put(lines, arguments.write, __file__)


if __name__ == "__main__":
    main()
