"""``bisect-env history``: verdicts over time, and what changed since the last run."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from bisect_env.cli.common import root_option, stored
from bisect_env.cli.output import check_writable, deliver
from bisect_env.engine.past import past
from bisect_env.errors import BadInput
from bisect_env.report import history
from bisect_env.store.runs import StoredRun

NO_MATRIX = ("bisection", "gate")
"""Names under which the store keeps runs that are of no matrix."""
WIDE = 120
"""Characters a line in files and pipes."""


@click.command("history", short_help="Verdicts over time, and what changed since the last run.")
@click.argument("matrix", required=False)
@root_option
@click.option("--json", "json_path", type=click.Path(dir_okay=False), help="Write JSON; - for stdout.")
def command(matrix: str | None, root: Path, json_path: str | None) -> None:
    """Print how the verdicts of MATRIX (its name or its file) changed from run to run, and what changed with them.

    Without MATRIX, of the one that ran last. Packages, Python, driver, GPUs, host, reproducer and plan are compared
    between the runs that measured a cell. Only reads the store; of another host its store.sqlite is all that is needed.

    \b
    bisect-env history
    bisect-env history my.yaml --store from-the-gpu-host --json history.json
    """
    check_writable(json_path)
    with stored(root) as store:
        runs = [run for run in store.runs() if run.matrix_name not in NO_MATRIX]
        found = past(store, _name(runs, matrix, root))
    others = sorted({run.matrix_name for run in runs} - {found.matrix})
    width = shutil.get_terminal_size().columns if sys.stdout is not None and sys.stdout.isatty() else WIDE
    text = history.describe(found, width)
    if matrix is None and others:
        text += f"\n\nOther matrices in this store: {', '.join(others)}."
    document = "" if json_path is None else json.dumps(history.document(found), indent=2)
    deliver(text, document, json_path, None, "")


def _name(runs: Sequence[StoredRun], matrix: str | None, root: Path) -> str:
    """Name of the matrix that is meant; ``runs`` the latest first."""
    if not runs:
        raise BadInput("--store", "", f"{root}: no matrix was run", "run one first: bisect-env matrix FILE")
    if matrix is None:
        return runs[0].matrix_name
    names = dict.fromkeys(run.matrix_name for run in runs)
    if matrix in names:
        return matrix
    path = Path(matrix).absolute()
    of_file = [run.matrix_name for run in runs if Path(run.matrix_path) == path]
    # A store of another host knows the file by another folder.
    of_file += [run.matrix_name for run in runs if Path(run.matrix_path).name == path.name]
    if not of_file:
        raise BadInput("MATRIX", "", f"{matrix!r} did not run with this store", f"one of: {', '.join(names)}")
    return of_file[0]
