"""The options of ``bisect-env bisect``."""

from __future__ import annotations

import click

from bisect_env.cli import amounts
from bisect_env.cli.common import Command
from bisect_env.cli.option_parts import Number, added

SOURCES = (
    "pip freeze or pip list, requirements, uv.lock, pylock.toml, conda list, a collect_env report, a capture in a "
    "file; - for standard input; main:uv.lock as of a git revision; cell:ID of the store; an environment's folder; "
    "'host:ssh gpu3'"
)


def options(function: Command) -> Command:
    """Adds them, in the order of the help text: what is compared, what fails, how long it may take, where from."""
    return _sides(trial_options(_search(place_options(function))))


def trial_options(function: Command) -> Command:
    """Adds what a trial is: the reproducer and how it runs."""
    return added(
        function,
        (
            click.option("--reproducer", metavar="NAME", help="A shipped one: compile_race, dflash. Else a COMMAND."),
            click.option(
                "--option",
                "options",
                metavar="KEY=VALUE",
                help="A condition of the trials on both sides, the reproducer's options included; repeatable.",
                multiple=True,
            ),
            click.option("--threads", metavar="N", help="Worker threads: --option threads=N."),
            click.option(
                "--cache", metavar="STATE", help="Compile cache when a trial starts: cold, warm or a folder (./cache)."
            ),
            click.option(
                "--env",
                metavar="NAME=VALUE",
                help="A variable of the trials, on both sides; repeatable.",
                multiple=True,
            ),
            click.option(
                "--pass-env",
                metavar="NAME",
                help="A variable that trials get from here, and whose value is kept nowhere (HF_TOKEN).",
                multiple=True,
            ),
            click.option(
                "--file",
                "files",
                metavar="PATH",
                help="What COMMAND needs beside it, copied into each trial's folder. Scripts that it names are anyway.",
                multiple=True,
            ),
            click.option(
                "--fail-pattern",
                metavar="REGEX",
                help="A line of COMMAND's output that means bad, whatever it exits with.",
            ),
            click.option("--skip-pattern", metavar="REGEX", help="A line that means: cannot be tested here."),
        ),
    )


def place_options(function: Command) -> Command:
    """Adds what environments are made of, from where, and how trials are run."""
    return added(
        function,
        (
            click.option(
                "--without",
                metavar="NAME",
                multiple=True,
                help="Leave this distribution out of every environment: one that this host cannot install; repeatable.",
            ),
            click.option(
                "--at-once", type=click.IntRange(1), default=1, show_default=True, help="Trials side by side."
            ),
            click.option("--seed", type=int, default=0, show_default=True, help="Seed of whatever is drawn."),
            click.option(
                "--as-of", metavar="DATE", help="Resolve what is not pinned as of this day, or of each 'release'."
            ),
            click.option(
                "--index", metavar="URL", help="Package index, instead of the default one; repeatable.", multiple=True
            ),
            click.option(
                "--find-links", metavar="PATH", help="Folder (or page) with wheels besides; repeatable.", multiple=True
            ),
            click.option("--torch-backend", metavar="VARIANT", help="PyTorch's own index: cpu, cu128, auto."),
            click.option("--offline", is_flag=True, help="No network: only --find-links and what uv has cached."),
        ),
    )


def gpu_options(function: Command) -> Command:
    """Adds ``--gpus`` and ``--allow-busy``."""
    for option in (
        click.option("--allow-busy", is_flag=True, help="Take a GPU although somebody else computes on it."),
        click.option("--gpus", help="GPUs to use, as in CUDA_VISIBLE_DEVICES; all visible ones when left out."),
    ):
        function = option(function)
    return function


def _sides(function: Command) -> Command:
    """Adds the two sides."""
    return added(
        function,
        (
            click.option("--good", metavar="SOURCE", help=f"The environment that works. Any of: {SOURCES}."),
            click.option("--bad", metavar="SOURCE", help="The environment that fails; as --good."),
            click.option("--find-fix", is_flag=True, help="--bad is the older one: look for what repaired it."),
            click.option(
                "--along",
                metavar="NAME",
                help="Only along the released versions of this distribution: it is known to be to blame.",
            ),
        ),
    )


def _search(function: Command) -> Command:
    """Adds what makes a trial bad, and what the search may cost."""
    return added(
        function,
        (
            click.option(
                "--good-option",
                "good_options",
                metavar="KEY=VALUE",
                help="A condition of the good side: what differs is a suspect, like a package.",
                multiple=True,
            ),
            click.option(
                "--bad-option",
                "bad_options",
                metavar="KEY=VALUE",
                help="A condition of the bad side, for example cache=cold where the good side has cache=warm.",
                multiple=True,
            ),
            click.option("--good-env", metavar="NAME=VALUE", help="A variable of the good side alone.", multiple=True),
            click.option("--bad-env", metavar="NAME=VALUE", help="A variable of the bad side alone.", multiple=True),
            click.option(
                "--question",
                default="failure",
                show_default=True,
                metavar="WHAT",
                help=f"What makes a trial bad: {amounts.QUESTIONS}.",
            ),
            click.option(
                "--signature",
                metavar="TEXT",
                help="Only failures whose text contains this. Else: the failure that the bad end shows most often.",
            ),
            click.option("--any-failure", is_flag=True, help="Every failure counts, whatever its message."),
            click.option(
                "--timeout",
                metavar="TIME[:MEANING]",
                help="Most a trial may take, and what it is then: bad, good or skip. 10m, 10m:good.",
            ),
            click.option(
                "--confidence",
                type=Number(0.5, 1, min_open=True, max_open=True),
                default=0.95,
                show_default=True,
                help="Probability of the answer at which a search stops.",
            ),
            click.option(
                "--budget",
                metavar="LIMIT",
                help="Most it may cost: '200 trials', 2h, or '200 trials, 2h'. It then says what is known by then.",
                multiple=True,
            ),
            click.option(
                "--confirm",
                type=click.IntRange(1),
                help="Most fresh trials of each environment that confirm it. Else: as its failure rate needs, at most "
                "240 in all or as many as the search took.",
            ),
            click.option(
                "--batch", type=click.IntRange(1), help="Trials at a time in an environment. Else: what pays."
            ),
            click.option(
                "--parallel",
                type=click.IntRange(1),
                metavar="K",
                help="Batches that the search asks for at a time: sooner an answer, for more trials. Default: 1 on "
                "this host, as many as jobs on a cluster.",
            ),
            click.option(
                "--source",
                "commits",
                metavar="NAME=REPOSITORY",
                help="For a pure-Python distribution, on to the commit: a local clone or a git URL.",
                multiple=True,
            ),
            click.option("--pre", "prereleases", is_flag=True, help="Pre-releases are candidates as well."),
            click.option(
                "--prior-from-reading",
                is_flag=True,
                help="Along versions, the few that changed a file of the failure's traceback weigh more.",
            ),
        ),
    )
