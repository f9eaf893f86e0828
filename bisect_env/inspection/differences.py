"""How a module, class or function differs between two places."""

from __future__ import annotations

from bisect_env.inspection.records import Sources


def difference(before: Sources, after: Sources, dotted: str) -> str:
    """A unified diff; empty when the texts are the same."""
    raise NotImplementedError
