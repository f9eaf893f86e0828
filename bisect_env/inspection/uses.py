"""Who sets and who reads a module-level name."""

from __future__ import annotations

from collections.abc import Sequence

from bisect_env.inspection.records import Sources, Uses


def uses(sources: Sources, dotted: str, distribution: str, within: Sequence[str] | None = None) -> Uses:
    """Stores and reads of a name in the modules ``within``; in all of a distribution unless they are given."""
    raise NotImplementedError
