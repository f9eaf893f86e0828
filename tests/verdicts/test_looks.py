from __future__ import annotations

import random
from itertools import pairwise, product
from math import comb, prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisect_env.trials.records import Side, TrialRecord
from bisect_env.verdicts.looks import Design, difference, finished, further_needed, looks, next_needed, stopped_at
from bisect_env.verdicts.records import Headline
from bisect_env.verdicts.samples import Placed, by_side
from tests.verdicts.build import LETTERS, cell, side

SIX = Design(6, 6)


@pytest.mark.parametrize(
    ("trials", "controls", "blocks"),
    [
        (1, 1, [1]),
        (4, 4, [4]),
        (5, 5, [4, 5]),
        (6, 6, [4, 6]),
        (8, 8, [4, 6, 8]),
        (12, 12, [4, 8, 12]),
        (12, 3, [4, 8, 12]),
    ],
)
def test_looks_depend_on_the_design_alone(trials: int, controls: int, blocks: list[int]) -> None:
    found = looks(Design(trials, controls))
    assert [look.blocks for look in found] == blocks
    assert [look.last for look in found] == [False] * (len(blocks) - 1) + [True]
    assert sum(look.limit for look in found) <= 0.05


@pytest.mark.parametrize(("trials", "controls", "solo", "blocks"), [(12, 6, 0, 12), (4, 4, 9, 9), (6, 6, None, 6)])
def test_a_design_that_does_not_stop_early_has_one_look(
    trials: int, controls: int, solo: int | None, blocks: int
) -> None:
    (look,) = looks(Design(trials, controls, solo=solo, stop_early=False))
    assert (look.blocks, look.last) == (blocks, True)
    # As that of a design that is too short for an earlier one: what is left of 5 % are the further tests.
    assert look.limit == pytest.approx(looks(Design(4, 4))[0].limit) == pytest.approx(0.05 * 0.91)


def headline(records: list[TrialRecord], design: Design) -> Headline | None:
    found = difference(by_side(records), design)
    return found.headline if found else None


def test_all_against_none_stops_at_the_fourth_block() -> None:
    records = cell("FFFF", "....", "....")
    assert headline(records, SIX) is Headline.RACE
    assert finished(records, SIX) and stopped_at(records, SIX) == 4 and next_needed(records, SIX) == {}


def test_both_controls_must_be_in_before_a_stop() -> None:
    records = cell("FFFF", "....", "...")
    assert not finished(records, SIX)
    assert next_needed(records, SIX) == {Side.SOLO: 1}


@pytest.mark.parametrize(
    ("threads", "serial", "expected"),
    [
        ("FFFF..", "......", Headline.RACE),
        ("FFF...", "......", None),
        ("FFFFFF", "F.....", Headline.RACE),
        ("FFFFF.", "F.....", None),
        ("HHHH..", "......", Headline.HANG),
        ("HHHFFF", "......", Headline.RACE),
        ("HHHHFF", "......", Headline.HANG),
        ("HHFF..", "......", None),
        ("OOOOOO", "......", None),
        ("SSSSSS", "FFFFFF", Headline.RACE),
        ("SSSSSF", "FFFFFF", None),
        ("FFFFFF", "FFFFFF", None),
        ("......", "FFFFFF", None),
    ],
)
def test_what_six_against_six_establishes(threads: str, serial: str, expected: Headline | None) -> None:
    assert headline(cell(threads, serial, "......"), SIX) is expected


def test_an_incomplete_look_establishes_nothing() -> None:
    assert headline(cell("FFFFF", "..."), SIX) is None
    assert headline(cell("FFFFF", ""), SIX) is None


def test_a_design_that_does_not_stop_early_waits_for_all() -> None:
    design = Design(6, 6, stop_early=False)
    records = cell("FFFF", "....", "....")
    assert not finished(records, design) and stopped_at(records, design) is None
    assert next_needed(records, design) == {Side.THREADS: 2, Side.SERIAL: 2, Side.SOLO: 2}
    assert headline(records, design) is None
    every = cell("FFFF..", "......", "......")
    assert finished(every, design) and stopped_at(every, design) is None and headline(every, design) is Headline.RACE
    assert finished(cell("I", "I"), design), "nothing that more trials could tell"


def test_no_solo_trials_are_waited_for() -> None:
    design = Design(6, 6, solo=0)
    assert finished(cell("FFFF", "...."), design)
    assert next_needed(cell("....", "...."), design) == {Side.THREADS: 2, Side.SERIAL: 2}
    assert finished(cell("......", "......"), design)
    assert next_needed([], Design(6, 6, solo=5)) == {Side.THREADS: 4, Side.SERIAL: 4, Side.SOLO: 4}


def test_fewer_controls_than_trials() -> None:
    design = Design(12, 4)
    records = cell("FFFF", "....", "....")
    assert finished(records, design)
    clean = cell("....", "....", "....")
    assert next_needed(clean, design) == {Side.THREADS: 4}
    assert finished(clean + side(Side.THREADS, "........"), design)


def test_without_controls_nothing_is_a_race() -> None:
    assert headline(cell("FFFFFF", ""), Design(6, 0)) is None
    assert finished(cell("FFFFFF", ""), Design(6, 0))


