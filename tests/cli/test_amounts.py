"""Durations, budgets, thresholds and assignments as a command line has them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisect_env.bisection.records import Budget, Measure, Question
from bisect_env.cli import amounts
from bisect_env.matrix.problems import Unfit


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("20m", 1200), ("20min", 1200), ("2h", 7200), ("1h30m", 5400), ("1.5h", 5400), (" 1H 30M ", 5400)],
)
def test_durations(text: str, seconds: float) -> None:
    assert amounts.duration(text) == seconds


@given(hours=st.integers(0, 99), minutes=st.integers(0, 99), seconds=st.integers(0, 999))
def test_a_duration_is_the_sum_of_its_parts(hours: int, minutes: int, seconds: int) -> None:
    assert amounts.duration(f"{hours}h{minutes}m{seconds}s") == 3600 * hours + 60 * minutes + seconds


@pytest.mark.parametrize("text", ["", "90", "-5m", "1h30", "two hours", "5 weeks", "1e3s", "nan", "inf"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(Unfit, match="no duration"):
        amounts.duration(text)


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        ([], Budget()),
        (["200 trials"], Budget(trials=200)),
        (["1 trial"], Budget(trials=1)),
        (["200trials, 2h"], Budget(200, 7200)),
        (["2h", "200 trials"], Budget(200, 7200)),
    ],
)
def test_budgets(texts: list[str], found: Budget) -> None:
    assert amounts.budget(texts) == found


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["200"], "'200 trials', 200m or 200h"),
        (["0 trials"], "a budget of nothing"),
        (["0s"], "a budget of nothing"),
        (["2h, 3h"], "after another limit of that kind"),
        (["2 trials", "3 trials"], "after another limit of that kind"),
        (["much"], "'much' is no budget"),
        ([""], "'' is no budget"),
    ],
)
def test_what_is_no_budget(texts: list[str], words: str) -> None:
    with pytest.raises(Unfit) as error:
        amounts.budget(texts)
    assert words in str(error.value)


def test_questions() -> None:
    assert amounts.question("failure", True, "FX", "good") == Question(any_failure=True, signature="FX", hang="good")
    slow = amounts.question("throughput<20k", False, None, "bad")
    assert (slow.measure, slow.threshold) == (Measure.THROUGHPUT_BELOW, 20_000)
    large = amounts.question(" memory > 1.5 GiB", False, None, "bad")
    assert (large.measure, large.threshold) == (Measure.MEMORY_ABOVE, 1.5 * 2**30)


@pytest.mark.parametrize("text", ["", "throughput", "throughput>5", "memory<5GB", "memory>0", "memory>5 apples"])
def test_what_is_no_question(text: str) -> None:
    with pytest.raises(Unfit) as error:
        amounts.question(text, False, None, "bad")
    assert "throughput<20000" in error.value.wanted


def test_timeouts() -> None:
    assert amounts.timeout("10m") == (600, "bad")
    assert amounts.timeout("10m:good") == (600, "good")
    assert amounts.timeout("skip") == (None, "skip")
    for text in ("10m:fine", "10", "fine", ":"):
        with pytest.raises(Unfit):
            amounts.timeout(text)


def test_assignments() -> None:
    assert amounts.assignment("A=b=c", "") == ("A", "b=c") and amounts.assignment("A=", "") == ("A", "")
    for text in ("A", "=b"):
        with pytest.raises(Unfit) as error:
            amounts.assignment(text, "NAME=VALUE")
        assert error.value.wanted == "NAME=VALUE"
