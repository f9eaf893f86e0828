"""The order of trials: every side once a round, shuffled, reproducible, a first control before anything else."""

from __future__ import annotations

import random
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from bisect_env.engine.plan import COUNTED, Chooser, Slot, in_order, next_round, seed_of, silence_limit
from bisect_env.matrix.cells import Cell, Condition, EnvironmentRequest
from bisect_env.trials.records import Outcome, Side
from bisect_env.verdicts.looks import Design, finished, next_needed
from bisect_env.verdicts.samples import Placed
from tests.verdicts import build

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


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Cell], Design, int, random.Random, float]:
    cells = [cell(number) for number in range(draw(st.integers(1, 4)))]
    trials, controls = draw(st.integers(1, 9)), draw(st.integers(0, 9))
    design = Design(trials, controls, solo=draw(st.none() | st.integers(0, 5)), stop_early=draw(st.booleans()))
    return cells, design, draw(st.integers(1, 12)), draw(st.randoms(use_true_random=False)), draw(st.floats(0, 1))


def simulated(
    cells: list[Cell], design: Design, at_once: int, chance: random.Random, failing: float, lost: bool = False
) -> tuple[dict[str, list[Placed]], list[Slot]]:
    """Trials of random length and outcome; with ``lost``, the run is killed half-way and what runs is lost."""
    samples: dict[str, list[Placed]] = {item.key: [] for item in cells}
    began: list[Slot] = []
    for kill in (True, False) if lost else (False,):
        chooser, running = Chooser(design, 7), list[Slot]()
        while True:
            while len(running) < at_once:
                slot = chooser.next([(item, samples[item.key]) for item in cells], running)
                if slot is None:
                    break
                assert slot not in running
                began.append(slot)
                running.append(slot)
            if not running or (kill and len(began) > 5):
                break
            slot = running.pop(chance.randrange(len(running)))
            bad = slot.side is Side.THREADS and chance.random() < failing
            samples[slot.cell.key].append(
                Placed(build.record(slot.side, Outcome.FAILED if bad else Outcome.CLEAN), slot.index)
            )
    return samples, began


@settings(max_examples=30)
@given(histories(), st.booleans())
def test_every_cell_gets_what_it_needs_once_however_many_run_at_a_time(history, lost) -> None:
    cells, design, at_once, chance, failing = history
    samples, _ = simulated(cells, design, at_once, chance, failing, lost)
    for found in samples.values():
        places = [(sample.record.side, sample.block) for sample in found]
        assert len(set(places)) == len(places), "a place was taken twice"
        counts = {side: sum(place[0] is side for place in places) for side in COUNTED}
        assert finished(in_order(found), design)
        assert all(counts[side] <= design.planned(side) for side in COUNTED)
        if failing == 0 or not design.stop_early:
            assert counts == {side: design.planned(side) for side in COUNTED}
            assert in_order(found) == found


@settings(max_examples=30)
@given(histories())
def test_the_same_history_gives_the_same_choices(history) -> None:
    cells, design, at_once, chance, failing = history
    state = chance.getstate()
    first = simulated(cells, design, at_once, chance, failing)[1]
    chance.setstate(state)
    assert simulated(cells, design, at_once, chance, failing)[1] == first


@settings(max_examples=30)
@given(histories())
def test_one_at_a_time_goes_round_by_round(history) -> None:
    cells, design, _, chance, failing = history
    failing = round(failing)  # Outcomes that do not depend on the order.
    _, began = simulated(cells, design, 1, chance, failing)
    samples: dict[str, list[Placed]] = {item.key: [] for item in cells}
    expected: list[Slot] = []
    while True:
        open_cells = [item for item in cells if not finished(samples[item.key], design)]
        if not open_cells:
            break
        counts = {item.key: Counter(sample.record.side for sample in samples[item.key]) for item in open_cells}
        needed = [(item, next_needed(samples[item.key], design), counts[item.key]) for item in open_cells]
        for slot in next_round(needed, 7):
            if finished(samples[slot.cell.key], design):
                continue
            expected.append(slot)
            bad = slot.side is Side.THREADS and failing == 1
            samples[slot.cell.key].append(
                Placed(build.record(slot.side, Outcome.FAILED if bad else Outcome.CLEAN), slot.index)
            )
    assert began == expected


def test_no_place_is_free_while_a_cell_needs_trials() -> None:
    chooser, running = Chooser(Design(12, 12), 0), list[Slot]()
    while (slot := chooser.next([(cell(1), [])], running)) is not None:
        running.append(slot)
    assert len(running) == 36 and len(set(running)) == 36


def test_what_waits_for_its_cache_lets_the_others_go_first() -> None:
    one, other = cell(1), cell(2)
    chooser, running = Chooser(Design(2, 2), 0), list[Slot]()
    for _ in range(6):
        slot = chooser.next([(one, []), (other, [])], running, waiting=[one])
        assert slot is not None and slot.cell == other
        running.append(slot)
    assert chooser.next([(one, []), (other, [])], running, waiting=[one]) is None
    slots = [chooser.next([(one, []), (other, [])], running)]
    assert slots[0] is not None and slots[0].cell == one


def test_a_look_waits_for_the_trials_before_it() -> None:
    """The fifth threaded trial is in and the fourth is not: with the fifth in its place, four of four have failed."""
    design = Design(12, 12)
    failed = [Placed(build.record(Side.THREADS, Outcome.FAILED), block) for block in (0, 1, 2, 4)]
    controls = [Placed(build.record(side), block) for side in (Side.SERIAL, Side.SOLO) for block in range(5)]
    assert finished(failed + controls, design)
    assert not finished(in_order(failed + controls), design)
    fourth = Placed(build.record(Side.THREADS), 3)
    assert not finished(in_order([*failed, *controls, fourth]), design)
