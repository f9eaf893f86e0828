"""``bisect-env inventory``: what this host has, so that a bundle can leave it out."""

from __future__ import annotations

from pathlib import Path

import click

from bisect_env.bundles import hosts, inventory
from bisect_env.cli.common import say
from bisect_env.cli.output import check_writable, write
from bisect_env.errors import BadInput


@click.command("inventory", short_help="What this host has installed: a bundle leaves it out.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to a file.")
@click.option(
    "--python",
    type=click.Path(path_type=Path),
    help="Interpreter whose packages count, for example the one of a virtual environment. Default: python3 on PATH.",
)
@click.option(
    "--bundle",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder that an earlier bundle was unbundled into: its wheels are left out too.",
)
@click.option("--script", is_flag=True, help="Print a program that does the same on a host that has only Python.")
def command(output: Path | None, python: Path | None, bundle: Path | None, script: bool) -> None:
    """Print, as JSON, what this host has: for `bisect-env bundle --have`.

    \b
    bisect-env inventory --python /opt/venv/bin/python -o have.json
    bisect-env inventory --script > inventory.py     # for a host that has nothing yet:
    ssh HOST python3 - < inventory.py > have.json
    """
    check_writable(None, output)
    if script:
        text = inventory.script()
    else:
        if bundle is not None and not bundle.is_dir():
            raise BadInput("--bundle", "", f"there is no folder {bundle}", "the --into of an earlier unbundle")
        text = hosts.ask(python or hosts.own()[0], bundle)
    if output is None:
        say(text)
    else:
        write("--output", output, text, advice="")
