"""What a matrix would do, and what its cells' torch shares, as a JSON document for programs."""

from __future__ import annotations

from typing import Any

from bisect_env.matrix.urls import without_credentials
from bisect_env.report import dry_run, static_facts
from bisect_env.report.machine import plain

SCHEMA = 1
"""Grows when a key is renamed, removed or changes its meaning; not when one is added."""


def document(matrix: str, dry: dry_run.DryRun | None, shared: static_facts.Shared | None) -> dict[str, Any]:
    """Everything that the tables rest on, fit for ``json.dumps``; what was not asked for is null.

    Args:
        matrix: its name.
        dry: of ``--dry-run``.
        shared: of ``--static``.
    """
    result = {
        "schema": SCHEMA,
        "matrix": matrix,
        "run": dry and dry_run.structure(dry),
        "static": shared and static_facts.structure(shared),
    }
    clean: dict[str, Any] = plain(result, without_credentials)
    return clean
