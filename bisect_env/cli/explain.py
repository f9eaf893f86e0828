"""``bisect-env explain``: why a cell fails."""

from __future__ import annotations

import sys
import threading
from functools import partial
from pathlib import Path
from typing import IO, cast

import click
from click.core import ParameterSource
from rich.console import Console

from bisect_env.bundles.offline import Offline
from bisect_env.cli import executor_option, output
from bisect_env.cli.bisect_options import gpu_options
from bisect_env.cli.chosen_cell import chosen, measured_with
from bisect_env.cli.common import STORE_FILE, Progress, complain, ends_cleanly, project_folder, root_option, stored
from bisect_env.cli.executor_option import Elsewhere, executor_options
from bisect_env.cli.option_parts import bundle_option
from bisect_env.engine.defaults import default_matrix
from bisect_env.engine.recall import StoredReleases
from bisect_env.engine.settings import Settings
from bisect_env.environments.index import SimpleIndex
from bisect_env.environments.uv import Uv
from bisect_env.errors import ExitCode, InfrastructureError
from bisect_env.explanation.driver import CONTROLS, FAILURES, MOST, Asked, Witnessing
from bisect_env.explanation.explain import is_explained
from bisect_env.explanation.planned import Planned
from bisect_env.explanation.recalled import recalled
from bisect_env.explanation.records import Explanation
from bisect_env.matrix.loading import load
from bisect_env.report import explain_plan
from bisect_env.report import explanation as report
from bisect_env.report import explanation_machine as machine
from bisect_env.report.progress import LineReporter, LiveReporter
from bisect_env.store.database import Store
from bisect_env.trials import reproducers

TOLD = ("name", "file", "root", "only_stored", "fmt", "json_path", "output_path", "html_path")
"""Parameters that say what is told and where, and nothing of what is run."""
EPILOG = """\b
Exit codes:
  0  explained: a trial went wrong, and the account says how
     --dry-run: told what is missing
  2  usage or bad input, or a cell that has no environment here
  3  undecided: nothing went wrong under the witness, or none of the known
     mechanisms fits; the ledger says what would tell
  5  infrastructure: disk, GPU, driver, index
  130  interrupted; the same command goes on from there
"""


@click.command("explain", epilog=EPILOG, short_help="Why a cell fails: which thread did what to which.")
@click.argument("name", metavar="CELL")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@root_option
@click.option(
    "--trials",
    type=click.IntRange(1),
    help=f"Witnessed trials in all. Default: until {FAILURES} went wrong, at most {MOST}.",
)
@click.option(
    "--controls",
    type=click.IntRange(0),
    default=CONTROLS,
    show_default=True,
    metavar="N",
    help="Trials in one thread, and as many with threads and no witness, to compare with: those that are stored count,"
    " and a matrix counts those that run here. 0: none are run.",
)
@click.option(
    "--dry-run", "dry", is_flag=True, help="List what would be built and downloaded, and the trials; do nothing."
)
@click.option("--again", is_flag=True, help="Run new trials, and leave witnessed ones that are stored out.")
@click.option(
    "--stored",
    "only_stored",
    is_flag=True,
    help="Only tell what the store has, which may be another host's: build and run nothing.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the trials.")
