"""How long a search still takes."""

from __future__ import annotations

import pytest

from bisect_env.bisection.pace import Pace, uncertainty
from bisect_env.bisection.records import Stage


def among(count: int) -> list[tuple[str, float]]:
    return [(str(number), 1 / count) for number in range(count)]


def test_bits_gained_in_the_seconds_so_far_are_continued() -> None:
    pace = Pace(0.95)
    aim = uncertainty([("a", 0.95), ("b", 0.05)])
    assert pace.left(Stage.FACTORS, among(16), 100.0) is None
    assert pace.left(Stage.FACTORS, among(4), 120.0) == pytest.approx((2 - aim) * 10)
    assert pace.left(Stage.FACTORS, [("a", 1.0)], 140.0) == 0
    # What came to look less certain says nothing of the time.
    assert pace.left(Stage.FACTORS, among(32), 150.0) is None


def test_another_stage_begins_anew() -> None:
    pace = Pace(0.95)
    pace.left(Stage.FACTORS, among(16), 0.0)
    assert pace.left(Stage.VERSIONS, among(4), 50.0) is None
