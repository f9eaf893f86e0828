"""The options of ``bisect-env gate``."""

from __future__ import annotations

import click

from bisect_env.cli.bisect_options import SOURCES, place_options, trial_options
from bisect_env.cli.common import Command
from bisect_env.cli.option_parts import Number, added
from bisect_env.gate.records import Rules
from bisect_env.gate.specification import CONTROLS

SHARE = Number(0, 1, min_open=True, max_open=True)
DEFAULTS = Rules()


def options(function: Command) -> Command:
    """Adds them, in the order of the help text: what is compared, what must hold, how trials run, where from."""
    return _sides(_rules(trial_options(_timeout(place_options(function)))))


def _sides(function: Command) -> Command:
    return added(
        function,
        (
            click.option("--baseline", metavar="SOURCE", help=f"The environment as it is. Any of: {SOURCES}."),
            click.option("--candidate", metavar="SOURCE", help="The environment as it would be; as --baseline."),
            click.option(
                "--upgrade",
                "upgrades",
                metavar="REQUIREMENT",
                multiple=True,
                help="Instead of --candidate: the baseline with this moved (transformers==5.8.1; a name alone: to its "
                "newest version), and with it only what that forces along; repeatable.",
            ),
            click.option(
                "--requirements",
                metavar="FILE",
                help="The same with every line of a requirements file.",
            ),
            click.option(
                "--base",
                metavar="PYTHON",
                help="Instead of --baseline: the environment of this interpreter as it stands, not built again "
                "(the host's own torch); the change is laid over it.",
            ),
        ),
    )


def _rules(function: Command) -> Command:
    return added(
        function,
        (
            click.option(
                "--max-race-rate",
                type=SHARE,
                default=DEFAULTS.max_race_rate,
                show_default=True,
                help="The candidate's rate of bad trials must be shown to be below this.",
            ),
            click.option(
                "--confidence",
                type=Number(0.5, 1, max_open=True),
                default=DEFAULTS.confidence,
                show_default=True,
                help="Of each question by itself.",
            ),
            click.option(
                "--no-worse",
                metavar="MARGIN",
                type=SHARE,
                help="For a baseline that races itself: instead, the candidate's rate must not exceed the baseline's "
                "by more than this (0.1).",
            ),
            click.option(
                "--min-throughput",
                metavar="RATIO",
                type=SHARE,
                default=DEFAULTS.min_throughput,
                show_default=True,
                help="Least tokens a second, as a part of the baseline's.",
            ),
            click.option(
                "--max-memory",
                metavar="RATIO",
                type=Number(1),
                default=DEFAULTS.max_memory,
                show_default=True,
                help="Highest peak memory, as a multiple of the baseline's.",
            ),
            click.option(
                "--trials",
                type=click.IntRange(1),
                help="Threaded trials of each side. Else: the fewest that can pass. More allow for some bad ones.",
            ),
            click.option(
                "--pairs",
                type=click.IntRange(1),
                help="Pairs of timed rounds. Else: as many as the noise of the first ones asks for.",
            ),
            click.option(
                "--controls",
                type=click.IntRange(0),
                default=CONTROLS,
                show_default=True,
                help="Single-threaded controls of each side, for the attention path and the numbers.",
            ),
            click.option(
                "--budget",
                metavar="TIME",
                help="Most it may take: 30m, 2h. What can be decided within it is said beforehand.",
            ),
            click.option(
                "--baseline-store",
                is_flag=True,
                help="Count the baseline's trials of earlier gates on this host for the race question, unless driver, "
                "GPU or reproducer changed. Throughput is always measured anew on both.",
            ),
            click.option("--fresh", is_flag=True, help="Begin anew: count no trial of an earlier call."),
            click.option("--dry-run", "dry", is_flag=True, help="Print what differs and what it would take; run none."),
        ),
    )


def _timeout(function: Command) -> Command:
    option = click.option("--timeout", metavar="TIME", help="Most a trial may take; one that takes longer is bad. 10m.")
    return option(function)
