from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bisect_env.gate.races import (
    STATISTICAL,
    Judged,
    RaceDesign,
    chance,
    design_of,
    judge,
    race_design,
    trials_to_tell,
)
from bisect_env.gate.records import Decision, Rules

designs = st.builds(
    design_of, st.integers(1, 100), st.sampled_from([0.02, 0.05, 0.15, 0.3]), st.sampled_from([0.8, 0.95, 0.99])
)


def test_the_fewest_trials_are_clean_ones() -> None:
    assert (race_design(Rules()).trials, race_design(Rules()).allowed) == (59, 0)
    assert race_design(Rules(max_race_rate=0.15)).trials == 19
    assert [design_of(n, 0.05, 0.95).allowed for n in (58, 59, 92, 93, 123, 124, 180, 181)] == [-1, 0, 0, 1, 1, 2, 3, 4]


def test_too_few_trials_never_pass() -> None:
    design = design_of(20, 0.05, 0.95)
    assert judge(design, [False] * 20).decision is Decision.INCONCLUSIVE
    assert chance(design, 0.0).passes == 0


@settings(max_examples=30, deadline=None)
@given(designs)
def test_at_the_limit_neither_answer_comes_more_often_than_it_may(design: RaceDesign) -> None:
    at_limit = chance(design, design.limit)
    assert at_limit.passes <= 1 - design.confidence + 1e-9
    assert at_limit.fails <= (1 - design.confidence) / STATISTICAL + 1e-9


@settings(max_examples=30, deadline=None)
@given(designs, st.floats(0, 1), st.floats(0, 1))
def test_a_candidate_that_races_more_passes_less_and_fails_more(design: RaceDesign, one: float, two: float) -> None:
    lower, higher = (chance(design, rate) for rate in sorted((one, two)))
    assert lower.passes >= higher.passes - 1e-9
    assert lower.fails <= higher.fails + 1e-9


def test_three_percent_against_five_fails_in_few_gates() -> None:
    for trials in (59, 93, 181, 400):
        assert chance(design_of(trials, 0.05, 0.95), 0.03).fails <= 0.05


@pytest.mark.parametrize(("trials", "limit", "confidence"), [(9, 0.3, 0.95), (12, 0.15, 0.8), (13, 0.05, 0.95)])
def test_chances_are_those_of_every_sequence_judged(trials: int, limit: float, confidence: float) -> None:
    design = design_of(trials, limit, confidence)
    for rate in (0.03, limit, 0.6):
        total = dict.fromkeys(Decision, 0.0)
        for bad in product((False, True), repeat=trials):
            total[judge(design, bad).decision] += rate ** sum(bad) * (1 - rate) ** (trials - sum(bad))
        found = chance(design, rate)
        assert found.passes == pytest.approx(total[Decision.PASS])
        assert found.fails == pytest.approx(total[Decision.FAIL])


def test_the_boundary_spends_what_it_may() -> None:
    # With a larger nominal level, or one bad trial fewer at the end, it would be more.
    at_limit = chance(race_design(Rules()), 0.05)
    assert 0.024 <= at_limit.fails <= 0.025
    assert chance(race_design(Rules()), 0.3).fails > 0.999


@settings(max_examples=30, deadline=None)
@given(designs, st.data())
def test_one_more_bad_trial_never_helps(design: RaceDesign, data: st.DataObject) -> None:
    bad = data.draw(st.lists(st.booleans(), min_size=design.trials, max_size=design.trials))
    worse = list(bad)
    worse[data.draw(st.integers(0, design.trials - 1))] = True
    order = [Decision.PASS, Decision.INCONCLUSIVE, Decision.FAIL]
    assert order.index(judge(design, worse).decision) >= order.index(judge(design, bad).decision)


@settings(max_examples=30, deadline=None)
@given(designs, st.data())
def test_a_fail_is_certain_whatever_comes_after(design: RaceDesign, data: st.DataObject) -> None:
    bad = data.draw(st.lists(st.booleans(), max_size=design.trials))
    judged = judge(design, bad)
    if judged.decision is Decision.FAIL:
        assert judged.bad > design.allowed
        rest = [False] * (design.trials - len(bad))
        assert judge(design, [*bad, *rest]) == judged
    if len(bad) < design.trials:
        assert judged.decision is not Decision.PASS


def test_trials_beyond_the_design_are_not_read() -> None:
    design = race_design(Rules())
    assert judge(design, [False] * 59 + [True] * 40) == Judged(Decision.PASS, 0, 59)
    assert judge(design, [True] * 40) == Judged(Decision.FAIL, 2, 2)
    assert judge(design, [False] * 58) == Judged(Decision.INCONCLUSIVE, 0, 58)


@pytest.mark.parametrize(("bad", "trials"), [(1, 59), (2, 59), (6, 59), (9, 59), (1, 93)])
def test_the_trials_that_are_proposed_would_tell(bad: int, trials: int) -> None:
    found = trials_to_tell(bad, trials, 0.05, 0.95)
    assert found is not None
    proposed, answer = found
    then = chance(design_of(proposed, 0.05, 0.95), bad / trials)
    assert (then.passes if answer is Decision.PASS else then.fails) >= 0.8
    assert (answer is Decision.PASS) == (bad / trials < 0.05)


def test_near_the_limit_nothing_is_proposed() -> None:
    assert trials_to_tell(3, 61, 0.05, 0.95) is None
