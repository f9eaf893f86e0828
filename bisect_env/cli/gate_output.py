"""All reports of a gate, and the exit code that its decision stands for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click

from bisect_env import __version__
from bisect_env.cli import actions
from bisect_env.cli.common import Command
from bisect_env.cli.output import check_writable, file_options, html_option, junit_option, nothing_tried, put_in_forms
from bisect_env.errors import ExitCode
from bisect_env.gate.records import Decision, GateResult
from bisect_env.report import gate, gate_machine
from bisect_env.report.checks import of_gate

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
    junit: Path | None = None
    change: Path | None = None
    """The file that tells the change, to which annotations point."""

    def check(self) -> None:
        """Raises BadInput when a file could not be written in the end."""
        check_writable(self.json_path, self.path, [("--html", self.html), ("--junit", self.junit)])


def options(function: Command) -> Command:
    """Adds ``--format``, ``--json``, ``-o``, ``--html`` and ``--junit`` of the report."""
    fmt = click.option("--format", "fmt", type=click.Choice(gate.FORMATS), help="Of the report. Default: text.")
    files = file_options("Write the report to a file too; Markdown where it is called *.md.")
    return fmt(files(html_option(junit_option(function))))


def put(result: GateResult, output: Output) -> None:
    """Print the report and write every file that was asked for: the one place where a gate's reports are made.

    Raises:
        InfrastructureError: one cannot be written.
    """
    put_in_forms(
        partial(gate.report, result),
        partial(gate_machine.document, result),
        output.fmt,
        output.json_path,
        output.path,
        _further(result, output),
    )
    actions.tell("gate", of_gate(result), gate.report(result, "markdown"), output.change)


def put_plan(result: GateResult, output: Output) -> None:
    """Print what a gate would do, and write the files; ``result``: of one that nothing was run for.

    Raises:
        InfrastructureError: one cannot be written.
    """
    nothing_tried(html=output.html, junit=output.junit)
    put_in_forms(
        partial(gate.plan, result), partial(gate_machine.document, result), output.fmt, output.json_path, output.path
    )


def _further(result: GateResult, output: Output) -> list[tuple[str, Path, str]]:
    """The files that are made only when they are asked for."""
    files = []
    if output.html is not None:
        from bisect_env.report.html.gate import page

        files.append(("--html", output.html, page(result)))
    if output.junit is not None:
        from bisect_env.report.junit import document

        sides = (result.baseline, result.candidate)
        facts = [(side.name, side.snapshot.origin) for side in sides]
        facts += [("decision", result.decision.value), ("gate", result.id), ("bisect-env", __version__)]
        began = min((sample.record.started for side in sides for sample in side.samples), default=0.0)
        files.append(("--junit", output.junit, document("gate", of_gate(result), facts, began)))
    return files
