"""What making a bundle tells while it goes on. Several threads may call at once."""

from __future__ import annotations

from bisect_env.bundles.resolving import Resolved
from bisect_env.bundles.sources import Source


class Reporter:
    """Says nothing."""

    def note(self, text: str) -> None:
        """A sentence for the user."""

    def phase(self, name: str, count: int, total_bytes: int) -> None:
        """What comes now (``resolve``, ``fetch``, ``write``), of how many things and bytes; 0 bytes: not known."""

    def resolved(self, result: Resolved, seconds: float) -> None:
        """A request was resolved, or could not be."""

    def arrived(self, count: int) -> None:
        """So many bytes more were fetched or written."""

    def fetched(self, source: Source, seconds: float) -> None:
        """A wheel is there and proved."""

    def wrote(self, size: int) -> None:
        """A part of ``size`` bytes is there."""
