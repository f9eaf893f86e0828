"""``bisect-env bisect``: a good and a bad environment in, the culprit and its probability out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from bisect_env.bisection import log
from bisect_env.bisection.records import Specification
from bisect_env.cli import asked, bisecting, finding, named
from bisect_env.cli.asked import Asked
from bisect_env.cli.bisect_options import SOURCES, gpu_options, options
from bisect_env.cli.bisecting import Where
from bisect_env.cli.common import ends_cleanly, project_folder, root_option, say
from bisect_env.cli.diff import snapshot
from bisect_env.cli.executor_option import Elsewhere, executor_options
from bisect_env.cli.finding import Output
from bisect_env.cli.own_command import COMMAND, SEPARATOR, OwnCommand
from bisect_env.environments.index import SimpleIndex
from bisect_env.errors import BadInput, ExitCode
from bisect_env.report import bisection_log
from bisect_env.report.bisection import batch_line
from bisect_env.snapshots import pinning, sources

LISTED = 10
"""Bisections that a message lists."""
EPILOG = """\b
Exit codes:
  0  the culprit is found: one, a pair, or the smallest range of versions
  1  not reproduced: the bad side does not fail, or the good side fails as well
  2  usage or bad input; nothing was built
  3  no answer: the budget ended, none of what can be changed here is to blame,
     or no single change explains what was seen
  4  nothing to compare: the two sides do not differ
  5  infrastructure: disk, GPU, driver
  130  interrupted; the same command goes on from there
