"""Which lines that patterns match can be reached from a function, and by which path."""

from __future__ import annotations

from collections.abc import Sequence

from bisect_env.inspection.records import Call, Scan, Sources


def scan(
    sources: Sources,
    dotted: str,
    patterns: Sequence[str],
    depth: int,
    observed: Sequence[Call] = (),
    *,
    comments: bool = False,
) -> Scan:
    """Search the source of every function that is reached in at most ``depth`` calls."""
    raise NotImplementedError
