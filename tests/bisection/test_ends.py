"""Whether two ends differ: how soon it is seen, and how often it is wrong."""

from __future__ import annotations

import random

import pytest

from bisect_env.bisection.ends import FIRST, Ends, judge, line_differs, next_size
from bisect_env.search.records import Tally


def test_the_ends_of_a_bisection() -> None:
    assert judge(Tally(0, 4), Tally(4, 0), 0.95) is Ends.DIFFER
    assert judge(Tally(0, 4), Tally(2, 2), 0.95) is Ends.OPEN
    assert judge(Tally(0, 32), Tally(0, 32), 0.95) is Ends.NOT_REPRODUCED
    assert judge(Tally(6, 2), Tally(6, 2), 0.95) is Ends.GOOD_FAILS


def test_a_line_whose_ends_differ_is_seen_at_the_first_look() -> None:
    assert line_differs(Tally(0, FIRST), Tally(FIRST, 0), 0.95, 0.9) is True
    assert line_differs(Tally(), Tally(FIRST, 0), 0.95, 0.9) is None


def test_a_frequent_failure_need_not_be_looked_for_for_long() -> None:
    assert line_differs(Tally(0, 8), Tally(0, 8), 0.95, 0.9) is False
    assert line_differs(Tally(0, 8), Tally(0, 8), 0.95, 0.2) is None
    assert line_differs(Tally(7, 1), Tally(7, 1), 0.95, 0.9) is False
    # A failure or two by chance at the one or the other end are not worth a search.
    assert line_differs(Tally(0, 15), Tally(1, 15), 0.95, 0.9) is False


def told(low: float, high: float, rate: float, seed: int) -> tuple[bool, int]:
    """What is said of such ends, and after how many trials of each."""
    draw = random.Random(seed)
    tallies = [Tally(), Tally()]
    while (said := line_differs(tallies[0], tallies[1], 0.95, rate)) is None:
        size = next_size(tallies[0].counted)
        for index, chance in enumerate((low, high)):
            failures = sum(draw.random() < chance for _ in range(size))
            tallies[index] += Tally(failures, size - failures)
    return said, tallies[0].counted


@pytest.mark.parametrize("rate", [0.9, 0.5, 0.2, 0.05])
def test_it_comes_to_an_end_and_is_hardly_ever_wrong(rate: float) -> None:
    runs = range(200)
    for low, high, truth in ((0.0, rate, True), (rate, rate, False), (0.01, 0.01, False)):
        found = [told(low, high, rate, seed) for seed in runs]
        # 5 % of 200 are 10; 20 or more have a chance of 0.3 %.
        assert sum(said is not truth for said, _ in found) < 20, (low, high)
        assert max(trials for _, trials in found) < 26 / rate + 2 * FIRST