"""


class BisectGroup(OwnCommand, click.Group):
    """A command of its own that has commands below it; what follows ``--`` is the reproducer's command line."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command below this one.

        Raises:
            BadInput: there is none of that name.
        """
        if args[0] not in self.commands:
            known = ", ".join(self.commands)
            wanted = f"--good SOURCE --bad SOURCE, and your own command after {SEPARATOR}; or one of: {known}"
            raise BadInput("bisect", "", f"{args[0]!r}, which is neither an option nor a command of its own", wanted)
        return super().resolve_command(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """As it is used."""
        return [f"--good SOURCE --bad SOURCE [OPTIONS] [{SEPARATOR} COMMAND...]"]


@click.group(
    "bisect",
    cls=BisectGroup,
    invoke_without_command=True,
    epilog=EPILOG,
    short_help="Which of the differences between two environments is to blame.",
)
@options
@root_option
@gpu_options
@executor_options
@click.option("--dry-run", "dry", is_flag=True, help="Print the suspects, impossible mixes, trials, time; run nothing.")
@finding.options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    good: str | None,
    bad: str | None,
    root: Path,
    gpus: str | None,
    allow_busy: bool,
    elsewhere: Elsewhere,
    dry: bool,
    fmt: str | None,
    json_path: str | None,
    output_path: Path | None,
    html_path: Path | None,
    **given: Any,
) -> ExitCode | None:
    """Find which of the differences between a good and a bad environment is to blame, and how certain that is.

    Packages, Python, environment variables, the compile cache, threads and the reproducer's options are suspects alike.
    Mixed environments are built and tried until one suspect, or two that only fail together, has the probability
    asked for; then along its released versions; then on fresh trials with nothing else changed. Failures need not come
    every time: rates are estimated, and a few false ones are allowed for.

    COMMAND is run once a trial, with the mixed environment's own `python`, in a folder of its own: exit 0 is good, 125
    cannot be tested, any other up to 127 is bad. Everything measured is kept: the same command again goes on.

    \b
    bisect-env bisect --good good.txt --bad bad.txt --reproducer compile_race --dry-run
    bisect-env bisect --good main:uv.lock --bad uv.lock -- python train.py --steps 20
    bisect-env bisect --good cell:3f2a --bad 'host:ssh gpu3' --reproducer dflash --budget 2h
    bisect-env bisect --good g.txt --bad b.txt --good-option cache=warm --bad-option cache=cold ...
    """
    if ctx.invoked_subcommand is not None:
        return None
    for option, source in (("--good", good), ("--bad", bad)):
        if source is None:
            raise BadInput(option, "", "not given", f"the environment to compare with; any of: {SOURCES}")
    assert good is not None and bad is not None
    output, where = Output(fmt, json_path, output_path, html_path), Where(root, gpus, allow_busy, elsewhere)
    output.check()
    wanted = Asked(command=ctx.meta[COMMAND], **given)
    with ends_cleanly():
        specification = _specification(wanted, good, bad, root)
    return bisecting.plan(specification, where, output) if dry else bisecting.run(specification, where, output)


def _specification(wanted: Asked, good: str, bad: str, root: Path) -> Specification:
    """What is asked. All that needs no source is checked first."""
    checked = asked.check(wanted, Path.cwd())
    if good == bad == sources.STDIN:
        raise BadInput("--good and --bad", "", "standard input for both", "a file for one of them")
    read = named.left_out((snapshot(good, root), snapshot(bad, root)), wanted.without)
    sides = asked.with_variables(*read, checked)
    known = pinning.installed((good, bad))
    difference = pinning.differing(*sides, checked.index, SimpleIndex(), known)
    wanted = replace(wanted, along=named.along(wanted.along, difference))
    checked = replace(checked, commits=named.sources(checked.commits, difference, checked.index.offline))
    return asked.specification(wanted, checked, *sides, difference)


@command.command("log", short_help="What was tried, and what it came to.")
@click.argument("name", metavar="[ID]", required=False)
@root_option
def show_log(name: str | None, root: Path) -> None:
    """Print what a bisection has tried so far, the last one without ID, and where its log file lies.

    What was undone is left out. The file is what `replay` takes, here or on another host.
    """
    path = _log(name, root)
    say(bisection_log.describe(log.read(path), path))


@command.command("undo", short_help="Let the last batch not count.")
@click.argument("name", metavar="[ID]", required=False)
@root_option
def undo(name: str | None, root: Path) -> ExitCode:
    """Let the last batch of a bisection (of the last one without ID) not count, and what was concluded from it.

    For a batch that went wrong by something else than its environment: a full disk, a neighbour on the GPU. Its trials
    stay in the store. `resume` then goes on, with fresh trials. Say it again for the batch before.
    """
    path = _log(name, root)
    gone = log.undo(path)
    if not gone:
        say(f"{log.read(path).header.id}: nothing has been tried, so there is nothing to undo.")
        return ExitCode.PASSED
    for seen in gone:
        say(f"undone: {batch_line(seen).strip()}")
    say(f"Next: bisect-env bisect resume {log.read(path).header.id}")
    return ExitCode.PASSED


@command.command("resume", short_help="Go on where it was interrupted.")
@click.argument("name", metavar="[ID]", required=False)
@root_option
@gpu_options
@executor_options
@finding.options
def resume(
    name: str | None,
    root: Path,
    gpus: str | None,
    allow_busy: bool,
    elsewhere: Elsewhere,
    fmt: str | None,
    json_path: str | None,
    output_path: Path | None,
    html_path: Path | None,
) -> ExitCode:
    """Go on with a bisection that was interrupted or undone: the last one without ID.

    The same as its own command once more, without having to repeat it. Of a finished one it prints the report.
    """
    output = Output(fmt, json_path, output_path, html_path)
    output.check()
    return bisecting.resume(_log(name, root), Where(root, gpus, allow_busy, elsewhere), output)


@command.command("replay", short_help="Take over another bisection's log.")
@click.argument("file", type=click.Path(path_type=Path))
@root_option
@gpu_options
@executor_options
@finding.options
def replay(
    file: Path,
    root: Path,
    gpus: str | None,
    allow_busy: bool,
    elsewhere: Elsewhere,
    fmt: str | None,
    json_path: str | None,
    output_path: Path | None,
    html_path: Path | None,
) -> ExitCode:
    """Take over the log FILE of another bisection, of another host or with lines cut off its end, and go on from there.

    What it has tried counts as it stands there; nothing of it is tried again.
    """
    output = Output(fmt, json_path, output_path, html_path)
    output.check()
    return bisecting.replay(file, Where(root, gpus, allow_busy, elsewhere), output)


def _log(name: str | None, root: Path) -> Path:
    """The log of the bisection whose id begins so; the latest without one.

    Raises:
        BadInput: there is none, or there are several.
    """
    found = list(log.bisections(project_folder(root)))
    if not found:
        wanted = "--store DIR with the folder of an earlier bisection; or begin one with --good and --bad"
        raise BadInput("--store", "", f"{root}: no bisection has been begun", wanted)
    if name is None:
        return found[0]
    alike = [path for path in found if path.parent.name.startswith(name)]
    if len(alike) == 1:
        return alike[0]
    listed = "\n    ".join(bisection_log.short(log.read(path), path) for path in (alike or found)[:LISTED])
    problem = f"{len(alike)} bisections begin with {name!r}" if alike else f"no bisection is called {name!r}"
    raise BadInput("ID", "", problem, f"one of\n    {listed}")
