"""From the words of a user to the places that modules are read from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bisect_env.inspection.installed import installed
from bisect_env.inspection.records import Sources
from bisect_env.matrix.cells import IndexChoice


def open_origins(
    words: Sequence[str],
    distribution: str,
    index: IndexChoice,
    root: Path,
) -> tuple[Sources, ...]:
    """The places that ``words`` name, in their order.

    Raises:
        BadInput: a word names nothing.
        InfrastructureError: what it names cannot be read now.
    """
    return tuple(installed(word, distribution) for word in words)
