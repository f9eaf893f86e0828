"""The order of trials: every side once a round, shuffled, reproducible, a first control before anything else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bisect_env.engine.plan import next_round, seed_of, silence_limit
from bisect_env.matrix.cells import Cell, Condition, EnvironmentRequest
from bisect_env.trials.records import Side

COUNTS = st.fixed_dictionaries({side: st.integers(0, 3) for side in (Side.THREADS, Side.SERIAL, Side.SOLO)})


def cell(number: int) -> Cell:
    request = EnvironmentRequest((f"torch==2.{number}",))
    return Cell(f"torch-2.{number}", (("torch", f"2.{number}"),), request, Condition.of({"threads": 2}))


@given(st.lists(st.tuples(COUNTS, COUNTS), max_size=5), st.integers())
def test_a_round_gives_each_needed_side_one_trial(state, seed):
    needed = [(cell(number), missing, done) for number, (missing, done) in enumerate(state)]
    slots = next_round(needed, seed)
    expected = {
        (item.id, side, done[side]) for item, missing, done in needed for side, count in missing.items() if count > 0
    }
    assert {(slot.cell.id, slot.side, slot.index) for slot in slots} == expected
    assert len(slots) == len(expected)


@given(st.lists(st.tuples(COUNTS, COUNTS), max_size=5), st.integers())
def test_first_serial_controls_come_before_all_else(state, seed):
    needed = [(cell(number), missing, done) for number, (missing, done) in enumerate(state)]
    first = [slot.side is Side.SERIAL and slot.index == 0 for slot in next_round(needed, seed)]
    assert first == sorted(first, reverse=True)


@given(st.lists(st.tuples(COUNTS, COUNTS), max_size=5), st.integers())
def test_the_same_state_gives_the_same_order(state, seed):
    needed = [(cell(number), missing, done) for number, (missing, done) in enumerate(state)]
    assert next_round(needed, seed) == next_round(needed, seed)


def test_orders_differ_between_rounds():
    every = dict.fromkeys((Side.THREADS, Side.SERIAL, Side.SOLO), 9)
    orders = {
        tuple(
            (slot.cell.id, slot.side)
            for slot in next_round([(cell(n), every, dict.fromkeys(every, k)) for n in range(4)], 0)
        )
        for k in range(1, 6)
    }
    assert len(orders) == 5


def test_threads_and_controls_of_one_index_share_a_seed_and_conditions_do_not():
    one, other = cell(1), cell(2)
    assert seed_of(7, one, 3) == seed_of(7, other, 3)
    assert len({seed_of(run, one, index) for run in range(5) for index in range(5)}) == 25
    assert all(0 <= seed_of(0, one, index) < 2**31 for index in range(50))


@given(
    st.floats(1, 100),
    st.floats(1, 1000),
    st.lists(st.floats(0, 100), max_size=4),
)
def test_the_limit_never_falls_below_the_floor_and_triples_after_a_hang(floor, first, silences):
    limit = silence_limit(floor, first, silences, tripled=False)
    assert limit >= floor
    assert all(limit >= 5 * silence for silence in silences)
    assert silence_limit(floor, first, silences, tripled=True) == 3 * limit
