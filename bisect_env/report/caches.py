"""What the state of the compile cache does: a cell's twins that differ in ``cache`` only, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from bisect_env.report.rows import Row
from bisect_env.report.twins import groups, level_of
from bisect_env.verdicts.samples import by_side, counted

KEY = "cache"


@dataclass(frozen=True)
class Cached:
    """One state of the compile cache of one cell."""

    row: Row
    cache: str
    """``cold``, ``warm``, ``stale``, or a folder."""
    hits: float | None
    """Median over the threaded trials; None where none counted them."""
    misses: float | None


def caches(rows: Sequence[Row]) -> tuple[tuple[Cached, ...], ...]:
    """For each cell that the matrix has under several states of the cache, these states."""
    return tuple(tuple(_cached(row) for row in group) for group in groups(rows, KEY))


def _cached(row: Row) -> Cached:
    records = counted(by_side(row.samples).threads)
    hits = [record.cache_hits for record in records if record.cache_hits is not None]
    misses = [record.cache_misses for record in records if record.cache_misses is not None]
    return Cached(row, level_of(row, KEY), median(hits) if hits else None, median(misses) if misses else None)
