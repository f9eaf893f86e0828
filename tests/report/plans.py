"""Plans for the tests of their reports."""

from __future__ import annotations

from bisect_env.explanation.planned import Needed, Planned, Series


def planned() -> Planned:
    """Of a cell with a stale cache, of which one witnessed trial is stored."""
    environments = (
        Needed("torch-2.11.0", "a" * 16, False, 51, 2_800_000_000),
        Needed("older", "b" * 16, True, 50, None),
    )
    return Planned(
        "torch-2.11.0", environments, 2_800_000_000, 6_000_000_000, 9_000_000_000, True,
        Series(1, 2, 11), Series(0, 3, 3), Series(3, 0, 0), 3, 700.0, False,
    )  # fmt: skip
