"""``bisect-env report``: the table of what a store holds, wherever it was measured."""

from __future__ import annotations

from pathlib import Path

import click

from bisect_env.cli import output
from bisect_env.cli.common import complain, root_option, stored
from bisect_env.cli.selection import narrowed, selection_options
from bisect_env.engine.recall import HOST, StoredReleases, recall
from bisect_env.errors import ExitCode
from bisect_env.matrix.loading import load
from bisect_env.report import table
from bisect_env.report.origin import origin
from bisect_env.trials import reproducers


@click.command("report", short_help="The table of what was measured, here or on another host.")
@click.argument("file", type=click.Path(path_type=Path))
@root_option
@selection_options
@output.options
@output.html_option
def command(
    file: Path,
    root: Path,
    patterns: tuple[str, ...],
    trials: int | None,
    controls: int | None,
    max_race_rate: float,
    fmt: str,
    json_path: str | None,
    output_path: Path | None,
    html_path: Path | None,
) -> ExitCode:
    """Tabulate what a store holds for a matrix FILE, wherever it was measured.

    Resolves, builds and runs nothing, uses no network, and only reads the store: of another host its store.sqlite is
    all that is needed. Give --trials and --controls as they were given to the run.

    \b
    bisect-env report matrices/h200.yaml --store from-the-gpu-host
    bisect-env report my.yaml --format github -o docs/results.md --json docs/results.json
    bisect-env report my.yaml --html report.html
    """
    table.check_format(fmt)
    output.check_writable(json_path, output_path, [("--html", html_path)])
    with stored(root) as store:
        matrix = narrowed(load(file, StoredReleases(store)), patterns, trials, controls)
        found = recall(matrix, reproducers.prepare(matrix.reproducer), store, max_race_rate)
    for note in matrix.notes:
        complain(note)
    where = origin(found.results, found.runs, HOST)
    further = output.html(found.results, matrix, max_race_rate, where, html_path)
    output.put(found.results, matrix, max_race_rate, fmt, json_path, output_path, where, further)
    return ExitCode.PASSED
