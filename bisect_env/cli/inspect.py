"""``bisect-env inspect``: a name of a library in one environment, or across versions, read and not installed."""

from __future__ import annotations

import gc
import json
import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path

import click

from bisect_env.cli import inspect_places
from bisect_env.cli.common import ends_cleanly, project_folder, root_option
from bisect_env.cli.inspecting import Wanted, check, inspect, interpreter
from bisect_env.cli.output import WIDE, check_writable, deliver
from bisect_env.cli.tracing import trace
from bisect_env.errors import BadInput, ExitCode
from bisect_env.inspection.inspected import Asked
from bisect_env.inspection.origins import WORDS
from bisect_env.inspection.traffic import Traffic
from bisect_env.matrix.cells import IndexChoice
from bisect_env.report import inspection as report
from bisect_env.report.inspection_machine import document

EPILOG = """\b
Exit codes:
  0  there is such a name, in one of the places at least
  1  --fail-on-hit, and the scan hit something
  2  no place has such a name (the nearest ones are shown), or bad input
  5  an index, a wheel or a disk cannot be read
"""
PLACES = "--in cell:ID of the store, --cells MATRIX, or --in with " + WORDS


@click.command(
    "inspect", short_help="Signatures, a scan through calls, who sets a flag: across versions.", epilog=EPILOG
)
@click.argument("name", metavar="NAME")
@click.argument("arguments", metavar="[-- ARGS]", nargs=-1)
@click.option("--in", "words", multiple=True, metavar="WHERE", help="Where to read it; repeatable, a column each.")
@click.option(
    "--cells",
    "matrix",
    type=click.Path(path_type=Path),
    help="In every cell of this matrix file: its environment where it is built, else what its lock takes.",
)
@click.option("--cell", "patterns", multiple=True, metavar="GLOB", help="Only cells whose id matches; repeatable.")
@click.option("--match", metavar="REGEX", help="Of the surface the names that this is found in, private ones too.")
@click.option("--scan", "scans", multiple=True, metavar="REGEX", help="Lines that NAME reaches by calls; repeatable.")
@click.option("--depth", type=click.IntRange(0), default=6, show_default=True, help="Most calls that a scan follows.")
@click.option("--unresolved", is_flag=True, help="List the calls that a scan could not follow.")
@click.option("--uses", is_flag=True, help="Who sets NAME and who reads it, in all of its distribution; who shares it.")
@click.option("--within", multiple=True, metavar="PACKAGE", help="Look for --uses in this alone; repeatable.")
@click.option("--diff", is_flag=True, help="What differs in the source of NAME between two places.")
@click.option(
    "--trace",
    "script",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Run this script in the environment, and let --scan follow the calls that it makes too.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="Most that --trace may take.",
)
@click.option("--fail-on-hit", is_flag=True, help="Exit 1 when the scan hits something.")
@click.option(
    "--index", "urls", multiple=True, metavar="URL", help="Package index, instead of the default; repeatable."
)
@click.option("--find-links", multiple=True, metavar="PATH", help="Folder (or page) with wheels besides; repeatable.")
@click.option("--offline", is_flag=True, help="Ask no index: of remote wheels what was read before.")
@click.option("--download", is_flag=True, help="Fetch a wheel whole where its server serves no parts of files.")
@click.option("--json", "json_path", type=click.Path(dir_okay=False), help="Write JSON; - for stdout.")
@click.option(
    "--markdown", "markdown_path", type=click.Path(dir_okay=False, path_type=Path), help="Write Markdown, for an issue."
)
@root_option
def command(
    name: str,
    arguments: tuple[str, ...],
    words: tuple[str, ...],
    matrix: Path | None,
    patterns: tuple[str, ...],
    match: str | None,
    scans: tuple[str, ...],
    depth: int,
    unresolved: bool,
    uses: bool,
    within: tuple[str, ...],
    diff: bool,
    script: Path | None,
    timeout: float,
    fail_on_hit: bool,
    urls: tuple[str, ...],
    find_links: tuple[str, ...],
    offline: bool,
    download: bool,
    json_path: str | None,
    markdown_path: Path | None,
    root: Path,
) -> ExitCode:
    """Read what a library has under a dotted NAME: nothing is imported, and nothing is installed.

    Without --scan, --uses or --diff: its surface, with signatures and defaults. Versions that are only on an index are
    read out of the remote wheels, in parts. What a scan does not find, it says how far it looked for.

    \b
    bisect-env inspect torch.nn.attention.flex_attention --in .venv --match compile
    bisect-env inspect torch.nn.attention.flex_attention.create_block_mask --in torch==2.11.0 --scan Tracer --depth 8
    bisect-env inspect torch.fx._symbolic_trace._is_fx_tracing_flag --in torch==2.8..2.15 --uses
    bisect-env inspect torch.compile --in .venv --scan _is_fx_tracing --trace train.py -- --steps 3
    """
    wanted = Wanted(
        Asked(
            name,
            surface=match is not None or not (scans or uses or diff),
            match=match,
            patterns=scans,
            depth=depth,
            uses=uses,
            distribution=name.partition(".")[0],
            within=within,
        ),
        diff,
        script,
        arguments,
    )
    check(wanted)
    if not words and matrix is None:
        raise BadInput("--in", "", "no place to read it from", PLACES)
    if within and not uses:
        raise BadInput("--within", "", "no --uses, which is what it is for", "--uses as well")
    if fail_on_hit and not scans:
        raise BadInput("--fail-on-hit", "", "no scan", "--scan REGEX as well")
    check_writable(json_path, None, [("--markdown", markdown_path)])
    traffic, began = Traffic(), time.monotonic()
    with ends_cleanly():
        asked = inspect_places.Asked(words, matrix, patterns, IndexChoice(None, urls, find_links, offline), download)
        places = inspect_places.opened(asked, wanted.asked.distribution, project_folder(root), traffic)
        traced = None
        if script is not None:
            python = interpreter(places.words, len(places.sources))
            traced = trace(python, script, arguments, timeout, wanted.asked.distribution)
        found = replace(inspect(places.sources, wanted, traffic, traced, began), notes=(*places.notes, *traffic.notes))
    # Python would search all that was parsed for garbage at its end, which took longer than the scan had.
    gc.freeze()
    narrow = sys.stdout is not None and sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if narrow else WIDE
    further = [("--markdown", markdown_path, report.as_markdown(found, unresolved))] if markdown_path else []
    structure = "" if json_path is None else json.dumps(document(found), indent=2)
    deliver(report.describe(found, width, unresolved), structure, json_path, None, "", further)
    hit = any(place.scan is not None and place.scan.hits for place in found.places)
    return ExitCode.REGRESSION if fail_on_hit and hit else ExitCode.PASSED
