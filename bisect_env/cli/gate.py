"""``bisect-env gate``: may this change touch the training hosts?"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import click

from bisect_env.cli import amounts, gate_output, gating
from bisect_env.cli.asked import Asked, named_option
from bisect_env.cli.bisect_options import SOURCES, gpu_options
from bisect_env.cli.bisecting import Where
from bisect_env.cli.common import ends_cleanly, root_option
from bisect_env.cli.executor_option import Elsewhere, executor_options
from bisect_env.cli.gate_options import options
from bisect_env.cli.gate_output import Output
from bisect_env.cli.gating import Sides
from bisect_env.cli.own_command import COMMAND, SEPARATOR, OwnCommand
from bisect_env.environments.uv import Uv
from bisect_env.errors import BadInput, ExitCode
from bisect_env.gate.records import Rules
from bisect_env.snapshots import sources

EPILOG = """\b
Exit codes:
  0  pass: every question that could be asked is answered, and well
  1  fail: at least one is not; the report has the bisection's command line
  2  usage or bad input, or a baseline that has no environment here
  3  inconclusive: the budget ended, or the figures are too near a limit; the
     report says how much more it would take
  4  nothing to compare: the two sides do not differ
  5  infrastructure: disk, GPU, driver, index
  130  interrupted; the same command goes on from there
"""


class GateCommand(OwnCommand):
    """``bisect-env gate``."""

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """As it is used."""
        return [f"--baseline SOURCE --candidate SOURCE|--upgrade REQUIREMENT [OPTIONS] [{SEPARATOR} COMMAND...]"]


@click.command("gate", cls=GateCommand, epilog=EPILOG, short_help="May this change touch the training hosts?")
@options
@root_option
@gpu_options
@executor_options
@gate_output.options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    baseline: str | None,
    candidate: str | None,
    upgrades: tuple[str, ...],
    requirements: str | None,
    max_race_rate: float,
    confidence: float,
    no_worse: float | None,
    min_throughput: float,
    max_memory: float,
    trials: int | None,
    pairs: int | None,
    controls: int,
    budget: str | None,
    baseline_store: bool,
    fresh: bool,
    dry: bool,
    root: Path,
    gpus: str | None,
    allow_busy: bool,
    elsewhere: Elsewhere,
    fmt: str | None,
    json_path: str | None,
    output_path: Path | None,
    html_path: Path | None,
    junit_path: Path | None,
    **given: Any,
) -> ExitCode:
    """Say whether an environment may take another one's place: does it install, race, slow down, need more memory, lose
    the fused attention path, or compute something else?

    Both are built and tried in turn, A B B A, on this machine. What counts as passing, and how many trials that takes,
    is fixed and announced before the first one; nothing but a certain fail ends it early. Every question has a line of
    its own: pass, fail, or inconclusive with how much more it would take.

    COMMAND is run once a trial, with the environment's own `python`, in a folder of its own: exit 0 is good, 125 cannot
    be tested, any other up to 127 is bad. Everything measured is kept: the same command again goes on.

    \b
    bisect-env gate --baseline now.txt --upgrade transformers==5.8.1 --reproducer dflash
    bisect-env gate --baseline 'host:ssh gpu3' --candidate uv.lock --reproducer compile_race
    bisect-env gate --baseline main:uv.lock --candidate uv.lock -o report.md -- python train.py --steps 20
    bisect-env gate --baseline now.txt --candidate new.txt --reproducer dflash --budget 30m
    bisect-env gate --base /srv/venv/bin/python --upgrade transformers==5.8.1 --reproducer dflash
    """
    if given["base"] is not None:
        given["base"] = _interpreter(given["base"], baseline, candidate)
        baseline = given["base"]
    sides = _sides(baseline, candidate, upgrades, requirements)
    told = Path(requirements or candidate or "")
    change = told if told.is_file() else None
    output = Output(fmt, json_path, output_path, html_path, junit_path, change)
    where = Where(root, gpus, allow_busy, elsewhere)
    output.check()
    rules = Rules(
        max_race_rate=max_race_rate,
        confidence=confidence,
        no_worse=no_worse,
        min_throughput=min_throughput,
        max_memory=max_memory,
        trials=trials,
        budget_seconds=_seconds(budget),
        pairs=pairs,
    )
    timeout = given.pop("timeout")
    if timeout is not None:
        with named_option("--timeout"):
            amounts.duration(timeout)
    wanted = Asked(command=ctx.meta[COMMAND], timeout=timeout, **given, **_OF_A_SEARCH)
    with ends_cleanly():
        gate, missing = gating.specified(sides, wanted, rules, controls, baseline_store, where, Uv())
    return gating.run(gate, missing, where, output, fresh, dry)


_OF_A_SEARCH: dict[str, Any] = {
    **dict.fromkeys(("good_options", "bad_options", "good_env", "bad_env", "commits", "budget"), ()),
    **dict.fromkeys(("signature", "along", "batch", "confirm")),
    **dict.fromkeys(("any_failure", "find_fix", "prereleases"), False),
    "question": "failure",
    "confidence": 0.95,
}
"""What only a bisection asks."""


def _interpreter(base: str, baseline: str | None, candidate: str | None) -> str:
    """The path of the base's Python, links left as they are: they tell which environment it is."""
    if baseline is not None or candidate is not None:
        other = f"--baseline {baseline}" if baseline is not None else f"--candidate {candidate}"
        wanted = "--base is the baseline; the candidate is a change of it: --upgrade NAME==VERSION, --requirements FILE"
        raise BadInput("--base", "", f"{base}, and {other} as well", wanted)
    found = shutil.which(base)
    if found is None:
        raise BadInput("--base", "", f"{base}: no such program", "the Python of an environment: /srv/venv/bin/python")
    return str(Path(found).absolute())


def _sides(baseline: str | None, candidate: str | None, upgrades: tuple[str, ...], requirements: str | None) -> Sides:
    if baseline is None:
        raise BadInput("--baseline", "", "not given", f"the environment as it is; any of: {SOURCES}")
    change = [f"--upgrade {text}" for text in upgrades] + ([f"--requirements {requirements}"] if requirements else [])
    if candidate is None and not change:
        wanted = f"the environment as it would be ({SOURCES}); or --upgrade NAME==VERSION or --requirements FILE"
        raise BadInput("--candidate", "", "not given, and no change of the baseline either", wanted)
    if candidate is not None and change:
        raise BadInput("--candidate", "", f"{candidate}, and {change[0]} as well", "one of the two")
    used = [text for text in (baseline, candidate, requirements) if text == sources.STDIN]
    if len(used) > 1:
        raise BadInput("--baseline and the candidate", "", "standard input for both", "a file for one of them")
    return Sides(baseline, candidate, upgrades, requirements)


def _seconds(budget: str | None) -> float | None:
    if budget is None:
        return None
    with named_option("--budget"):
        seconds = amounts.duration(budget)
    if not seconds:
        raise BadInput("--budget", "", "a budget of nothing", "a time: 30m, 2h; --dry-run runs nothing")
    return seconds
