"""``bisect-env bundle``: everything a matrix needs, in parts of a size, for a host without a network."""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path
from typing import IO, cast

import click
from rich.console import Console

from bisect_env.bundles import collect, having, targets
from bisect_env.bundles.having import Having
from bisect_env.bundles.records import FETCHED, PARTS
from bisect_env.cli.common import Progress, complain, ends_cleanly, project_folder, root_option, say
from bisect_env.cli.selection import selected
from bisect_env.environments.index import SimpleIndex
from bisect_env.environments.uv import Uv
from bisect_env.errors import BadInput, ExitCode
from bisect_env.matrix.loading import load
from bisect_env.report.bundling import LineReporter, LiveReporter, summary

UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}
SMALLEST = 4 * 2**10


@click.command("bundle", short_help="Everything a matrix needs, for a host without a network.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", "folder", required=True, type=click.Path(file_okay=False, path_type=Path), help="The bundle."
)
@root_option
@click.option("--part-size", default="60M", show_default=True, help="Most bytes of a part; K, M and G are binary.")
@click.option(
    "--have",
    "inventory",
    type=click.Path(dir_okay=False, path_type=Path),
    help="What `bisect-env inventory` printed on the target: it is left out.",
)
@click.option("--python", default="3.12", show_default=True, help="The target's Python.")
@click.option(
    "--platform", default="x86_64-manylinux_2_28", show_default=True, help="The target's machine and its glibc."
)
@click.option("--cell", "patterns", multiple=True, metavar="GLOB", help="Only cells whose id matches; repeatable.")
def command(
    file: Path,
    folder: Path,
    root: Path,
    part_size: str,
    inventory: Path | None,
    python: str,
    platform: str,
    patterns: tuple[str, ...],
) -> ExitCode:
    """Resolve every cell of FILE for another host, and write what it needs into a folder, cut into parts.

    Each wheel is fetched once, and kept under the store's folder for the next bundle. A further bundle into the same
    folder adds only the parts that are new. The folder also holds the tool itself, so that the target needs Python
    alone; its README.txt has the commands for there.

    \b
    bisect-env bundle matrices/gpu.yaml -o bundle
    bisect-env bundle matrices/gpu.yaml -o bundle --have inventory.json --cell '*torch-2.11.0*'
    """
    part_bytes = _bytes(part_size)
    uv = Uv()
    target = targets.parse(python, platform, uv)
    matrix = selected(load(file, SimpleIndex()), patterns)
    has = Having() if inventory is None else having.load(inventory, target)
    _check_folder(folder)
    order = collect.Order(matrix, target, folder, project_folder(root) / FETCHED, part_bytes, has)
    console = Console(file=cast("IO[str]", Progress()), highlight=False)
    reporter = LiveReporter(console) if console.is_terminal else LineReporter(console)
    began = time.monotonic()
    try:
        with ends_cleanly(), reporter:
            for note in matrix.notes:
                reporter.note(note)
            made = collect.bundle(order, uv, reporter, threading.Event())
    except KeyboardInterrupt:
        complain("Interrupted. What was fetched and written is kept: the same command goes on from there.")
        return ExitCode.INTERRUPTED
    say(summary(made, folder, part_bytes, time.monotonic() - began))
    return ExitCode.PASSED


def _bytes(text: str) -> int:
    """``60M`` as bytes."""
    match = re.fullmatch(r"(\d+)([KMG]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    count = 0 if match is None else int(match[1]) * UNITS.get(match[2].upper(), 1)
    if count < SMALLEST:
        wanted = f"a number of bytes of at least {SMALLEST}, such as 60M (= 60 * 1024 * 1024), 500K or 2G"
        raise BadInput("--part-size", "", f"{text!r}", wanted)
    return count


def _check_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise BadInput("--output", "", f"{folder} is no folder", "a folder, which is made when there is none")
    if folder.is_dir() and _visible(folder) and PARTS not in _visible(folder):
        wanted = "an empty folder, a new one, or that of an earlier bundle"
        raise BadInput("--output", "", f"{folder} has other things in it", wanted)


def _visible(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if not path.name.startswith(".")}
