"""``bisect-env matrix``: the main job."""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, cast

import click
from rich.console import Console

from bisect_env import __version__
from bisect_env.bundles.offline import Offline
from bisect_env.cli import actions, output
from bisect_env.cli.common import STORE_FILE, Progress, complain, ends_cleanly, project_folder, root_option
from bisect_env.cli.executor_option import Elsewhere, chosen, executor, executor_options, ready
from bisect_env.cli.option_parts import bundle_option
from bisect_env.cli.selection import narrowed, selection_options
from bisect_env.cli.static import shared_between_threads
from bisect_env.engine.defaults import default_matrix
from bisect_env.engine.forecast import forecast
from bisect_env.engine.places import split
from bisect_env.engine.recall import HOST, runs_of
from bisect_env.engine.run import Engine
from bisect_env.engine.settings import Settings
from bisect_env.environments.index import SimpleIndex
from bisect_env.environments.uv import Uv
from bisect_env.errors import BadInput, ExitCode, InfrastructureError
from bisect_env.matrix.executor import LOCAL
from bisect_env.matrix.loading import load
from bisect_env.report import dry_run, sections, table
from bisect_env.report.checks import of_matrix
from bisect_env.report.origin import origin
from bisect_env.report.progress import LineReporter, LiveReporter
from bisect_env.store.database import Store
from bisect_env.trials import reproducers
from bisect_env.trials.machine import cores
from bisect_env.verdicts.records import Headline

VERDICTS = [headline.value.lower().replace(" ", "-") for headline in Headline]


