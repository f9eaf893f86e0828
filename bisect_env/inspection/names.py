"""What a dotted name stands for: through packages, re-exports, aliases and base classes."""

from __future__ import annotations

from bisect_env.inspection.records import Found, NotFound, Sources


def resolve(sources: Sources, dotted: str) -> Found | NotFound:
    """Where a dotted name is defined, re-exports followed."""
    raise NotImplementedError
