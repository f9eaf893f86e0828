"""A finding as ``--format``, ``--json`` and ``-o`` want it, and the exit code it stands for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from bisect_env.bisection import log
from bisect_env.bisection.records import Answer, Finding, Plan
from bisect_env.cli.common import Command
from bisect_env.cli.output import check_writable, file_options, html_option, nothing_tried, put_in_forms, write
from bisect_env.errors import ExitCode
from bisect_env.report import bisection, bisection_machine, bisection_plan

LOCKS = ("good.lock.txt", "bad.lock.txt")
"""Names of the two sides of the smallest difference, in the bisection's folder."""
CODES = {
    Answer.CULPRIT: ExitCode.PASSED,
    Answer.PAIR: ExitCode.PASSED,
    Answer.RANGE: ExitCode.PASSED,
    Answer.NOT_REPRODUCED: ExitCode.REGRESSION,
    Answer.GOOD_FAILS: ExitCode.REGRESSION,
    Answer.NONE: ExitCode.INCONCLUSIVE,
    Answer.INCONCLUSIVE: ExitCode.INCONCLUSIVE,
    Answer.MISFIT: ExitCode.INCONCLUSIVE,
    Answer.NOTHING: ExitCode.NOTHING_TO_COMPARE,
}


@dataclass(frozen=True)
class Output:
    """Where the report goes, and in which form."""

    fmt: str | None
    json_path: str | None
    path: Path | None
    html: Path | None = None

    def check(self) -> None:
        """Raises BadInput when a file could not be written in the end."""
        check_writable(self.json_path, self.path, [("--html", self.html)])


def options(function: Command) -> Command:
    """Adds ``--format``, ``--json``, ``-o`` and ``--html`` of a report."""
    fmt = click.option("--format", "fmt", type=click.Choice(bisection.FORMATS), help="Of the report. Default: text.")
    files = file_options("Write the report to a file too; Markdown where it is called *.md.")
    return fmt(files(html_option(function)))


def put(found: Finding, folder: Path | None, output: Output) -> None:
    """Print the report and write the files, the two locks into the bisection's ``folder`` among them.

    Raises:
        InfrastructureError: one cannot be written.
    """
    files = None
    if found.locks is not None and folder is not None:
        paths = [folder / name for name in LOCKS]
        for path, lock in zip(paths, found.locks, strict=True):
            write("the bisection's folder", path, lock.rstrip("\n"))
        files = (str(paths[0]), str(paths[1]))
    put_in_forms(
        lambda form, width: bisection.report(found, form, width, files),
        lambda: bisection_machine.document(found),
        output.fmt,
        output.json_path,
        output.path,
        _html(found, folder, files, output.html),
    )


def _html(
    found: Finding, folder: Path | None, files: tuple[str, str] | None, path: Path | None
) -> list[tuple[str, Path, str]]:
    if path is None:
        return []
    from bisect_env.report.html.bisection import page

    history = None if folder is None else log.read(folder / log.FILE)
    return [("--html", path, page(found, history, files))]


def put_plan(plan: Plan, output: Output) -> None:
    """Print what would be done, and write the files.

    Raises:
        InfrastructureError: one cannot be written.
    """
    nothing_tried(html=output.html)
    put_in_forms(
        lambda form, width: bisection_plan.describe(plan, form, width),
        lambda: bisection_machine.plan(plan),
        output.fmt,
        output.json_path,
        output.path,
    )
