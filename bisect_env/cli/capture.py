"""``bisect-env capture``: what this machine has, or another one, or a process that runs there."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import click

from bisect_env.cli import output
from bisect_env.cli.common import ends_cleanly, say
from bisect_env.cli.snapshot import WIDE
from bisect_env.errors import BadInput
from bisect_env.report import snapshot as report
from bisect_env.snapshots import hosts
from bisect_env.snapshots.forms import saved
from bisect_env.snapshots.reading import read_text
from bisect_env.snapshots.records import Snapshot

ADVICE = "\n  Give the same command again, with a file that can be written."


@click.command("capture", short_help="What a host or a running process has, as a file to compare.")
@click.argument("prefix", nargs=-1, type=click.UNPROCESSED)
@click.option("--pid", type=click.IntRange(min=1), metavar="N", help="A process that runs there: what it really has.")
@click.option("--python", "interpreter", metavar="PATH", help="The interpreter there, instead of `python3` on PATH.")
@click.option("--activate", metavar="FILE", help="A virtual environment there, or a file that is sourced first.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, which is a SOURCE of diff, bisect and gate.")
@click.option(
    "-o",
    "--output",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write that JSON to a file too.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=1),
    default=hosts.TIMEOUT,
    show_default=True,
    help="Seconds that it may take altogether.",
)
def command(
    prefix: tuple[str, ...],
    pid: int | None,
    interpreter: str | None,
    activate: str | None,
    as_json: bool,
    path: Path | None,
    timeout: float,
) -> None:
    """Take a snapshot of this machine or, through PREFIX, of another: distributions with where they came from, Python,
    torch's CUDA variant, driver and GPUs, environment variables that matter, compile cache, virtual environment.

    PREFIX is whatever puts a command there. It gets one more word, `sh`; all else goes over standard input, and nothing
    is written there. The other side needs a Python 3.8, no more.

    \b
    bisect-env capture -o here.json
    bisect-env capture --pid 4711 -o good.json -- ssh gpu3
    bisect-env capture --activate /srv/venv -- ssh gpu3 pct exec 200 -- bash -c
    bisect-env capture --python /opt/venv/bin/python -- docker exec -i trainer
    bisect-env capture -- kubectl exec -i pod --
    bisect-env diff good.json bad.json

    A login rarely has the trainer's environment: --pid reads a running process instead, its variables, its interpreter,
    the libraries that it has loaded. Every part says where it was seen: process, shell, or unknown. Credentials do not
    leave the host.
    """
    given = {"--pid": pid, "--python": interpreter, "--activate": activate}
    chosen = [option for option, value in given.items() if value is not None]
    if len(chosen) > 1:
        raise BadInput(" and ".join(chosen), "", "each of them names an environment", "one of them")
    output.check_writable(None, path)
    origin = _origin(prefix, chosen, given)
    way = hosts.through(prefix, origin, activate or "", interpreter or "", pid or 0)
    with ends_cleanly():
        found = _own(read_text(hosts.ask(way, origin, timeout), origin), way)
    document = json.dumps(saved.structure(found), indent=1)
    width = shutil.get_terminal_size().columns if sys.stdout is not None and sys.stdout.isatty() else WIDE
    try:
        say(document if as_json else report.text(found, width))
    finally:
        if path is not None:
            output.write("--output", path, document, ADVICE)


def _origin(prefix: tuple[str, ...], chosen: list[str], given: dict[str, int | str | None]) -> str:
    """As messages and the snapshot call it."""
    where = hosts.shown(f"host:{' '.join(prefix)}") if prefix else "this machine"
    return f"{where} ({chosen[0]} {given[chosen[0]]})" if chosen else where


def _own(found: Snapshot, way: hosts.Route) -> Snapshot:
    """A word where the Python that was found is the one that runs this, which no trainer uses."""
    named = way.prefix or way.venv or way.interpreter or way.pid
    if named or found.venv is None or Path(found.venv).resolve() != Path(sys.prefix).resolve():
        return found
    said = "This is the environment that bisect-env itself runs in: --pid, --python or --activate name another one."
    return replace(found, missing=(said, *found.missing))
