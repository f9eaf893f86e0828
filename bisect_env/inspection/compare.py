"""A surface across places."""

from __future__ import annotations

from collections.abc import Sequence

from bisect_env.inspection.records import Change, Surface


def across(surfaces: Sequence[Surface]) -> tuple[Change, ...]:
    """A row for each name of any place; the asked name itself first, under its own name."""
    raise NotImplementedError
