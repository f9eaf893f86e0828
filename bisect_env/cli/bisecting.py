"""A bisection with a store, a terminal and a way to stop it: begun, gone on with, taken over, or only planned."""

from __future__ import annotations

import shlex
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, cast

from rich.console import Console

from bisect_env.bisection import driver, log, planning
from bisect_env.bisection.batches import Place
from bisect_env.bisection.records import Answer, Budget, Finding, Specification
from bisect_env.cli import finding
from bisect_env.cli.common import STORE_FILE, Progress, complain, ends_cleanly, project_folder
from bisect_env.cli.executor_option import Elsewhere, chosen, executor
from bisect_env.cli.finding import Output
from bisect_env.engine.settings import Settings
from bisect_env.environments.uv import Uv
from bisect_env.errors import ExitCode, InfrastructureError
from bisect_env.matrix.cells import IndexChoice
from bisect_env.matrix.executor import ExecutorChoice
from bisect_env.report.live import BisectionLines, BisectionLive
from bisect_env.store.database import Store


@dataclass(frozen=True)
class Where:
    """Options that say where trials run, and nothing of what is asked."""

    root: Path
    gpus: str | None = None
    allow_busy: bool = False
    elsewhere: Elsewhere = field(default_factory=Elsewhere)


def run(specification: Specification, where: Where, output: Output) -> ExitCode:
    """Find the culprit, or go on with an earlier run of the same command, and print the report."""
    if not driver.suspects(specification):
        return nothing(specification, output)
    with _place(where, specification) as place:
        path = driver.begun(specification, place, sys.argv[1:])
        return _to_the_end(path, place, where, output, specification.index, specification.budget)


def resume(path: Path, where: Where, output: Output) -> ExitCode:
    """Go on with the bisection of this log."""
    with _place(where, log.read(path).header.specification) as place:
        return _to_the_end(path, place, where, output)


def replay(file: Path, where: Where, output: Output) -> ExitCode:
    """Take over a log, and go on with it."""
    specification = log.read(file).header.specification  # Says now what is wrong with it.
    with _place(where, specification) as place:
        return _to_the_end(driver.adopt(file, place, sys.argv[1:]), place, where, output)


def plan(specification: Specification, where: Where, output: Output) -> ExitCode:
    """Print what it would take. The mixes are resolved, and their locks kept; nothing is built or run."""
    if not driver.suspects(specification):
        return nothing(specification, output)
    with _place(where, specification) as place, cast("BisectionLines", place.reporter):
        planned = planning.plan(specification, place)
    finding.put_plan(planned, output)
    return ExitCode.PASSED


def nothing(specification: Specification, output: Output) -> ExitCode:
    """Say that there is nothing to bisect, and why."""
    asked = specification.difference
    held = " What differs is held." if asked.held else ""
    said = f"Nothing to bisect: the two sides do not differ in anything that can be changed here.{held}"
    finding.put(Finding("", Answer.NOTHING, said, 0.0, held=asked.held, notes=asked.notes), None, output)
    return ExitCode.NOTHING_TO_COMPARE


def _to_the_end(
    path: Path,
    place: Place,
    where: Where,
    output: Output,
    index: IndexChoice | None = None,
    budget: Budget | None = None,
) -> ExitCode:
    ended: BaseException | None = None
    reporter = cast("BisectionLines", place.reporter)
    try:
        with reporter:
            found = driver.resume(path, place, index, budget)
    except (KeyboardInterrupt, InfrastructureError) as error:
        place.stop.set()
        ended = error
        found = driver.so_far(
            path, place, "it was interrupted" if isinstance(error, KeyboardInterrupt) else "it failed"
        )
    finding.put(found, path.parent, output)
    if isinstance(ended, InfrastructureError):
        raise ended
    if ended is not None:
        resumed = shlex.join(["bisect-env", "bisect", "resume", path.parent.name, *where.elsewhere.words])
        again = f"the same command, or `{resumed}`,"
        complain(f"Interrupted. What was measured is kept: {again} goes on from there.")
        return ExitCode.INTERRUPTED
    return finding.CODES[found.answer]


def settings_of(where: Where, specification: Specification) -> Settings:
    """How trials of these two sides are run.

    Raises:
        BadInput: they cannot be run there.
    """
    conditions = (specification.condition_good, specification.condition_bad)
    choice = chosen(where.elsewhere, ExecutorChoice())
    runner = executor(choice, where.elsewhere, conditions, where.gpus, "--option")
    return Settings(project_folder(where.root), allow_busy=where.allow_busy, gpus=where.gpus, executor=runner)


@contextmanager
def _place(where: Where, specification: Specification) -> Iterator[Place]:
    """The store, uv and the terminal. All input is checked: only now is anything written."""
    settings = settings_of(where, specification)
    console = Console(file=cast("IO[str]", Progress()), highlight=False)
    reporter = BisectionLive(console) if console.is_terminal else BisectionLines(console)
    with ends_cleanly(), Store(settings.root / STORE_FILE) as store:
        yield Place(settings, store, Uv(), reporter, threading.Event())
