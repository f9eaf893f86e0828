"""The search along a line: right answers, honest ranges, the same asks again."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bisect_env.search.line import OTHERS, Line
from bisect_env.search.records import Batch, Costs, Result, Status, Told


def drive(line: Line, rates: list[float], seed: int = 0, unbuildable: frozenset[int] = frozenset()) -> Result[int]:
    """Answer every ask by the failure rates at the positions, until the search is over."""
    random = np.random.default_rng(seed)
    while (batch := line.ask()) is not None:
        if batch.point in unbuildable:
            line.tell(Told(batch, 0, 0, skipped="does not build"))
            continue
        failed = int(random.binomial(batch.size, rates[batch.point]))
        line.tell(Told(batch, failed, batch.size - failed))
    return line.result()


def change(candidates: int, culprit: int, p: float = 1.0, q: float = 0.0) -> list[float]:
    return [q] * culprit + [p] * (candidates + 1 - culprit)


@given(st.integers(1, 40), st.data())
@settings(max_examples=40, deadline=None)
def test_a_failure_that_never_passes_is_found_exactly(candidates: int, data: st.DataObject) -> None:
    culprit = data.draw(st.integers(1, candidates))
    result = drive(Line(candidates), change(candidates, culprit))
    assert (result.status, result.best) == (Status.CONFIDENT, (culprit,))
    assert result.probability >= 0.95
    assert sum(share for _, share in result.posterior) + result.none == pytest.approx(1)
    assert result.trials <= 10 + 3 * math.log2(candidates + 1)


def test_where_nothing_changes_none_is_the_answer() -> None:
    result = drive(Line(16), [0.0] * 17)
    assert (result.status, result.best) == (Status.CONFIDENT, ())
    assert result.none >= 0.95
    assert result.probability >= 0.95


@given(st.sets(st.integers(1, 11), max_size=8), st.integers(1, 12), st.integers(0, 100))
@settings(max_examples=40, deadline=None)
def test_what_cannot_be_tested_is_blamed_as_a_range(skips: set[int], culprit: int, seed: int) -> None:
    result = drive(Line(12), change(12, culprit), seed, frozenset(skips))
    last_good = max(position for position in range(culprit) if position not in skips)
    first_bad = min(position for position in range(culprit, 13) if position not in skips)
    assert result.status is Status.CONFIDENT
    assert result.best == tuple(range(last_good + 1, first_bad + 1))


def test_a_skipped_position_is_never_asked_again() -> None:
    line = Line(8)
    line.skip(4)
    random = np.random.default_rng(1)
    asked = []
    while (batch := line.ask()) is not None:
        asked.append(batch.point)
        failed = int(random.random() < (0.8 if batch.point >= 5 else 0.0))
        line.tell(Told(batch, failed, 1 - failed))
    assert 4 not in asked
    assert line.result().best == (4, 5)


def test_with_nothing_to_ask_all_of_them_are_the_range() -> None:
    line = Line(3)
    for position in range(4):
        line.skip(position)
    assert line.ask() is None
    assert line.result().best == (1, 2, 3)
    assert math.isnan(line.result().rate_bad.estimate)


def test_with_too_little_told_and_nothing_to_ask_it_is_exhausted() -> None:
    line = Line(3)
    for position in range(4):
        line.tell(Told(Batch(-1, position, 40), 0, 40))
        line.skip(position)
    assert line.ask() is None
    result = line.result()
    assert (result.status, result.trials) == (Status.EXHAUSTED, 160)
    assert max(result.none, *(share for _, share in result.posterior)) < 0.95


def test_other_endings_alone_make_a_skip() -> None:
    line = Line(4)
    line.tell(Told(Batch(0, 2, OTHERS), 0, 0, other=OTHERS))
    rates = change(4, 3)
    random = np.random.default_rng(0)
    while (batch := line.ask()) is not None:
        assert batch.point != 2
        failed = int(random.random() < rates[batch.point])
        line.tell(Told(batch, failed, 1 - failed))
    assert line.result().best == (2, 3)
    assert line.result().trials < 30


@pytest.mark.parametrize("seed", range(5))
def test_broke_fixed_and_broke_again_is_a_misfit(seed: int) -> None:
    line = Line(16)
    random = np.random.default_rng(seed)
    history = [0.0] * 4 + [0.9] * 4 + [0.0] * 4 + [0.9] * 5
    for position in (0, 5, 9, 16):
        failed = int(random.binomial(6, history[position]))
        line.tell(Told(Batch(-1, position, 6), failed, 6 - failed))
    result = drive(line, history, seed)
    assert result.status is Status.MISFIT
    assert result.misfit.startswith("One change does not explain the failures.")


@given(st.integers(2, 24), st.integers(0, 10_000), st.integers(0, 3))
@settings(max_examples=25, deadline=None)
def test_the_same_tells_give_the_same_asks(candidates: int, seed: int, flight: int) -> None:
    def asks() -> list[Batch[int]]:
        line, random = Line(candidates, seed=seed, costs=Costs(1.0, 5.0)), np.random.default_rng(seed)
        made, running = [], []
        for _ in range(30):
            batch = line.ask(busy=len(running))
            if batch is not None:
                made.append(batch)
                running.append(batch)
            if running and (batch is None or len(running) > flight):
                ended = running.pop(int(random.integers(len(running))))
                failed = int(random.binomial(ended.size, 0.6 if ended.point > candidates // 2 else 0.01))
                line.tell(Told(ended, failed, ended.size - failed, build_seconds=4.0, trial_seconds=1.0))
        return made

    first = asks()
    assert asks() == first
    assert [batch.id for batch in first] == list(range(len(first)))


def test_batches_in_flight_spread() -> None:
    line = Line(64)
    points = {batch.point for busy in range(8) if (batch := line.ask(busy=busy)) is not None}
    assert len(points) >= 3


def test_dear_builds_are_asked_for_less() -> None:
    environments = {}
    for build in (0.0, 30.0):
        counts = []
        for seed in range(20):
            line, random, built = Line(32, costs=Costs(1.0, build)), np.random.default_rng(seed), set()
            while (batch := line.ask()) is not None:
                failed = int(random.binomial(batch.size, 0.4 if batch.point >= 13 else 0.0))
                seconds = None if batch.point in built else build
                built.add(batch.point)
                line.tell(Told(batch, failed, batch.size - failed, build_seconds=seconds, trial_seconds=1.0))
            counts.append(len(built))
        environments[build] = np.mean(counts)
    assert environments[30.0] < 0.6 * environments[0.0]


def test_rates_have_intervals_around_the_truth() -> None:
    result = drive(Line(8, confidence=0.999), change(8, 4, 0.5, 0.02), seed=2)
    assert result.rate_bad.low < 0.5 < result.rate_bad.high
    assert result.rate_good.low < 0.02 < result.rate_good.high


def outcomes(line: Line, seed: int, count: int = 40) -> list[tuple[Batch[int], int]]:
    """What it asks, of a world that breaks at 5 in half of the trials, and how many failed."""
    random, made = np.random.default_rng(seed), []
    while (batch := line.ask()) is not None and len(made) < count:
        failed = int(random.binomial(batch.size, 0.5 if batch.point >= 5 else 0.02))
        line.tell(Told(batch, failed, batch.size - failed, build_seconds=3.0, trial_seconds=1.0))
        made.append((batch, failed))
    return made


@given(st.integers(0, 10_000), st.sampled_from([0.0, 5.0]))
@settings(max_examples=15, deadline=None)
def test_without_weights_and_with_even_ones_the_asks_are_the_same(seed: int, build: float) -> None:
    plain = outcomes(Line(16, costs=Costs(1.0, build)), seed)
    assert outcomes(Line(16, costs=Costs(1.0, build), weights=None), seed) == plain
    assert outcomes(Line(16, costs=Costs(1.0, build), weights=[2.0] * 16), seed) == plain


@given(st.permutations(range(8)), st.integers(0, 100))
@settings(max_examples=20, deadline=None)
def test_with_weights_the_order_of_tells_does_not_matter(order: list[int], seed: int) -> None:
    random = np.random.default_rng(seed)
    tells = [Told(Batch(-1, position, 4), int(random.integers(5)), 0) for position in range(8)]
    results = []
    for places in (list(range(8)), order):
        line = Line(7, weights=[1.0, 8.0, 1.0, 1.0, 8.0, 1.0, 1.0])
        for place in places:
            line.tell(tells[place])
        results.append(dict(line.result().posterior) | {0: line.result().none})
    assert results[0] == pytest.approx(results[1])
    assert sum(results[0].values()) == pytest.approx(1)


def test_a_right_prior_is_quicker_and_a_misleading_one_comes_to_the_truth_too() -> None:
    taken = {}
    for name, marked in (("right", 5), ("none", 0), ("misleading", 12)):
        weights = [8.0 if candidate == marked else 1.0 for candidate in range(1, 17)]
        results = [drive(Line(16, weights=weights), change(16, 5, 0.9), seed) for seed in range(20)]
        assert sum(result.best == (5,) for result in results) >= 19
        taken[name] = np.mean([result.trials for result in results])
    assert taken["right"] < taken["none"] < taken["misleading"] < 1.2 * taken["none"]


def test_what_only_the_prior_tells_apart_is_blamed_together() -> None:
    line = Line(6, weights=[1.0, 1.0, 8.0, 1.0, 1.0, 1.0])
    for position in (2, 3, 4):
        line.skip(position)
    result = drive(line, change(6, 4))
    assert (result.status, result.best) == (Status.CONFIDENT, (2, 3, 4, 5))


@pytest.mark.parametrize("weights", [[1.0, 1.0], [1.0] * 4, [1.0, 0.0, 1.0], [1.0, -1.0, 1.0], [1.0, math.inf, 1.0]])
def test_weights_that_are_none_are_refused(weights: list[float]) -> None:
    with pytest.raises(ValueError, match="one positive weight for each of 3 candidates"):
        Line(3, weights=weights)


@pytest.mark.parametrize("arguments", [{"candidates": 0}, {"confidence": 1.0}, {"confidence": 0.2}, {"batch": 0}])
def test_nonsense_is_refused(arguments: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="at least"):
        Line(**{"candidates": 3, **arguments})  # type: ignore[arg-type]


def test_positions_are_checked() -> None:
    line = Line(3)
    with pytest.raises(ValueError, match="no position 4"):
        line.tell(Told(Batch(0, 4, 1), 1, 0))
    with pytest.raises(ValueError, match="no position -1"):
        line.skip(-1)


def test_beside_others_a_batch_at_a_build_under_way_is_dear_and_builds_side_by_side_are_cheap() -> None:
    alone, beside = Line(64, costs=Costs(1.0, 40.0)), Line(64, costs=Costs(1.0, 40.0))
    first = alone.ask()
    assert first is not None and beside.ask() == first
    random = np.random.default_rng(0)
    failed = int(random.binomial(first.size, 0.5))
    alone.tell(Told(first, failed, first.size - failed))
    round_of_eight = [batch for busy in range(1, 8) if (batch := beside.ask(busy)) is not None]
    assert len({batch.point for batch in (first, *round_of_eight)}) >= 5
    # Batches are small where their builds share the cost: all together they tell enough.
    assert sum(batch.size for batch in round_of_eight) < 7 * first.size


def test_what_is_skipped_while_in_flight_is_in_flight_no_more() -> None:
    skipped, never = Line(16, seed=3), Line(16, seed=3)
    for line in (skipped, never):
        assert line.ask() is not None
    second = skipped.ask(busy=1)
    assert second is not None
    for line in (skipped, never):
        line.skip(second.point)
    third, other = skipped.ask(busy=1), never.ask(busy=1)
    assert third is not None and other is not None
    assert (third.point, third.size) == (other.point, other.size)