@click.command("matrix", short_help="Which combinations race, go dense, or stay fast: one table.")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@root_option
@click.option("--dry-run", "dry", is_flag=True, help="List the cells, the downloads and the time; build nothing.")
@click.option(
    "--static", is_flag=True, help="List what each cell's torch shares between threads, from its source; build nothing."
)
@click.option("--fresh", is_flag=True, help="Resolve anew and count no trial of an earlier run.")
@selection_options
@click.option("--at-once", type=click.IntRange(1), help="Trials that run side by side, instead of the file's.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the order and of the trials.")
@click.option("--gpus", help="GPUs to use, as in CUDA_VISIBLE_DEVICES; all visible ones when left out.")
@click.option("--allow-busy", is_flag=True, help="Take a GPU although somebody else computes on it.")
@executor_options
@click.option(
    "--fail-on",
    metavar="VERDICTS",
    help=f"Exit 1 when a cell has one of these, comma-separated: {', '.join(VERDICTS)}.",
)
@output.options
@output.junit_option
@output.html_option
@bundle_option
def command(
    file: Path | None,
    root: Path,
    dry: bool,
    static: bool,
    fresh: bool,
    patterns: tuple[str, ...],
    trials: int | None,
    controls: int | None,
    at_once: int | None,
    seed: int,
    gpus: str | None,
    allow_busy: bool,
    max_race_rate: float,
    fail_on: str | None,
    fmt: str,
    json_path: str | None,
    output_path: Path | None,
    junit_path: Path | None,
    html_path: Path | None,
    bundle: Path | None,
    elsewhere: Elsewhere,
) -> ExitCode:
    """Run a matrix FILE and tabulate it.

    Without FILE the shipped GPU matrix is taken where a GPU is found, else the CPU matrix. Everything measured is
    kept in the store: the same command again resumes an interrupted run, and prints the table of a finished one.

    \b
    bisect-env matrix                                   # this machine, shipped matrix
    bisect-env matrix matrices/gpu.yaml --dry-run       # what would it take?
    bisect-env matrix matrices/gpu.yaml --static        # which cells' torch has which flags process-wide?
    bisect-env matrix my.yaml --fail-on race,hang --junit matrix.xml   # in CI
    bisect-env matrix my.yaml --format github -o out.md
    """
    wanted = _verdicts(fail_on)
    table.check_format(fmt)
    output.check_writable(json_path, output_path, [("--junit", junit_path), ("--html", html_path)])
    path, why = (file, "") if file is not None else default_matrix(gpus)
    brought = None if bundle is None else Offline.open(bundle)
    matrix = narrowed(load(path, brought or SimpleIndex()), patterns, trials, controls)
    matrix = matrix if at_once is None else replace(matrix, at_once=at_once)
    where_run = chosen(elsewhere, matrix.executor)
    runs_here = where_run.kind == LOCAL
    if file is None and not runs_here:
        named = f"matrices/gpu.yaml, matrices/cpu.yaml or your own; they are in {path.parent}"
        raise BadInput("FILE", "", "no matrix named, and which one the cluster's nodes can run is not known", named)
    runner = executor(where_run, elsewhere, [cell.condition for cell in matrix.cells], gpus, path)
    if not (dry or static):
        ready(where_run)
        if runs_here:
            split(cores(), matrix.at_once)  # Says now whether there are too few.
    reproducer = reproducers.prepare(matrix.reproducer)
    settings = Settings(project_folder(root), seed, fresh, allow_busy, gpus, max_race_rate, brought, runner)
    console = Console(file=cast("IO[str]", Progress()), highlight=False)
    reporter = LiveReporter(console) if console.is_terminal else LineReporter(console)
    stop = threading.Event()
    ended: BaseException | None = None
    # All input is checked: only now is anything written.
    with ends_cleanly(), Store(settings.root / STORE_FILE) as store, reporter:
        for note in (why, *matrix.notes):
            if note:
                reporter.note(note)
        engine = Engine(matrix, reproducer, settings, store, Uv(), reporter, stop)
        if dry or static:
            engine.prepare()
            plan = dry_run.DryRun(*forecast(engine), matrix.stop_early) if dry else None
            locked = [(state.cell, state.lock) for state in engine.states]
            shared = shared_between_threads(locked, settings.root) if static else None
            output.nothing_tried(junit=junit_path, html=html_path)
            output.put_plan(matrix.name, plan, shared, fmt, json_path, output_path)
            return ExitCode.PASSED
        versions = {"bisect-env": __version__, "python": sys.version.split()[0], HOST: settings.executor.host}
        planned = (matrix.trials, matrix.controls, matrix.solo, matrix.stop_early)
        run_id = store.start_run(matrix.name, matrix.path, sys.argv[1:], seed, versions, *planned)
        try:
            engine.run(run_id)
            store.end_run(run_id, "completed")
        except (KeyboardInterrupt, InfrastructureError) as error:
            stop.set()
            ended = error
            with suppress(InfrastructureError):
                store.end_run(run_id, "interrupted" if isinstance(error, KeyboardInterrupt) else "failed")
        results = engine.results()
        where = origin(results, runs_of(results, store), HOST)
    trouble = str(ended) if isinstance(ended, InfrastructureError) else ""
    checks = of_matrix(results, wanted, trouble)
    further = output.junit(checks, matrix, results, junit_path)
    further += output.html(results, matrix, max_race_rate, where, html_path)
    output.put(results, matrix, max_race_rate, fmt, json_path, output_path, further=further)
    markdown = sections.report(results, matrix, max_race_rate, "github")
    actions.tell(f"matrix {matrix.name}", checks, markdown, matrix.path)
    if isinstance(ended, InfrastructureError):
        raise ended
    if ended is not None:
        again = "the same command without --fresh" if fresh else "the same command"
        complain(f"Interrupted. What was measured is kept: {again} goes on from there.")
        return ExitCode.INTERRUPTED
    return ExitCode.REGRESSION if wanted & {result.verdict.headline for result in results} else ExitCode.PASSED


def _verdicts(fail_on: str | None) -> set[Headline]:
    names = [name.strip().lower() for name in (fail_on or "").split(",") if name.strip()]
    for name in names:
        if name not in VERDICTS:
            raise BadInput("--fail-on", "", f"{name!r} is not a verdict", f"some of {', '.join(VERDICTS)}")
    return {Headline(name.upper() if name != "not-run" else "NOT RUN") for name in names}
