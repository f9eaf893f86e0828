"""``bisect-env simulate``: how many trials a bisection will take, from the very search that will run it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import click
import numpy as np
from rich.console import Console
from rich.progress import track

from bisect_env.bisection.reading import MOST_MARKED, weight
from bisect_env.cli.common import Progress, say
from bisect_env.cli.option_parts import Number
from bisect_env.cli.output import check_writable, write
from bisect_env.errors import BadInput
from bisect_env.search.simulated_subsets import FactorRun, FactorWorld, simulate_factors
from bisect_env.search.simulation import LineRun, LineWorld, SimulatedReading, simulate_line
from bisect_env.verdicts.statistics import clopper_pearson

SCHEMA = 1
"""Grows when a key is renamed, removed or changes its meaning; not when one is added."""


@dataclass(frozen=True)
class Summary:
    """What the runs of one world have in common; the shares are of all runs."""

    runs: int
    mean_trials: float
    p95_trials: float
    mean_environments: float
    mean_seconds: float
    wrong: float
    wrong_low: float
    """Of the exact 95 % interval of the share that is wrong (Clopper and Pearson 1934)."""
    wrong_high: float
    undecided: float
    stated: float
    """The probability that the answers were given, on average; NaN if there was none."""


def summary(runs: Iterable[LineRun | FactorRun], build: float, trial: float) -> Summary:
    """Sum up runs, whose builds and trials took so many seconds each."""
    done = list(runs)
    trials, environments = (
        np.array(counts) for counts in zip(*((r.trials, r.environments) for r in done), strict=True)
    )
    wrong = sum(run.wrong for run in done)
    interval = clopper_pearson(wrong, len(done))
    answered = [run.stated for run in done if run.answer is not None]
    return Summary(
        runs=len(done),
        mean_trials=float(trials.mean()),
        p95_trials=float(np.percentile(trials, 95)),
        mean_environments=float(environments.mean()),
        mean_seconds=float((trials * trial + environments * build).mean()),
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

        It says how many trials and environments to expect, and how often the answer is wrong. What makes a bisection
        long is a low fail rate: one more option of the reproducer that makes it fail twice as often halves the trials.
        Rates of your own reproducer: run it some ten times at the bad end before you bisect.

        500 runs take half a minute for versions, minutes for two of many factors; --runs 50 gives a first idea.

        \b
        JSON: mean_trials, p95_trials (95 of 100 bisections take no more), mean_environments, mean_seconds,
        wrong (a share of the runs, with wrong_low and wrong_high, its 95 % interval), undecided (a share),
        stated (the mean probability that the answers were given), and the options under "world".
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
    world: LineWorld | FactorWorld
    done: Iterable[LineRun | FactorRun]
    if candidates is not None:
        world = LineWorld(candidates, fail_rate, false_rate, build_seconds, trial_seconds)
        done = _waiting(world, confidence, size, runs, seed, reading)
    else:
        world = FactorWorld(factors or 1, culprits, fail_rate, false_rate, build_seconds, trial_seconds)
        each = simulate_factors(world, confidence=confidence, batch=size, runs=runs, seed=seed)
        done = track(each, "Bisections", runs, console=_console(), transient=True, disable=not _console().is_terminal)
    found_out = summary(done, build_seconds, trial_seconds)
    text = _json(world, confidence, size, seed, reading, found_out)
    if json_path is not None and json_path != "-":
        write("--json", Path(json_path), text, advice="")
    say(text if json_path == "-" else _text(found_out))


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
    found: Summary,
) -> str:
    options = {**asdict(world), "confidence": confidence, "batch": batch, "seed": seed}
    if isinstance(world, LineWorld):
        options["prior"] = None if reading is None else asdict(reading)
    values = {key: None if value != value else value for key, value in asdict(found).items()}
    return json.dumps({"schema": SCHEMA, **values, "world": options}, indent=2)


def _text(found: Summary) -> str:
    hours, rest = divmod(round(found.mean_seconds), 3600)
    took = f"{hours} h {rest // 60} min" if hours else f"{rest // 60} min {rest % 60} s"
    stated = "" if found.stated != found.stated else f"; they were stated at {found.stated:.1%} on average"
    return "\n".join(
        (
            f"Trials         {found.mean_trials:.1f} on average; 95 of 100 take at most {found.p95_trials:.0f}",
            f"Environments   {found.mean_environments:.1f} built on average",
            f"Time           {took} on average, one at a time",
            f"Wrong answers  {found.wrong:.1%} of {found.runs} (95 % interval {found.wrong_low:.1%} to "
            f"{found.wrong_high:.1%}){stated}",
            f"Undecided      {found.undecided:.1%}",
        )
    )
