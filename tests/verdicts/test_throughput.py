from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisect_env.engine.grouping import turns
from bisect_env.trials.records import Outcome, Round, Side, StepTime
from bisect_env.verdicts.looks import Design
from bisect_env.verdicts.records import Headline
from bisect_env.verdicts.samples import Placed, Sides, by_side
from bisect_env.verdicts.throughput import SLOWED, WARMED, throughput
from bisect_env.verdicts.verdict import judge
from tests.verdicts.build import cell, rates, record


def trials(values: Sequence[float], first: int = 0) -> Sides:
    return by_side(rates(values, first))


def session(
    rounds: Sequence[Round], block: int = 0, run_id: str = "r1", outcome: Outcome = Outcome.CLEAN, extra: str = ""
) -> Placed:
    said = ((extra, "why"),) if extra else ()
    return Placed(record(Side.ROUNDS, outcome, rounds=tuple(rounds), extra=said), block, run_id)


def even(rate: float, count: int = 8, start: float = 10.0, every: float = 2.0) -> list[Round]:
    """Rounds of a second each, with room for another process's in between."""
    return [Round(i, round(rate), 1.0, start + every * i) for i in range(count)]


def test_the_ratio_pairs_blocks() -> None:
    drifting = [1000.0, 500.0, 2000.0, 800.0]
    found = throughput(trials([x * 0.9 for x in drifting]), trials(drifting))
    assert found is not None and found.n == 4 and found.ratio == pytest.approx(0.9, abs=1e-3)
    assert found.ratio_low is not None and found.ratio_high is not None and found.sessions == 0
    assert found.ratio_high - found.ratio_low < 0.01


def test_blocks_without_a_partner_do_not_enter_the_ratio() -> None:
    found = throughput(trials([900, 900, 100]), trials([1000, 1000]))
    assert found is not None and found.ratio == pytest.approx(0.9)
    apart = throughput(trials([900, 900]), trials([1000, 1000], first=7))
    assert apart is not None and apart.ratio is None


def test_only_clean_warm_work_alone_counts() -> None:
    steps = (StepTime("w0", 100, 1.0, 1.0, True),)
    failed = Placed(record(Side.THREADS, Outcome.FAILED, steps=steps), 0)
    cold = Placed(record(Side.THREADS, steps=(StepTime("w0", 100, 1.0, 1.0, False),)), 1)
    broken_clock = Placed(record(Side.THREADS, steps=(StepTime("w0", 100, float("nan"), 1.0, True),)), 2)
    beside = Placed(record(Side.THREADS, steps=steps, at_once=2), 3)
    assert throughput(by_side([failed, cold, broken_clock, beside])) is None
    assert throughput(by_side([Placed(record(Side.THREADS, steps=steps), 0)])) is not None


def test_the_warmed_condition_serves_where_all_failed() -> None:
    failed = by_side([Placed(record(Side.THREADS, Outcome.FAILED), 0)])
    found = throughput(failed, trials([1000]), trials([800, 900, 1000]))
    assert found is not None and found.warmed and found.median == 900 and found.ratio is None


def test_quartiles_are_of_trials() -> None:
    found = throughput(trials([100, 200, 300, 400, 500]))
    assert found is not None and (found.low, found.median, found.high, found.warmed) == (200, 300, 400, False)


def test_rounds_take_the_place_of_trials() -> None:
    own = by_side([*rates([500, 500]), session(even(900))])
    found = throughput(own, by_side([*rates([1000, 1000]), session(even(1000, start=9.0))]))
    assert found is not None and (found.median, found.n, found.sessions) == (900, 8, 1)
    assert [found.ratio, found.ratio_low, found.ratio_high] == pytest.approx([0.9] * 3)
    alone = throughput(own, by_side(rates([1000, 1000])))
    assert alone is not None and alone.ratio is None, "rounds are never compared with trials"


def test_rounds_pair_with_the_reference_round_beside_them_in_the_same_session() -> None:
    # The machine halves its speed between the fourth and the fifth round; the reference makes two rounds for each.
    own = [Round(i, 900 if i < 4 else 450, 1.0, 10.0 + 4 * i) for i in range(8)]
    beside = [Round(i, 1000 if i < 8 else 500, 1.0, 9.0 + 2 * i) for i in range(16)]
    found = throughput(by_side([session(own)]), by_side([session(beside)]))
    assert found is not None and found.ratio_low == found.ratio_high == pytest.approx(0.9)
    for other in (session(beside, block=1), session(beside, run_id="r2")):
        apart = throughput(by_side([session(own)]), by_side([other]))
        assert apart is not None and apart.ratio is None


def test_sessions_combine_and_what_a_process_measured_before_it_died_stays() -> None:
    own = [session(even(900)), session(even(1800, 3), block=1, outcome=Outcome.HANG), session([], block=2)]
    beside = [session(even(1000, start=9.0)), session(even(2000, 8, start=9.0), block=1)]
    found = throughput(by_side(own), by_side(beside))
    assert found is not None and (found.n, found.sessions, found.median) == (11, 2, 900)
    assert found.ratio == pytest.approx(0.9)


