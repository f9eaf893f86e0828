from __future__ import annotations

import pytest

from bisect_env.gate.needed import needed, share
from bisect_env.gate.records import Question, Rules


def test_the_fewest_clean_trials_are_announced_with_their_chances() -> None:
    found = needed(Rules())
    assert (found.clean_trials, found.blocks, found.allowed, found.fails_at, found.baseline_trials) == (
        59,
        59,
        0,
        8,
        59,
    )
    chances = {each.rate: each.passes for each in found.chances}
    assert chances[0.0] == 1.0
    assert chances[0.05] == pytest.approx(0.95**59)
    text = " ".join(found.sentences)
    assert "59 clean threaded trials" in text
    assert "below 5 % at 95 %" in text
    assert "2 of the first 2" in text and "8 of the first 59" in text


def test_more_trials_allow_for_bad_ones_and_fewer_cannot_pass() -> None:
    assert "Of 93 trials 1 may go wrong." in needed(Rules(trials=93)).sentences
    few = needed(Rules(trials=20))
    assert few.allowed == -1
    assert any("59 are the fewest" in sentence for sentence in few.sentences)


def test_a_margin_takes_what_an_unchanged_candidate_takes() -> None:
    clean = needed(Rules(no_worse=0.1))
    racing = needed(Rules(no_worse=0.1), baseline_rate=0.1, baseline_kept=200)
    assert clean.blocks == clean.baseline_trials < racing.blocks
    assert racing.baseline_trials == 200
    assert [each.rate for each in clean.chances] == [0.0, 0.02, 0.05, 0.1, 0.2, 0.5]
    assert all(each.passes <= 1 for each in clean.chances)
    assert any("by less than 10 %" in sentence for sentence in clean.sentences)
    hopeless = needed(Rules(no_worse=0.02), baseline_rate=0.4)
    assert hopeless.blocks < 200
    assert any("a wider margin" in sentence for sentence in hopeless.sentences)


def test_without_a_budget_all_is_decided_and_the_time_told() -> None:
    found = needed(Rules(), seconds_per_trial=10, seconds_per_pair=2, controls=12, before=30)
    assert found.seconds == 30 + (2 * 59 + 12) * 10 + 64 * 2
    assert found.within_budget == tuple(Question)
    assert found.most_pairs == 400


def test_kept_trials_of_the_baseline_save_time() -> None:
    found = needed(Rules(), seconds_per_trial=10, seconds_per_pair=0, baseline_kept=40)
    assert found.seconds == (59 + 19) * 10


@pytest.mark.parametrize(
    ("budget", "out"),
    [
        (2000, set()),
        (1250, {Question.THROUGHPUT}),
        (600, {Question.RACES}),
        (100, {Question.RACES, Question.THROUGHPUT}),
        (10, set(Question)),
    ],
)
def test_what_fits_into_a_budget(budget: float, out: set[Question]) -> None:
    found = needed(Rules(budget_seconds=budget), seconds_per_trial=10, seconds_per_pair=2)
    assert set(Question) - set(found.within_budget) == out
    said = " ".join(found.sentences)
    assert ("All of it can be decided" in said) == (not out)
    if Question.RACES in out and budget >= 20:
        assert f"enough for {int(budget / 20)} of 59 threaded trials" in said
    assert found.most_pairs is not None
    assert Question.THROUGHPUT in out or found.most_pairs * 2 <= budget


def test_nothing_is_promised_while_the_time_is_not_known() -> None:
    found = needed(Rules(budget_seconds=600))
    assert found.within_budget == () and found.seconds is None
    assert any("as soon as a trial has told" in sentence for sentence in found.sentences)
    assert needed(Rules()).within_budget == tuple(Question)


def test_what_is_not_asked_is_not_planned() -> None:
    found = needed(Rules(budget_seconds=600), asked=(Question.ENVIRONMENT, Question.RACES), seconds_per_trial=1)
    assert found.pairs is None and found.most_pairs is None and found.seconds == 118
    assert found.within_budget == (Question.ENVIRONMENT, Question.RACES)


def test_pairs_asked_for_are_whole_sessions() -> None:
    assert needed(Rules(pairs=30)).pairs == 32
    assert needed(Rules(), rounds=1).pairs == 20


def test_words() -> None:
    assert [share(value) for value in (0, 1e-6, 0.001, 0.0495, 0.5, 0.9999, 1)] == [
        "0 %",
        "under 0.01 %",
        "0.1 %",
        "4.95 %",
        "50 %",
        "100 %",
        "100 %",
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_race_rate": 0.0},
        {"confidence": 1.0},
        {"no_worse": 0.0},
        {"min_throughput": 1.0},
        {"max_memory": 0.9},
        {"trials": 0},
        {"pairs": 0},
    ],
)
def test_rules_that_nothing_could_meet_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"\d"):
        Rules(**wrong)  # type: ignore[arg-type]


def test_where_trials_are_the_pairs_every_block_is_one() -> None:
    said = needed(Rules(pairs=2), asked=(Question.RACES, Question.THROUGHPUT), seconds_per_pair=0.0)
    assert said.pairs == said.blocks == 59
    assert any("59 pairs of trials" in sentence for sentence in said.sentences)
