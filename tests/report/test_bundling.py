"""What `bisect-env bundle` says of how much is ahead."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from bisect_env.report.bundling import LineReporter


@pytest.mark.parametrize(
    ("phase", "count", "says"),
    [
        ("resolve", 1, "Resolving: 1 environment to resolve"),
        ("resolve", 2, "Resolving: 2 environments to resolve"),
        ("fetch", 1, "Fetching: 1 wheel to fetch"),
        ("write", 3, "Writing: 3 parts to write"),
    ],
)
def test_one_is_not_said_as_many(phase: str, count: int, says: str) -> None:
    told = io.StringIO()
    LineReporter(Console(file=told, width=200)).phase(phase, count, 0)
    assert told.getvalue().rstrip().endswith(says)
