"""All reports of a gate, and the exit code that its decision stands for."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import click

from bisect_env.cli.output import Command, check_writable, deliver, file_options, html_option
from bisect_env.errors import ExitCode
from bisect_env.gate.records import Decision, GateResult
from bisect_env.report import gate, gate_machine

WIDE = 120
"""Characters a line in files and pipes, and at most on a terminal."""
CODES = {
    Decision.PASS: ExitCode.PASSED,
    Decision.FAIL: ExitCode.REGRESSION,
    Decision.INCONCLUSIVE: ExitCode.INCONCLUSIVE,
    Decision.NOT_ASKED: ExitCode.INCONCLUSIVE,
}


@dataclass(frozen=True)
class Output:
    """Where the reports go, and in which form."""

    fmt: str | None
    json_path: str | None
    path: Path | None
    html: Path | None = None

    def check(self) -> None:
        """Raises BadInput when a file could not be written in the end."""
        check_writable(self.json_path, self.path, [("--html", self.html)])


def options(function: Command) -> Command:
    """Adds ``--format``, ``--json``, ``-o`` and ``--html`` of the report."""
    fmt = click.option("--format", "fmt", type=click.Choice(gate.FORMATS), help="Of the report. Default: text.")
    files = file_options("Write the report to a file too; Markdown where it is called *.md.")
    return fmt(files(html_option(function)))


def put(result: GateResult, output: Output) -> None:
    """Print the report and write every file that was asked for: the one place where a gate's reports are made.

    Raises:
        InfrastructureError: one cannot be written.
    """
    narrow = sys.stdout is not None and sys.stdout.isatty()
    width = min(WIDE, shutil.get_terminal_size().columns) if narrow else WIDE
    document = json.dumps(gate_machine.document(result), indent=2) if output.json_path is not None else ""
    written = ""
    if output.path is not None:
        by_name = "markdown" if output.path.suffix.lower() == ".md" else "text"
        written = gate.report(result, output.fmt or by_name, WIDE)
    shown = gate.report(result, output.fmt or "text", width)
    deliver(shown, document, output.json_path, output.path, written, _html(result, output.html))


def _html(result: GateResult, path: Path | None) -> list[tuple[str, Path, str]]:
    if path is None:
        return []
    from bisect_env.report.html.gate import page

    return [("--html", path, page(result))]
