"""The report of a matrix as ``--format``, ``--json`` and ``-o`` want it."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path

import click

from bisect_env import __version__
from bisect_env.cli.common import Command, complain, say
from bisect_env.engine.results import Result
from bisect_env.errors import BadInput, InfrastructureError
from bisect_env.matrix.cells import Matrix
from bisect_env.report import dry_run, machine, plan_machine, sections, static_facts
from bisect_env.report.checks import Check
from bisect_env.report.origin import Origin

WIDE = 120
"""Characters a line in files and pipes, and at most on a terminal."""
LONGEST = 4096
"""A longer word is no path on any system."""
MEASURED = "\n  Everything measured is kept: the same command writes it without measuring again."
"""What to do about a report that could not be written."""


def options(function: Command) -> Command:
    """Adds ``--format``, ``--json`` and ``-o`` of a table."""
    fmt = click.option(
        "--format", "fmt", default="simple", show_default=True, help="Format of the table: any of tabulate's."
    )
    return fmt(file_options("Write the table to a file too.")(function))


def file_options(output_help: str) -> Callable[[Command], Command]:
    """Adds ``--json`` and ``-o``."""

    def add(function: Command) -> Command:
        document = click.option(
            "--json", "json_path", type=click.Path(dir_okay=False, path_type=str), help="Write JSON; - for stdout."
        )
        text = click.option(
            "-o", "--output", "output_path", type=click.Path(dir_okay=False, path_type=Path), help=output_help
        )
        return document(text(function))

    return add


def junit_option(function: Command) -> Command:
    """Adds ``--junit``."""
    option = click.option(
        "--junit",
        "junit_path",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Write JUnit XML, as continuous integration services read it.",
    )
    return option(function)


def html_option(function: Command) -> Command:
    """Adds ``--html``."""
    option = click.option(
        "--html",
        "html_path",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Write the report as one HTML file too, with all evidence; it opens offline.",
    )
    return option(function)


def check_writable(
    json_path: str | None, output_path: Path | None = None, further: Sequence[tuple[str, Path | None]] = ()
) -> None:
    """A report that cannot be written must not be found out after an hour of trials.

    Args:
        json_path: of ``--json``.
        output_path: of ``--output``.
        further: other options that name a file, each with what was given.

    Raises:
        BadInput: a folder is missing, or may not be written, two are to go into one file, or one is a file that the
            same command line names for something else: what is to be read would be lost.
    """
    if json_path == "":
        raise BadInput("--json", "", "no file is named", "a file, or - for standard output")
    given = [("--json", _file(json_path)), ("--output", output_path), *further]
    files = [(option, path) for option, path in given if path is not None]
    for (one, path), (other, same) in combinations(files, 2):
        if path.resolve() == same.resolve():
            raise BadInput(f"{one} and {other}", "", f"{same} for both", "a file of its own for each")
    others = _named_besides({option for option, _ in given})
    for option, path in files:
        _check(option, path)
        if path.exists() and any(path.samefile(other) for other in others):
            raise BadInput(option, "", f"{path}, which this command line names as an input too", "another file")


def _named_besides(options: set[str]) -> list[Path]:
    """Existing files among all other values and words of the command line that is being run."""
    context = click.get_current_context(silent=True)
    if context is None:
        return []
    own = {param.name for param in context.command.params if options & set(param.opts)}
    words = [*context.meta.values()]
    for name, value in context.params.items():
        words += [value] if name not in own else []
    flat = [str(word) for value in words for word in (value if isinstance(value, tuple) else (value,))]
    return [Path(word) for word in flat if word and len(word) < LONGEST and Path(word).is_file()]


def _check(option: str, path: Path) -> None:
    try:
        if not path.parent.is_dir():
            raise BadInput(option, "", f"{path}: there is no folder {path.parent}", "a file in a folder that exists")
        able = os.access(path if path.exists() else path.parent, os.W_OK)
    except OSError as error:  # Of a name that is too long for a file, for instance.
        raise BadInput(option, "", f"{path}: {error.strerror}", "a file that can be written") from None
    if not able:
        raise BadInput(option, "", f"{path}: no permission to write it", "a file that you may write")


def put(
    results: Sequence[Result],
    matrix: Matrix,
    max_race_rate: float,
    fmt: str,
    json_path: str | None,
    output_path: Path | None,
    origin: Origin | None = None,
    further: Sequence[tuple[str, Path, str]] = (),
) -> None:
    """Print the report and write the files; ``further`` as for :func:`deliver`.

    Raises:
        InfrastructureError: one cannot be written.
    """
    # Files and pipes get what a wide terminal would show; a terminal gets what fits.
    # (A closed standard output is None.)
    narrow = sys.stdout is not None and sys.stdout.isatty() and output_path is None
    width = shutil.get_terminal_size().columns if narrow else 120
    text = sections.report(results, matrix, max_race_rate, fmt, width, origin)
    document = ""
    if json_path is not None:
        document = json.dumps(machine.document(results, matrix, max_race_rate, origin), indent=2)
    deliver(text, document, json_path, output_path, text, further)


def put_plan(
    matrix: str,
    dry: dry_run.DryRun | None,
    shared: static_facts.Shared | None,
    fmt: str,
    json_path: str | None,
    output_path: Path | None,
) -> None:
    """Print what a matrix would do (``dry``) and what its cells' torch shares, each where it was asked for, and write
    the files.

    Raises:
        InfrastructureError: one cannot be written.
    """
    parts = [dry_run.describe(dry, fmt)] if dry is not None else []
    parts += [static_facts.table(shared, WIDE, fmt)] if shared is not None else []
    document = json.dumps(plan_machine.document(matrix, dry, shared), indent=2) if json_path is not None else ""
    text = "\n\n".join(parts)
    deliver(text, document, json_path, output_path, text)


def put_in_forms(
    report: Callable[[str, int], str],
    document: Callable[[], object],
    fmt: str | None,
    json_path: str | None,
    output_path: Path | None,
    further: Sequence[tuple[str, Path, str]] = (),
) -> None:
    """Print a report that is text or Markdown, and write the files; ``further`` as for :func:`deliver`.

    Args:
        report: of a format and a width in characters.
        document: for ``--json``; made only where that is asked for.
        fmt: as ``--format`` says; else text, and in a file that is called ``*.md`` Markdown.
        json_path: of ``--json``.
        output_path: of ``--output``.

    Raises:
        InfrastructureError: one cannot be written.
    """
    narrow = sys.stdout is not None and sys.stdout.isatty()
    width = min(WIDE, shutil.get_terminal_size().columns) if narrow else WIDE
    text = json.dumps(document(), indent=2) if json_path is not None else ""
    written = ""
    if output_path is not None:
        by_name = "markdown" if output_path.suffix.lower() == ".md" else "text"
        written = report(fmt or by_name, WIDE)
    deliver(report(fmt or "text", width), text, json_path, output_path, written, further)


def junit(
    checks: Sequence[Check], matrix: Matrix, results: Sequence[Result], path: Path | None
) -> list[tuple[str, Path, str]]:
    """The file that ``--junit`` names, for :func:`put`; none without one."""
    if path is None:
        return []
    from bisect_env.report.junit import document

    facts = [("matrix", str(matrix.path)), ("reproducer", matrix.reproducer.name), ("bisect-env", __version__)]
    began = min((sample.record.started for result in results for sample in result.samples), default=0.0)
    return [("--junit", path, document(f"matrix {matrix.name}", checks, facts, began))]


def html(
    results: Sequence[Result], matrix: Matrix, max_race_rate: float, origin: Origin | None, path: Path | None
) -> list[tuple[str, Path, str]]:
    """The file that ``--html`` names, for :func:`put`; none without one."""
    if path is None:
        return []
    from bisect_env.report.html.matrix import page

    return [("--html", path, page(results, matrix, max_race_rate, origin))]


def nothing_tried(**options: object) -> None:
    """Say which of the files that were asked for are not written, where a command was only to tell what it would do.

    Args:
        options: by their names, each with what was given.
    """
    for name, given in options.items():
        if given is not None:
            complain(f"--{name}: nothing was tried, so that file is not written.")


def deliver(
    shown: str,
    document: str,
    json_path: str | None,
    output_path: Path | None,
    written: str,
    further: Sequence[tuple[str, Path, str]] = (),
) -> None:
    """Print a report, and write what was asked for, whatever becomes of the printing.

    Args:
        shown: the report as it is printed.
        document: the same as JSON, which is printed instead when ``json_path`` is ``-``.
        json_path: of ``--json``.
        output_path: of ``--output``.
        written: the report as that file gets it.
        further: other files, each with its option and its text.

    Raises:
        InfrastructureError: a file cannot be written.
    """
    file = _file(json_path)
    try:
        say(document if json_path == "-" else shown)
    finally:
        if file is not None:
            write("--json", file, document)
        if output_path is not None:
            write("--output", output_path, written)
        for option, path, text in further:
            write(option, path, text)


def _file(json_path: str | None) -> Path | None:
    return None if json_path in (None, "-") else Path(str(json_path))


def write(option: str, path: Path, text: str, advice: str = MEASURED) -> None:
    """Write a file that ``option`` names.

    Raises:
        InfrastructureError: it cannot be written; the message ends with the ``advice``.
    """
    try:
        path.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise InfrastructureError(f"{option}: {path} cannot be written: {error.strerror}{advice}") from error
