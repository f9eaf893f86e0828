"""``bisect-env diff``: in what two environments differ, as the factors that a bisection would search."""

from __future__ import annotations

import json
from pathlib import Path

import click

from bisect_env.cli.common import ends_cleanly, root_option, say, stored
from bisect_env.environments.index import SimpleIndex
from bisect_env.errors import BadInput, ExitCode
from bisect_env.matrix.cells import IndexChoice
from bisect_env.report import difference
from bisect_env.snapshots import pinning, sources
from bisect_env.snapshots.records import Snapshot

EPILOG = """\b
Exit codes:
  0  there are factors to compare
  2  one of the two cannot be read
  4  nothing to compare: they do not differ in anything that can be changed here
"""


@click.command("diff", short_help="In what two environments differ.", epilog=EPILOG)
@click.argument("good", metavar="A")
@click.argument("bad", metavar="B")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
@click.option(
    "--index", "urls", multiple=True, metavar="URL", help="Package index, instead of the default; repeatable."
)
@click.option("--find-links", multiple=True, metavar="PATH", help="Folder (or page) with wheels besides; repeatable.")
@click.option("--offline", is_flag=True, help="Ask no index: what moves together is then known of torch's family only.")
@root_option
def command(
    good: str, bad: str, as_json: bool, urls: tuple[str, ...], find_links: tuple[str, ...], offline: bool, root: Path
) -> ExitCode:
    """Print the factors in which A and B differ: what can be changed alone, with its two levels.

    A and B are whatever there is: pip freeze or pip list, requirements, uv.lock, pylock.toml, conda list, a
    collect_env report, a capture in a file; - for standard input; main:uv.lock as of a git revision; cell:ID of the
    store; an environment's folder; 'host:ssh gpu3'.

    Distributions that no environment can have at different levels are one factor. What they require of each other
    is asked of the index.

    \b
    bisect-env diff good.txt bad.txt
    bisect-env diff main:uv.lock uv.lock
    ssh gpu3 pip freeze | bisect-env diff good.txt - --json
    """
    if good == bad == sources.STDIN:
        raise BadInput("A and B", "", "standard input for both", "a file for one of them")
    with ends_cleanly():
        ours, theirs = (snapshot(spec, root) for spec in (good, bad))
        index = IndexChoice(None, urls, find_links, offline)
        found = pinning.differing(ours, theirs, index, SimpleIndex(), pinning.installed((good, bad)))
    if as_json:
        say(json.dumps(difference.structure(ours, theirs, found), indent=2))
    else:
        say(difference.text(ours, theirs, found))
    return ExitCode.PASSED if found.factors else ExitCode.NOTHING_TO_COMPARE


def snapshot(spec: str, root: Path) -> Snapshot:
    """The snapshot that an argument names; only a stored cell needs the store."""
    if not spec.startswith("cell:"):
        return sources.snapshot(spec)
    with stored(root) as store:
        return sources.snapshot(spec, store)
