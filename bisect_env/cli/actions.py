"""What GitHub Actions shows of a command that runs there; anywhere else, nothing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from bisect_env.cli.common import complain
from bisect_env.report import github
from bisect_env.report.checks import Check


def tell(title: str, checks: Sequence[Check], markdown: str, file: Path | None = None) -> None:
    """Annotate the step and append to its summary. A summary that cannot be written is said, and changes no exit code.

    Annotations go to standard error, which the runner reads as well: standard output may be a document for programs.

    Args:
        title: ``matrix laptop``; the summary's heading and the beginning of every annotation.
        checks: what is annotated.
        markdown: of the summary.
        file: that the annotations point to, where it lies in the repository.
    """
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return
    for line in github.commands(title, checks, _in_repository(file)):
        complain(line)
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if not path:
        return
    try:
        with Path(path).open("ab") as stream:
            stream.write(github.summary(f"## bisect-env {title}\n\n{markdown}\n", stream.tell()))
    except OSError as error:
        complain(f"GITHUB_STEP_SUMMARY: {path} cannot be written: {error.strerror}")


def _in_repository(file: Path | None) -> str:
    root = Path(os.environ.get("GITHUB_WORKSPACE") or ".").absolute()
    whole = None if file is None else file.absolute()
    return whole.relative_to(root).as_posix() if whole is not None and whole.is_relative_to(root) else ""