@pytest.mark.parametrize(
    ("threads", "serial", "solo", "expected"),
    [
        ("I", "", "", False),
        ("I", "I", "", True),
        ("I", "I.", "", False),
        ("K", "", "", False),
        ("K", "K", "", True),
        ("FFFF", "FFFF", "FFFF", True),
        ("SSSS", "FFFF", "FFFF", False),
        ("FFFF", "FFF.", "FFFF", False),
        ("HHHH", "....", "....", True),
        ("OOOO", "OOOO", "....", True),
        ("OOO.", "....", "....", False),
        ("XXXX", "XXXX", "XXXX", False),
        (".....", ".....", ".....", False),
        ("......", "......", ".....", False),
        ("......", "......", "......", True),
        ("K.....", "......", "......", True),
    ],
)
def test_when_a_cell_is_finished(threads: str, serial: str, solo: str, expected: bool) -> None:
    records = cell(threads, serial, solo)
    assert finished(records, SIX) is expected
    assert (next_needed(records, SIX) == {}) is expected


def test_differing_import_errors_are_tried_again() -> None:
    first, second = cell("I", "I")
    assert not finished([first, TrialRecord(**{**vars(second), "failures": ()})], SIX)


LETTER = st.sampled_from(sorted(LETTERS))


@given(
    *[st.text(LETTER, max_size=9)] * 3,
    st.integers(1, 9),
    st.none() | st.integers(0, 9),
    st.booleans(),
)
def test_running_what_is_needed_always_ends(
    threads: str, serial: str, solo: str, trials: int, solos: int | None, early: bool
) -> None:
    design = Design(trials, max(1, trials - 2), solo=solos, stop_early=early)
    records = cell(threads, serial, solo)
    for _ in range(4):
        needed = next_needed(records, design)
        if not needed:
            break
        assert all(count > 0 for count in needed.values())
        for which, count in needed.items():
            records += side(which, "." * count)
    assert finished(records, design)


def test_blocks_order_the_trials_not_the_sequence() -> None:
    records = cell("FFFF..", "......")
    blocks = [Placed(record, i % 6) for i, record in enumerate(records)]
    random.Random(3).shuffle(blocks)
    assert difference(by_side(blocks), SIX) == difference(by_side(records), SIX)


@pytest.mark.parametrize("letter", ["F", "H"])
@pytest.mark.parametrize(
    "design",
    [
        Design(4, 4),
        Design(6, 6),
        Design(12, 12),
        Design(12, 6),
        Design(6, 12),
        Design(6, 6, stop_early=False),
        Design(12, 6, solo=0, stop_early=False),
        Design(12, 12, stop_early=False),
    ],
)
def test_equal_rates_are_called_different_in_at_most_five_percent(design: Design, letter: str) -> None:
    """Exact: every count that each stage between two looks can show, weighted by its probability."""
    at = [0, *(look.blocks for look in looks(design))]
    sides = (Side.THREADS, Side.SERIAL)
    sizes = [design.planned(which, b) - design.planned(which, a) for a, b in pairwise(at) for which in sides]
    pool = {which: {x: side(which, x * 12) for x in (".", letter)} for which in sides}
    grid = [step / 20 for step in range(1, 20)]
    false = [0.0] * len(grid)
    for failed in product(*(range(size + 1) for size in sizes)):
        records = [
            pool[which][x][0]
            for i, (k, n) in enumerate(zip(failed, sizes, strict=True))
            for which in (sides[i % 2],)
            for x in letter * k + "." * (n - k)
        ]
        if difference(by_side(records), design) is None:
            continue
        ways, k, n = prod(comb(n, k) for k, n in zip(failed, sizes, strict=True)), sum(failed), sum(sizes)
        false = [old + ways * p**k * (1 - p) ** (n - k) for old, p in zip(false, grid, strict=True)]
    assert max(false) <= 0.05
    assert max(false) > 0


@pytest.mark.parametrize("weights", [(4, 2, 2, 2), (1, 3, 3, 1), (0, 1, 1, 0), (6, 1, 1, 1), (2, 1, 1, 5)])
def test_equal_mixtures_of_faults_are_seldom_called_a_race(weights: tuple[int, ...]) -> None:
    """Two signatures and hangs, alike on both sides: RACE in at most 5 % (1,500 cells, 3 standard errors)."""
    rng = random.Random(5)
    design, cells, false = Design(12, 12), 1500, 0
    pool = {which: dict(zip(".FSH", side(which, ".FSH"), strict=True)) for which in (Side.THREADS, Side.SERIAL)}
    for _ in range(cells):
        records = [pool[which][x] for which in (Side.THREADS, Side.SERIAL) for x in rng.choices(".FSH", weights, k=12)]
        false += headline(records, design) is Headline.RACE
    assert false / cells <= 0.05 + 3 * (0.05 * 0.95 / cells) ** 0.5


def test_further_trials_at_the_same_rates_do_establish_it() -> None:
    more = further_needed(2, 6, 0, 6, SIX)
    assert more is not None
    n = 6 + more
    assert n >= 12  # a design with three looks, as the forecast takes it
    assert headline(cell("." * (n - n // 3) + "F" * (n // 3), "." * n), Design(n, n)) is Headline.RACE
    fewer = n - 1
    assert headline(cell("." * (fewer - fewer // 3) + "F" * (fewer // 3), "." * fewer), Design(fewer, fewer)) is None
    assert further_needed(1, 6, 1, 6, SIX) is None
    assert further_needed(1, 6, 0, 0, SIX) is None


def test_a_design_that_measures_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="measures nothing"):
        Design(0, 6)
    with pytest.raises(ValueError, match="not a rate"):
        Design(6, 6, max_race_rate=0)
