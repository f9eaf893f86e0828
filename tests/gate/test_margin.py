from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bisect_env.gate.margin import MarginDesign, chance, errors, judge, margin_design, margin_trials, planned
from bisect_env.gate.races import STATISTICAL
from bisect_env.gate.records import Decision, Rules

designs = st.builds(
    margin_design,
    st.integers(5, 60),
    st.integers(5, 60),
    st.sampled_from([0.05, 0.1, 0.25]),
    st.sampled_from([0.9, 0.95]),
)


@settings(max_examples=10, deadline=None)
@given(designs)
def test_both_errors_hold_at_every_rate_of_the_baseline(design: MarginDesign) -> None:
    wrong_pass, wrong_fail = errors(design, np.linspace(0, 1 - design.margin, 8_001))
    assert wrong_pass <= 1 - design.confidence
    assert wrong_fail <= (1 - design.confidence) / STATISTICAL


@settings(max_examples=15, deadline=None)
@given(designs)
def test_the_regions_are_monotone_and_apart(design: MarginDesign) -> None:
    assert list(design.passes) == sorted(design.passes)
    assert list(design.fails) == sorted(design.fails)
    assert all(low < high for low, high in zip(design.passes, design.fails, strict=True))


def test_chances_are_sums_over_all_samples() -> None:
    design = margin_design(12, 9, 0.1, 0.9)
    for own, base in ((0.1, 0.1), (0.5, 0.4), (0.9, 0.1)):
        total = dict.fromkeys(Decision, 0.0)
        for i in range(13):
            for j in range(10):
                weight = comb(12, i) * own**i * (1 - own) ** (12 - i) * comb(9, j) * base**j * (1 - base) ** (9 - j)
                sides = [True] * i + [False] * (12 - i), [True] * j + [False] * (9 - j)
                total[judge(design, *sides).decision] += weight
        found = chance(design, own, base)
        assert found.passes == pytest.approx(total[Decision.PASS])
        assert found.fails == pytest.approx(total[Decision.FAIL])


def test_clean_sides_pass_with_as_many_trials_as_a_clean_candidate_needs() -> None:
    # Beside a baseline that never races the margin is a limit of the rate: 0.95**59 <= 0.05 < 0.95**58.
    assert margin_design(59, 59, 0.05, 0.95).passes[0] == 0
    assert margin_design(58, 58, 0.05, 0.95).passes[0] == -1


def test_a_fail_is_certain_before_the_end_and_a_pass_never() -> None:
    design = margin_design(40, 40, 0.1, 0.95)
    assert judge(design, [False] * 39, [False] * 40).decision is Decision.INCONCLUSIVE
    assert judge(design, [False] * 40, [False] * 39).decision is Decision.INCONCLUSIVE
    assert judge(design, [False] * 40, [False] * 40).decision is Decision.PASS
    assert judge(design, [True] * 30, [False] * 30).decision is Decision.FAIL
    assert judge(design, [True] * 5, [False] * 5).decision is Decision.INCONCLUSIVE


@settings(deadline=None)
@given(st.data())
def test_what_is_still_to_come_never_takes_a_fail_back(data: st.DataObject) -> None:
    design = margin_design(25, 25, 0.1, 0.95)
    own, base = (data.draw(st.lists(st.booleans(), max_size=25)) for _ in range(2))
    if judge(design, own, base).decision is Decision.FAIL:
        own += data.draw(st.lists(st.booleans(), max_size=25 - len(own)))
        base += data.draw(st.lists(st.booleans(), max_size=25 - len(base)))
        assert judge(design, own, base).decision is Decision.FAIL


def test_how_many_trials_an_unchanged_candidate_takes() -> None:
    assert margin_trials(0.1, 0.95, 0.0) == 29
    found = margin_trials(0.1, 0.95, 0.1)
    assert found is not None and 100 < found < 140
    assert chance(margin_design(found, found, 0.1, 0.95), 0.1, 0.1).passes >= 0.8
    assert margin_trials(0.005, 0.95, 0.4) is None


def test_trials_asked_for_are_taken() -> None:
    assert planned(Rules(no_worse=0.1, trials=44), 0.1) == 44
    with pytest.raises(ValueError, match="margin"):
        planned(Rules(), 0.1)
