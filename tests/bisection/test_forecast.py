"""How long a stage still takes, by what was learnt in it so far."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisect_env.bisection.forecast import Forecast, entropy
from bisect_env.bisection.records import Stage


def even(number: int) -> list[tuple[str, float]]:
    return [(str(index), 1 / number) for index in range(number)]


def test_half_of_it_learnt_takes_as_long_again() -> None:
    forecast = Forecast()
    end = entropy([0.95, 0.05])
    assert forecast.remaining(Stage.FACTORS, even(16), 0.95, 100.0) is None, "nothing was learnt yet"
    assert forecast.remaining(Stage.FACTORS, even(4), 0.95, 160.0) == pytest.approx((2 - end) / 2 * 60)
    assert forecast.remaining(Stage.FACTORS, [("0", 1.0)], 0.95, 200.0) == 0.0
    assert forecast.remaining(Stage.FACTORS, even(32), 0.95, 210.0) is None, "less certain than at its beginning"


def test_every_stage_begins_anew() -> None:
    forecast = Forecast()
    forecast.remaining(Stage.FACTORS, even(16), 0.95, 0.0)
    assert forecast.remaining(Stage.FACTORS, even(2), 0.95, 30.0) is not None
    assert forecast.remaining(Stage.VERSIONS, even(8), 0.95, 31.0) is None
    assert forecast.remaining(Stage.CONFIRM, [], 0.95, 90.0) is None


def test_what_was_learnt_and_lost_again_tells_nothing() -> None:
    forecast = Forecast()
    forecast.remaining(Stage.VERSIONS, even(4), 0.95, 0.0)
    assert forecast.remaining(Stage.VERSIONS, even(8), 0.95, 10.0) is None


@given(st.lists(st.floats(0.001, 1), min_size=1, max_size=50))
def test_entropy_is_between_nothing_and_that_of_even_chances(weights: list[float]) -> None:
    chances = [weight / sum(weights) for weight in weights]
    assert -1e-9 <= entropy(chances) <= entropy([1 / len(chances)] * len(chances)) + 1e-9
