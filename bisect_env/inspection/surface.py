"""What a module, class or function offers."""

from __future__ import annotations

from bisect_env.inspection.records import Sources, Surface


def surface(sources: Sources, dotted: str, match: str | None = None) -> Surface:
    """Names, kinds, signatures and debug switches; with ``match`` (regular expression) also private ones."""
    raise NotImplementedError
