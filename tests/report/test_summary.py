from __future__ import annotations

from dataclasses import replace

from bisect_env.report.summary import recommended, sentence
from bisect_env.verdicts.looks import Design
from tests.report.build import laptop, row

MANY = Design(59, 59)


def test_nothing_is_recommended_on_six_clean_trials() -> None:
    assert sentence(laptop(), 0.05) == (
        "No cell can be recommended yet: that takes 59 clean trials, which show a race rate "
        "below 5 % (--trials, --max-race-rate). "
        "Avoid torch 2.11.0 transformers 4.52.4 (RACE 4/4), torch 2.11.0 transformers 5.8.1 (RACE 5/6). "
        "Dense, which raises no error and is slow: torch 2.14.1 transformers 5.8.1 (DENSE 31 %). "
        "Not yet known: torch 2.14.1 transformers 4.52.4 (FULL 0/6, below 39 %; 53 clean trials missing). "
        "Cannot run: torch 2.15.0 transformers 5.8.1 (UNRESOLVABLE)."
    )


def test_enough_clean_trials_are_a_recommendation() -> None:
    good = row("2.14.1", "4.52.4", "." * 59, "." * 59, MANY)
    assert recommended(good, 0.05)
    assert sentence([good, row("2.11.0", "5.8.1", "FFFF", "....")], 0.05) == (
        "Use torch 2.14.1 transformers 4.52.4: race rate below 5 % at 95 %. "
        "Avoid torch 2.11.0 transformers 5.8.1 (RACE 4/4)."
    )


def test_the_fastest_is_not_singled_out() -> None:
    rows = [row("2.14.1", version, "." * 59, "." * 59, MANY) for version in ("4.52.4", "4.57.1")]
    assert sentence(rows, 0.05).startswith("Use transformers 4.52.4, transformers 4.57.1: ")
    assert "each by itself" in sentence(rows, 0.05)


def test_trials_that_were_never_exposed_recommend_nothing() -> None:
    idle = row("2.14.1", "4.52.4", "." * 59, "." * 59, MANY, exposures=0)
    assert not recommended(idle, 0.05)
    assert "below 5 %; no call met another thread's compile" in sentence([idle], 0.05)


def test_long_lists_are_cut_and_one_line_stays_one_line() -> None:
    rows = [row(f"2.{minor}.0", "4.52.4", "FFFF", "....") for minor in range(9)]
    found = sentence(rows, 0.05)
    assert found.endswith("torch 2.3.0 (RACE 4/4) and 5 more.") and "\n" not in found
    assert sentence([], 0.05) == "No cell, so nothing to say."


def test_unsure_says_what_is_missing() -> None:
    found = row("2.11.0", "4.52.4", "FFF...")
    more = found.verdict.missing
    assert f"(UNSURE, {more} more trials needed)" in sentence([found], 0.05)
    nothing = replace(found.verdict, missing=0)
    assert "(UNSURE)" in sentence([replace(found, verdict=nothing)], 0.05)


def test_what_was_not_run_is_named_without_figures() -> None:
    found = sentence([row("2.11.0", "4.52.4", "FFF..."), row("2.12.1", "4.52.4", "", "")], 0.05)
    assert found.endswith(" Not run: torch 2.12.1.")