@gpu_options
@executor_options
@click.option("--format", "fmt", type=click.Choice(report.FORMATS), help="Of the report. Default: text.")
@output.file_options("Write the report to a file too; Markdown where it is called *.md.")
@output.html_option
@bundle_option
def command(
    name: str,
    file: Path | None,
    root: Path,
    trials: int | None,
    controls: int,
    dry: bool,
    again: bool,
    only_stored: bool,
    seed: int,
    gpus: str | None,
    allow_busy: bool,
    fmt: str | None,
    json_path: str | None,
    output_path: Path | None,
    html_path: Path | None,
    bundle: Path | None,
    elsewhere: Elsewhere,
) -> ExitCode:
    """Say why CELL of a matrix FILE fails: which thread set what, which one met it, and what came of that.

    Runs the cell's own condition with a witness in the reproducer's process, which notes with times and stacks who
    sets, reads and obeys the process-wide state of torch's compiler. Then come the account of a trial that went wrong,
    and a ledger: every known explanation, with what speaks for it and against it.

    CELL is its id or the beginning of one, as in a table, or its levels: torch=2.11.0,transformers=5.8.1. Without FILE
    the matrix is taken that the cell was measured with, else the shipped one.

    Witnessed trials are stored and never counted by a verdict; the same command again uses them, and goes on after
    Ctrl-C. Behind them run trials to compare with, where none are stored (--controls).

    \b
    bisect-env explain torch-2.11.0_transformers-5.8.1
    bisect-env explain torch=2.11.0,transformers=5.8.1 matrices/cpu.yaml
    bisect-env explain torch-2.11.0 matrices/cpu.yaml --dry-run    # what would it take?
    bisect-env explain 3f2a91c0 --trials 10 --html why.html
    bisect-env explain 3f2a91c0 --again -o why.md --json why.json
    bisect-env explain 3f2a91c0 --stored --store from-the-gpu-host --html why.html
    """
    output.check_writable(json_path, output_path, [("--html", html_path)])
    if only_stored:
        _refuse_what_runs(click.get_current_context())
        return _stored(name, file, root, fmt, json_path, output_path, html_path)
    path, why = _matrix(name, file, root, gpus)
    brought = None if bundle is None else Offline.open(bundle)
    matrix = load(path, brought or SimpleIndex())
    cell = chosen(name, matrix.cells, path)
    where_run = executor_option.chosen(elsewhere, matrix.executor)
    runner = executor_option.executor(where_run, elsewhere, [cell.condition], gpus, path)
    if not dry:
        executor_option.ready(where_run)
    reproducer = reproducers.prepare(matrix.reproducer)
    settings = Settings(project_folder(root), seed, allow_busy=allow_busy, gpus=gpus, bundle=brought, executor=runner)
    console = Console(file=cast("IO[str]", Progress()), highlight=False)
    reporter = LiveReporter(console) if console.is_terminal else LineReporter(console)
    stop = threading.Event()
    ended: BaseException | None = None
    # All input is checked: only now is anything written.
    with ends_cleanly(), Store(settings.root / STORE_FILE) as store:
        asked = Asked(matrix, cell, trials, again, controls)
        witnessing = Witnessing(asked, reproducer, settings, store, Uv(), reporter, stop)
        with reporter:
            for note in (why, *matrix.notes):
                if note:
                    reporter.note(note)
            if dry:
                _put_plan(witnessing.plan(), fmt, json_path, output_path, html_path)
                return ExitCode.PASSED
            try:
                witnessing.run(sys.argv[1:])
            except (KeyboardInterrupt, InfrastructureError) as error:
                stop.set()
                ended = error
        found = witnessing.explanation()
    _put(found, path, fmt, json_path, output_path, html_path)
    if isinstance(ended, InfrastructureError):
        raise ended
    if ended is not None:
        complain("Interrupted. What was witnessed is kept: the same command without --again goes on from there.")
        return ExitCode.INTERRUPTED
    return ExitCode.PASSED if is_explained(found) else ExitCode.INCONCLUSIVE


def _refuse_what_runs(context: click.Context) -> None:
    """Nothing that says what to run goes with --stored: a report that does not heed it would seem to."""
    given = [
        option.opts[0]
        for option in context.command.params
        if option.name not in TOLD and context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
    ]
    if given:
        raise click.UsageError(f"--stored runs nothing: {', '.join(given)} cannot go with it.")


def _stored(
    name: str,
    file: Path | None,
    root: Path,
    fmt: str | None,
    json_path: str | None,
    output_path: Path | None,
    html_path: Path | None,
) -> ExitCode:
    """Explain what a store has of the cell, wherever it was measured."""
    path, why = _matrix(name, file, root, None)
    with stored(root) as store:
        matrix = load(path, StoredReleases(store))
        cell = chosen(name, matrix.cells, path)
        found, marks = recalled(cell, reproducers.prepare(matrix.reproducer), store)
    for note in (why, *matrix.notes, *marks):
        if note:
            complain(note)
    _put(found, path, fmt, json_path, output_path, html_path)
    return ExitCode.PASSED if is_explained(found) else ExitCode.INCONCLUSIVE


def _matrix(name: str, file: Path | None, root: Path, gpus: str | None) -> tuple[Path, str]:
    """The matrix file, and a sentence that says why this one."""
    if file is not None:
        return file, ""
    if (project_folder(root) / STORE_FILE).is_file():
        with stored(root) as store:
            known = measured_with(store, name)
        if known is not None:
            return known, f"No matrix named: taking {known}, with which this cell was measured."
    return default_matrix(gpus)


def _put_plan(
    plan: Planned, fmt: str | None, json_path: str | None, output_path: Path | None, html_path: Path | None
) -> None:
    """Print what would be done, and write the files."""
    output.nothing_tried(html=html_path)
    told, document = partial(explain_plan.describe, plan), partial(explain_plan.document, plan)
    output.put_in_forms(told, document, fmt, json_path, output_path)


def _put(
    found: Explanation,
    matrix: Path,
    fmt: str | None,
    json_path: str | None,
    output_path: Path | None,
    html_path: Path | None,
) -> None:
    """Print the report and write every file that was asked for."""
    further = []
    if html_path is not None:
        from bisect_env.report.html.explanation import page

        further.append(("--html", html_path, page(found)))
    told = partial(report.report, found, matrix=str(matrix), drawn=html_path is not None)
    output.put_in_forms(told, partial(machine.document, found), fmt, json_path, output_path, further)
