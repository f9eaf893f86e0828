"""``bisect-env unbundle``: takes in what was delivered of a bundle."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from pathlib import Path

import click

from bisect_env.bundles import hosts
from bisect_env.bundles.absorb import Absorbed, absorb
from bisect_env.bundles.records import DELIVERED, PROJECT
from bisect_env.bundles.standing import Standing
from bisect_env.cli.common import complain, ends_cleanly, project_folder, root_option, say
from bisect_env.errors import ExitCode

FEW = 5
"""Names of a kind that are listed."""


@click.command("unbundle", short_help="Take in a bundle, or the parts of it that have arrived.")
@click.argument("sources", metavar="SRC...", nargs=-1, required=True, type=click.Path(path_type=Path))
@root_option
@click.option(
    "--into",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder to gather everything in. Default: bundle, in the folder that --store names.",
)
@click.option(
    "--python",
    type=click.Path(path_type=Path),
    help="Interpreter whose installed packages the bundle left out. Default: python3 on PATH, then this one's.",
)
def command(sources: tuple[Path, ...], root: Path, into: Path | None, python: Path | None) -> ExitCode:
    """Take in what SRC has of a bundle: the whole folder, or any parts of it, and its manifest once.

    Parts are checked and taken in one by one: SRC may be deleted afterwards, and the next delivery may bring others.
    It may run beside a matrix that uses the same folder. Exit codes: 0 everything is there, 3 parts are missing, 2
    something that was delivered is damaged.

    \b
    bisect-env unbundle /mnt/usb/bundle
    bisect-env unbundle delivery1 --into bundle; rm -r delivery1
    bisect-env matrix my.yaml --bundle bundle
    """
    folder = into.resolve() if into is not None else project_folder(root) / DELIVERED
    pythons = (python,) if python is not None else hosts.own()
    began = time.monotonic()
    with ends_cleanly():
        absorbed = absorb(sources, folder, pythons, complain)
    seconds = time.monotonic() - began
    say("\n".join((*_delivery(absorbed, seconds), *_standing(absorbed, folder))))
    if absorbed.damaged:
        return ExitCode.USAGE
    whole = absorbed.standing is not None and not absorbed.standing.lacking()
    return ExitCode.PASSED if whole else ExitCode.INCONCLUSIVE


def _delivery(absorbed: Absorbed, seconds: float) -> list[str]:
    lines = [f"{_count(len(absorbed.parts), 'part')} taken in, in {seconds:.1f} s"]
    if absorbed.known:
        lines[0] += f"; {absorbed.known} were there already"
    if absorbed.early:
        words = "no manifest that has arrived names them"
        lines.append(f"{_count(len(absorbed.early), 'part')} kept for later: {words}: {_few(absorbed.early)}")
    if absorbed.packed:
        names = [f"{wheel.name} {wheel.version}" for wheel in absorbed.packed]
        lines.append(f"{_count(len(names), 'wheel')} made of installed distributions: {_few(names)}")
    lines += [f"damaged: {line}" for line in absorbed.damaged]
    return lines


def _standing(absorbed: Absorbed, folder: Path) -> list[str]:
    standing = absorbed.standing
    into = shlex.quote(str(folder))
    if standing is None:
        return [
            f"No manifest.json yet: deliver the bundle's, and bisect-env unbundle SRC --into {into} with it in SRC."
        ]
    every = [cell for locked in standing.manifest.locked if locked.lock is not None for cell in locked.cells]
    cells = standing.cells
    lines = [f"complete: {len(cells)} of {_count(len(every), 'cell')}" + (f": {_few(cells)}" if cells else "")]
    lines += _missing(absorbed, standing, into)
    lines.append("")
    matrix = f"bisect-env matrix {shlex.quote(standing.manifest.matrix)} --bundle {into}"
    if cells:
        lines.append(f"Next, in the bundle's folder {PROJECT}: {matrix}")
    if standing.lacking():
        lines.append(
            f"{'Then' if cells else 'Next'}: bisect-env unbundle SRC --into {into}, with what is missing in SRC"
            + ("; the matrix can be run meanwhile, and again for the other cells" if cells else "")
        )
    return lines


def _missing(absorbed: Absorbed, standing: Standing, into: str) -> list[str]:
    lines = []
    parts = standing.missing_parts()
    if parts:
        sizes = dict(standing.manifest.part_bytes)
        total = sum(sizes.get(part, 0) for part in parts)
        names = _few([f"{part}.part" for part in parts])
        lines.append(f"missing: {_count(len(parts), 'part')}, {total / 1e6:.1f} MB: {names}")
    absent = standing.without_parts()
    for wheel in absent[:FEW]:
        reason = absorbed.differing.get(wheel.sha256, "what the folder had of it is gone")
        lines.append(f"missing: {wheel.name} {wheel.version}, which no part brings: {reason}")
    if len(absent) > FEW:
        lines.append(f"missing: {len(absent) - FEW} more that no part brings: they were said to be installed here")
    if absent:
        lines.append(
            "  Name the Python that has them (--python); or bundle again, which then brings them: "
            f"bisect-env inventory --bundle {into} -o have.json here, and bisect-env bundle --have have.json there"
        )
    return lines


def _few(names: Sequence[str]) -> str:
    rest = len(names) - FEW
    return ", ".join(names[:FEW]) + (f" and {rest} more" if rest > 0 else "")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"
