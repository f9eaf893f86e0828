from __future__ import annotations

from bisect_env.report.caches import caches
from tests.report.build import Judged, row, under


def cached(cache: str, threads: str = "......", torch: str = "2.11.0", **more: int) -> Judged:
    return under(row(torch, "5.6.0", threads, **more), "cache", cache)


def test_the_states_of_one_cell_stand_together() -> None:
    rows = [
        cached("cold", "FFFFFF", cache_hits=0, cache_misses=7),
        cached("cold", torch="2.14.1"),
        cached("warm", cache_hits=7, cache_misses=0),
        cached("stale", cache_misses=8),
        cached("warm", torch="2.14.1"),
        cached("warm", torch="2.15.0"),
    ]
    found = caches(rows)
    assert [[(item.cache, item.hits, item.misses) for item in group] for group in found] == [
        [("cold", 0, 7), ("warm", 7, 0), ("stale", None, 8)],
        [("cold", None, None), ("warm", None, None)],
    ]
    assert found[0][2].row is rows[3]
