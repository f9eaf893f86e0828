"""Where a benchmark's tables go: to standard output, or into a document between the benchmark's own two lines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def put(lines: Sequence[str], document: Path | None, benchmark: str) -> None:
    """Print the tables, or put them into ``document`` in place of the ones of an earlier run.

    Args:
        lines: Markdown.
        document: the file; None: standard output.
        benchmark: the benchmark's file, whose name the two lines carry.

    Raises:
        SystemExit: the document lacks a line.
    """
    if document is None:
        print("\n".join(lines))
        return
    begin, end = (f"<!-- {Path(benchmark).name}: {word} -->" for word in ("begin", "end"))
    before, found, rest = document.read_text(encoding="utf-8").partition(begin)
    _, marked, after = rest.partition(end)
    if not found or not marked:
        raise SystemExit(f"{document} has no lines {begin} and {end} between which the tables go")
    document.write_text("\n".join([before + begin, "", *lines, "", end + after]), encoding="utf-8")
