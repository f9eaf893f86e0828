"""``bisect-env snapshot``: what an environment is, read from whatever there is of it."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import click

from bisect_env.cli.common import STORE_FILE, ends_cleanly, project_folder, root_option, say
from bisect_env.report import snapshot as report
from bisect_env.snapshots import capture, hosts, sources
from bisect_env.snapshots.forms import saved
from bisect_env.store.database import Store

WIDE = 160
"""Characters a line in a file or a pipe."""


@click.command("snapshot", short_help="What an environment is, from a file, a host, a cell.")
@click.argument("source", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, which is a SOURCE as well.")
@click.option(
    "--script", is_flag=True, help="Print the program that captures a host, for one that only Python reaches."
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=1),
    default=hosts.TIMEOUT,
    show_default=True,
    help="Seconds that a host or an interpreter may take.",
)
@root_option
def command(source: str | None, as_json: bool, script: bool, timeout: float, root: Path) -> None:
    """Print what is known of an environment, and what is not: distributions, Python, CUDA variant, driver, GPUs,
    environment variables, compile cache.

    SOURCE is a file in any form (pip freeze, conda list, uv.lock, what collect_env prints, ...), recognised by its
    content, or one of those below. Without it: the environment of the `python3` on PATH.

    \b
    bisect-env snapshot posted.txt#2                  the second of several reports in one text
    pip freeze | bisect-env snapshot -
    bisect-env snapshot main:uv.lock                  as of a git revision
    bisect-env snapshot cell:3f2a91c0                 a stored cell
    bisect-env snapshot env:/srv/venv                 a built environment
    bisect-env snapshot "host:ssh gpu3"               a host, through any command prefix
    bisect-env snapshot "host:ssh gpu3 pct exec 200 -- bash -c @/srv/venv" --json > good.json
    bisect-env snapshot --script > capture.py; ssh HOST python3 - < capture.py > good.json

    A host needs a Python 3.8 and `sh`, no more. `@/srv/venv` at the end is activated first; a prefix may end in a
    Python as well. Credentials in URLs and variables do not leave the host. `bisect-env capture` does the same, for a
    running process too, and keeps it in a file.
    """
    if script:
        say(capture.program(timeout))
        return
    if source is None:
        source = shutil.which("python3") or sys.executable
    path = project_folder(root) / STORE_FILE
    store = Store(path, read_only=True) if source.startswith("cell:") and path.is_file() else None
    try:
        with ends_cleanly():
            found = sources.snapshot(source, store, timeout=timeout)
    finally:
        if store is not None:
            store.close()
    width = shutil.get_terminal_size().columns if sys.stdout is not None and sys.stdout.isatty() else WIDE
    say(json.dumps(saved.structure(found), indent=1) if as_json else report.text(found, width))