def test_an_infra_record_and_rounds_without_time_are_nothing() -> None:
    odd = [Round(0, 0, 1.0, 1.0), Round(1, 5, 0.0, 1.0), Round(2, 5, math.nan, 1.0), Round(3, 5, 1.0, math.inf)]
    assert throughput(by_side([session(odd), session(even(900), 1, outcome=Outcome.INFRA)])) is None


def test_a_throttled_session_is_used_only_where_all_were() -> None:
    slowed = session(even(500), 0, extra=SLOWED)
    found = throughput(by_side([slowed, session(even(900), 1)]))
    assert found is not None and (found.median, found.sessions) == (900, 1)
    only = throughput(by_side([slowed]))
    assert only is not None and only.median == 500


def test_a_warmed_start_is_marked_and_has_a_ratio() -> None:
    trials = cell("FFFFFF", "......", "......")
    own = [Placed(item, i % 6) for i, item in enumerate(trials)] + [session(even(900), extra=WARMED)]
    verdict = judge(own, Design(6, 6), reference=[session(even(1000, start=9.0))])
    assert verdict.headline is Headline.RACE and verdict.throughput is not None
    assert verdict.throughput.warmed and verdict.throughput.ratio == pytest.approx(0.9)
    assert "tokens/s after a single-threaded warm-up: it failed at its start" in verdict.marks


def test_slow_says_that_it_rests_on_rounds() -> None:
    clean = cell("......", "......", "......", exposures=1)
    own = [Placed(item, i % 6) for i, item in enumerate(clean)] + [session(even(900))]
    verdict = judge(own, Design(6, 6), reference=[session(even(1000, start=9.0))])
    assert verdict.headline is Headline.SLOW and "paired by round" in verdict.reason
    assert judge(own, Design(6, 6), reference=[session(even(940, start=9.0))]).headline is Headline.FULL


@given(
    st.lists(st.tuples(st.integers(1, 10**6), st.integers(1, 10**6)), min_size=1, max_size=12),
    st.sampled_from([2.0, 0.25, 1024.0]),
)
def test_a_clock_of_another_speed_changes_rates_and_no_ratio(counts: list[tuple[int, int]], factor: float) -> None:
    def sides(scale: float) -> tuple[Sides, Sides]:
        own = [Round(i, a, scale, scale * (2 * i + 2)) for i, (a, _) in enumerate(counts)]
        beside = [Round(i, b, scale, scale * (2 * i + 1)) for i, (_, b) in enumerate(counts)]
        return by_side([session(own)]), by_side([session(beside)])

    one, other = throughput(*sides(1.0)), throughput(*sides(factor))
    assert one is not None and other is not None
    assert other.median == pytest.approx(one.median / factor)
    assert (one.ratio, one.ratio_low, one.ratio_high) == pytest.approx((other.ratio, other.ratio_low, other.ratio_high))


@given(
    st.integers(1, 9),
    st.sampled_from([2, 4, 6, 8, 16]),
    st.floats(-0.02, 0.02),
    st.floats(0.2, 5.0),
    st.integers(0, 2**31),
)
def test_a_drifting_machine_makes_no_ratio(others: int, rounds: int, drift: float, truth: float, seed: int) -> None:
    """A machine whose speed changes by a constant factor from turn to turn favours nobody, in the order of turns."""
    names = [f"cell{number}" for number in range(others)]
    timed: dict[str, list[Round]] = {name: [] for name in ("baseline", *names)}
    clock, speed = 1.0, 1e9
    for cycle in turns("baseline", names, rounds, seed):
        for name in cycle:
            clock, speed = clock + 1.0, speed * math.exp(drift)
            tokens = round(speed * (1.0 if name == "baseline" else truth))
            timed[name].append(Round(len(timed[name]), tokens, 1.0, clock))
    reference = by_side([session(timed["baseline"])])
    for name in names:
        found = throughput(by_side([session(timed[name])]), reference)
        assert found is not None and found.ratio == pytest.approx(truth, rel=1e-6)
        if found.ratio_low is not None and found.ratio_high is not None:
            assert found.ratio_low <= truth * (1 + 1e-6) and found.ratio_high >= truth * (1 - 1e-6)


def test_a_single_stalled_round_neither_hides_a_loss_nor_makes_one() -> None:
    draw = random.Random(0)
    beside = [Round(i, round(1e6 * draw.gauss(1, 0.003)), 1.0, 9.0 + 2 * i) for i in range(8)]
    for truth, low, high in ((1.0, 0.98, 1.02), (0.9, 0.88, 0.92)):
        own = [Round(i, round(truth * 1e6 * draw.gauss(1, 0.003)), 1.0, 10.0 + 2 * i) for i in range(8)]
        own[3] = Round(3, own[3].tokens // 3, 1.0, own[3].t)
        found = throughput(by_side([session(own)]), by_side([session(beside)]))
        assert found is not None and found.ratio_high is not None and found.ratio is not None
        assert low < found.ratio < high and found.ratio_high < high
