"""``bisect-env simulate``: how many trials a bisection will take, from the very search that will run it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar

import click
import numpy as np
from rich.console import Console
from rich.progress import track

from bisect_env.bisection.reading import MOST_MARKED, weight
from bisect_env.cli.common import Progress, say
from bisect_env.cli.option_parts import Number
from bisect_env.cli.output import check_writable, write
from bisect_env.errors import BadInput
from bisect_env.report.documents.of_simulation import OneWay, Parallel
from bisect_env.search.simulated_parallel import Timed, simulate_parallel
from bisect_env.search.simulated_subsets import FactorRun, FactorWorld, simulate_factors
from bisect_env.search.simulation import LineRun, LineWorld, SimulatedReading, simulate_line
from bisect_env.verdicts.statistics import clopper_pearson

Run = TypeVar("Run")

SCHEMA = 1
"""Grows when a key is renamed, removed or changes its meaning; not when one is added."""


def one_at_a_time(runs: Iterable[LineRun | FactorRun], build: float, trial: float) -> OneWay:
    """Sum up runs, whose builds and trials took so many seconds each."""
    return summary(Timed(run, run.trials * trial + run.environments * build) for run in runs)


def summary(runs: Iterable[Timed]) -> OneWay:
    """Sum up runs."""
    timed = list(runs)
    done = [each.run for each in timed]
    seconds = np.array([each.seconds for each in timed])
    trials, environments = (
        np.array(counts) for counts in zip(*((r.trials, r.environments) for r in done), strict=True)
    )
    wrong = sum(run.wrong for run in done)
    interval = clopper_pearson(wrong, len(done))
    answered = [run.stated for run in done if run.answer is not None]
    return OneWay(
        runs=len(done),
        mean_trials=float(trials.mean()),
        p95_trials=float(np.percentile(trials, 95)),
        mean_environments=float(environments.mean()),
        mean_seconds=float(seconds.mean()),
        p95_seconds=float(np.percentile(seconds, 95)),
        wrong=wrong / len(done),
        wrong_low=interval.low,
        wrong_high=interval.high,
        undecided=1 - len(answered) / len(done),
        stated=float(np.mean(answered)) if answered else float("nan"),
    )


@click.command("simulate", short_help="How many trials a bisection will take, before it is begun.")
@click.option("--candidates", type=click.IntRange(1), metavar="N", help="Versions in order, one of them to blame.")
@click.option("--factors", type=click.IntRange(1), metavar="N", help="Packages or settings that differ at once.")
@click.option(
    "--culprits",
    type=click.IntRange(1, 2),
    default=1,
    show_default=True,
    help="Of the factors: how many are to blame, and must be there together.",
)
@click.option(
    "--fail-rate",
    type=Number(0, 1, min_open=True),
    default=0.3,
    show_default=True,
    help="Share of trials that fail where the culprit is.",
)
@click.option(
    "--false-rate",
    type=Number(0, 1),
    default=0.0,
    show_default=True,
    help="Share of trials that fail where it is not. The search knows neither.",
)
@click.option("--batch", default="auto", show_default=True, help="Trials at a time, or auto: the most told per second.")
@click.option(
    "--build-seconds",
    type=Number(0),
    default=10.0,
    show_default=True,
    help="To build an environment; none that is built already. 0: only trials count.",
)
@click.option(
    "--trial-seconds",
    type=Number(0, min_open=True),
    default=10.0,
    show_default=True,
    help="Of one trial.",
)
@click.option(
    "--confidence",
    type=Number(0.5, 1, max_open=True),
    default=0.95,
    show_default=True,
    help="Probability at which an answer is given.",
)
@click.option(
    "--prior",
    type=click.Choice(["none", "right", "misleading"]),
    default="none",
    show_default=True,
    help="Of versions: some are marked by reading and weigh more; the culprit is among them (right), or never is.",
)
@click.option(
    "--prior-weight",
    type=Number(0, min_open=True),
    help="Of a marked version; of the others it is 1. Else: as a bisection along so many versions takes it.",
)
@click.option(
    "--prior-marked",
    type=click.IntRange(1),
    metavar="N",
    help="Versions that are marked. Else: the most at which a bisection uses what it has read.",
)
@click.option(
    "--parallel",
    type=click.IntRange(1),
    metavar="K",
    default=1,
    show_default=True,
    help="Batches at a time: the figures are of rounds of so many, as `bisect --parallel K` asks, beside those of one.",
)
@click.option("--runs", type=click.IntRange(1), default=500, show_default=True, help="Bisections to simulate.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="The same seed, the same figures.")
@click.option(
    "--json",
    "json_path",
    is_flag=False,
    flag_value="-",
    type=click.Path(dir_okay=False),
    help="Print JSON, or write it to a file.",
)
def command(
    candidates: int | None,
    factors: int | None,
    culprits: int,
    fail_rate: float,
    false_rate: float,
    batch: str,
    build_seconds: float,
    trial_seconds: float,
    confidence: float,
    prior: str,
    prior_weight: float | None,
    prior_marked: int | None,
    parallel: int,
    runs: int,
    seed: int,
    json_path: str | None,
) -> None:
    """Run the search of `bisect-env bisect` against a world in which the culprit is known.

    \b
    Which of 32 releases broke it, if 3 of 10 trials fail since then, and 2 of 100 anyway?
      bisect-env simulate --candidates 32 --fail-rate 0.3 --false-rate 0.02
    Which two of 16 packages break it together? An environment takes 2 minutes, a trial 5 seconds:
      bisect-env simulate --factors 16 --culprits 2 --fail-rate 0.5 --build-seconds 120 --trial-seconds 5
    What does `bisect --prior-from-reading` cost if it misleads?
      bisect-env simulate --candidates 32 --fail-rate 0.3 --prior misleading
    How much sooner do eight jobs on a cluster find it, and for how many more trials?
      bisect-env simulate --candidates 32 --fail-rate 0.3 --parallel 8 --runs 100

    It says how many trials and environments to expect, and how often the answer is wrong. What makes a bisection
    long is a low fail rate: one more option of the reproducer that makes it fail twice as often halves the trials.
    Rates of your own reproducer: run it some ten times at the bad end before you bisect.

    500 runs take half a minute for versions, minutes for two of many factors or with --parallel; --runs 50 gives a
    first idea.

    \b
    JSON: mean_trials, p95_trials (95 of 100 bisections take no more), mean_environments, mean_seconds,
    p95_seconds, wrong (a share of the runs, with wrong_low and wrong_high, its 95 % interval), undecided (a share),
    stated (the mean probability that the answers were given), the options under "world", and under "parallel"
    what else --parallel tells.
    """
    check_writable(json_path)
    if (candidates is None) == (factors is None):
        found = "neither is given" if candidates is None else "both are given"
        raise BadInput("--candidates, --factors", "", found, "one of them: versions in order, or things that differ")
    if culprits > (factors or 1):
        raise BadInput("--culprits", "", f"{culprits} of {factors or 'one version'}", "--factors 2 or more")
    if false_rate >= fail_rate:
        raise BadInput("--false-rate", "", f"{false_rate:g}", f"less than the fail rate, {fail_rate:g}")
    reading = _reading(prior, prior_weight, prior_marked, candidates)
    size = _size(batch)
    if parallel > 1 and reading is not None:
        raise BadInput(
            "--parallel", "", f"{parallel}, with --prior {prior}", "one of the two: they are not simulated together"
        )
    world: LineWorld | FactorWorld
    done: Iterable[LineRun | FactorRun]
    if candidates is not None:
        world = LineWorld(candidates, fail_rate, false_rate, build_seconds, trial_seconds)
        done = _waiting(world, confidence, size, runs, seed, reading)
    else:
        world = FactorWorld(factors or 1, culprits, fail_rate, false_rate, build_seconds, trial_seconds)
        each = simulate_factors(world, confidence=confidence, batch=size, runs=runs, seed=seed)
        done = _counted(each, runs)
    found_out, beside = one_at_a_time(done, build_seconds, trial_seconds), None
    if parallel > 1:
        ways = partial(
            simulate_parallel, world, slots=parallel, confidence=confidence, batch=size, runs=runs, seed=seed
        )
        rounds, free = (summary(_counted(ways(rounds=each), runs)) for each in (True, False))
        faster, more = found_out.mean_seconds / rounds.mean_seconds, rounds.mean_trials / found_out.mean_trials
        found_out, beside = rounds, Parallel(parallel, faster, more, found_out, free)
    text = _json(world, confidence, size, seed, reading, found_out, beside)
    if json_path is not None and json_path != "-":
        write("--json", Path(json_path), text, advice="")
    say(text if json_path == "-" else _text(found_out, beside))


def _size(batch: str) -> int | Literal["auto"]:
    if batch == "auto":
        return "auto"
    if not batch.isdecimal() or int(batch) < 1:
        raise BadInput("--batch", "", batch, "auto, or a number of trials from 1")
    return int(batch)


def _reading(prior: str, given: float | None, marked: int | None, candidates: int | None) -> SimulatedReading | None:
    if prior == "none":
        return None
    if candidates is None:
        raise BadInput("--prior", "", f"{prior}, of things that differ", "--candidates: versions are what is read")
    most = candidates if prior == "right" else candidates - 1
    marked = max(1, int(MOST_MARKED * candidates)) if marked is None else marked
    if marked > most:
        raise BadInput("--prior-marked", "", f"{marked} of {candidates}", f"at most {most}, where it is {prior}")
    return SimulatedReading(prior == "right", marked, weight(candidates) if given is None else given)


def _counted(runs: Iterable[Run], number: int) -> Iterable[Run]:
    return track(runs, "Bisections", number, console=_console(), transient=True, disable=not _console().is_terminal)


def _console() -> Console:
    return Console(file=Progress())  # type: ignore[arg-type]


def _waiting(
    world: LineWorld,
    confidence: float,
    batch: int | Literal["auto"],
    runs: int,
    seed: int,
    reading: SimulatedReading | None,
) -> Iterator[LineRun]:
    """All runs of a line go in step: there is nothing to count in between."""
    with _console().status(f"{runs} bisections, side by side") if _console().is_terminal else nullcontext():
        yield from simulate_line(world, confidence=confidence, batch=batch, runs=runs, seed=seed, reading=reading)


def _json(
    world: LineWorld | FactorWorld,
    confidence: float,
    batch: int | str,
    seed: int,
    reading: SimulatedReading | None,
    found: OneWay,
    beside: Parallel | None,
) -> str:
    options = {**asdict(world), "confidence": confidence, "batch": batch, "seed": seed}
    if isinstance(world, LineWorld):
        options["prior"] = None if reading is None else asdict(reading)
    parallel = None
    if beside is not None:
        parallel = {**asdict(beside), "one": _values(beside.one), "as_free": _values(beside.as_free)}
    return json.dumps({"schema": SCHEMA, **_values(found), "parallel": parallel, "world": options}, indent=2)


def _values(found: OneWay) -> dict[str, float | None]:
    return {key: None if value != value else value for key, value in asdict(found).items()}


def _text(found: OneWay, beside: Parallel | None) -> str:
    at_once, compared = "one at a time", []
    if beside is not None:
        at_once = f"in rounds of {beside.batches} batches; 95 of 100 take at most {_duration(found.p95_seconds)}"
        one, free = beside.one, beside.as_free
        compared = [
            f"One at a time  {_duration(one.mean_seconds)}, {one.mean_trials:.1f} trials: the rounds are "
            f"{beside.times_as_fast:.1f} times as fast, for {beside.times_as_many_trials:.2f} times the trials",
            f"Without rounds {_duration(free.mean_seconds)}, {free.mean_trials:.1f} trials, if each slot took the next "
            "batch as soon as it is free",
        ]
    stated = "" if found.stated != found.stated else f"; they were stated at {found.stated:.1%} on average"
    return "\n".join(
        (
            f"Trials         {found.mean_trials:.1f} on average; 95 of 100 take at most {found.p95_trials:.0f}",
            f"Environments   {found.mean_environments:.1f} built on average",
            f"Time           {_duration(found.mean_seconds)} on average, {at_once}",
            *compared,
            f"Wrong answers  {found.wrong:.1%} of {found.runs} (95 % interval {found.wrong_low:.1%} to "
            f"{found.wrong_high:.1%}){stated}",
            f"Undecided      {found.undecided:.1%}",
        )
    )


def _duration(seconds: float) -> str:
    hours, rest = divmod(round(seconds), 3600)
    return f"{hours} h {rest // 60} min" if hours else f"{rest // 60} min {rest % 60} s"
