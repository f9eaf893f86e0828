"""Which cells take turns together, and in which order."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from bisect_env.engine.grouping import (
    CONTEXT_BYTES,
    UNKNOWN,
    USABLE,
    Entrant,
    Session,
    baseline_of,
    by_hardware,
    needs_rounds,
    plan,
    starts,
    turns,
    waves,
)
from bisect_env.environments.records import Environment, Interpreter, Lock
from bisect_env.matrix.cells import Cell, Condition, EnvironmentRequest, Matrix, ReproducerChoice
from bisect_env.store.trials import StoredTrial
from bisect_env.trials.records import Device, Outcome, Round, Side
from bisect_env.verdicts.hardware import Hardware
from bisect_env.verdicts.throughput import WARMED
from tests.verdicts.build import record

GIB = 2**30


def cell(torch: str, mitigation: str = "none", **values: str | int) -> Cell:
    condition = Condition.of({"threads": 2, "rounds": 4, "mitigation": mitigation, **values})
    levels = (("torch", torch), ("mitigation", mitigation))
    return Cell(f"{torch}-{mitigation}", levels, EnvironmentRequest((f"torch=={torch}",)), condition)


def entrant(of: Cell, letters: str = "..", peak: int | None = None) -> Entrant:
    outcomes = {".": Outcome.CLEAN, "F": Outcome.FAILED, "H": Outcome.HANG, "X": Outcome.INFRA, "O": Outcome.OOM}
    records = [record(Side.THREADS, outcomes[x], peak_bytes=peak) for x in letters] + [record(Side.SERIAL)]
    samples = tuple(StoredTrial(item, number, "r1") for number, item in enumerate(records))
    lock = Lock("", Interpreter(Path("/python"), "3.12.1", "cpython", "linux-x86_64"), (), None, of.request.key)
    return Entrant(of, Environment(lock, Path("/environment"), Path("/python"), "", 0.0), samples)


def matrix(*cells: Cell, reference: tuple[tuple[str, str], ...] = (("torch", "2.10"),)) -> Matrix:
    return Matrix("m", Path("m.yaml"), cells, ("torch",), ReproducerChoice("dflash"), reference=reference)


def names(sessions: tuple[Session, ...]) -> list[list[str]]:
    return [[each.cell.id for each in session.entrants] for session in sessions]


def test_what_needs_rounds() -> None:
    own = cell("2.11")
    fine = entrant(own).samples
    assert needs_rounds(own, fine)
    assert not needs_rounds(own, ()), "nothing was seen to come through yet"
    assert not needs_rounds(Cell("x", (), own.request, Condition.of({"threads": 2})), fine), "no rounds to be had"
    failed = tuple(StoredTrial(record(side, Outcome.FAILED), 0, "r") for side in (Side.THREADS, Side.SERIAL))
    assert not needs_rounds(own, failed), "it is broken"
    for outcome, needed in ((Outcome.CLEAN, False), (Outcome.FAILED, False), (Outcome.INFRA, True)):
        timed = StoredTrial(record(Side.ROUNDS, outcome, rounds=(Round(0, 1, 1.0, 1.0),)), 0, "r")
        assert needs_rounds(own, (*fine, timed)) is needed


def test_cells_are_compared_with_their_reference_and_mitigations_with_none() -> None:
    old, new, locked = cell("2.10"), cell("2.11"), cell("2.11", "lock-all")
    both = matrix(old, new, locked)
    assert (baseline_of(both, old), baseline_of(both, new), baseline_of(both, locked)) == (None, old, new)
    assert baseline_of(matrix(new, locked, reference=()), locked) == new
    like = cell("2.10", "lock-all")
    assert baseline_of(matrix(old, new, locked, like), locked) == like, "a reference of its own comes first"
    assert baseline_of(matrix(new, cell("2.12", "lock-all")), cell("2.12", "lock-all")) is None


def test_every_session_holds_its_baseline_and_sessions_are_even() -> None:
    cells = [cell("2.10"), *(cell(f"2.{minor}") for minor in range(11, 22))]
    locked = [cell("2.11", f"lock-{number}") for number in range(9)]
    found, left = plan(matrix(*cells, *locked), [entrant(each) for each in (*cells, *locked)], 10, None)
    assert not left and [len(session.entrants) for session in found] == [6, 7, 10]
    assert all(session.baseline is not None for session in found)
    assert [each[0] for each in names(found)] == ["2.10-none", "2.10-none", "2.11-none"]
    assert sorted(name for each in names(found) for name in each[1:]) == sorted(c.id for c in (*cells[1:], *locked))


def test_a_cell_that_has_rounds_takes_part_only_as_a_baseline() -> None:
    old, new, third = cell("2.10"), cell("2.11"), cell("2.12")
    timed = StoredTrial(record(Side.ROUNDS, rounds=(Round(0, 1, 1.0, 1.0),)), 0, "r")
    done = [Entrant(each.cell, each.environment, (*each.samples, timed)) for each in (entrant(old), entrant(new))]
    found, _ = plan(matrix(old, new, third), [*done, entrant(third)], 4, None)
    assert names(found) == [["2.10-none", "2.12-none"]]
    assert plan(matrix(old, new), done, 4, None) == ((), ())
    alone, _ = plan(matrix(old, new), [entrant(old), done[1]], 4, None)
    assert names(alone) == [["2.10-none"]]
    without, _ = plan(matrix(old, new, third), [entrant(new), entrant(third)], 4, None)
    assert names(without) == [["2.11-none", "2.12-none"]] and without[0].baseline is None


def test_memory_bounds_a_session_and_what_does_not_fit_is_named() -> None:
    cells = [cell(f"2.{minor}") for minor in range(10, 20)]
    known = [entrant(each, peak=10**10) for each in cells]
    assert known[0].bytes == int(1.3e10) + CONTEXT_BYTES
    one, left = plan(matrix(*cells), known, 32, 150_754_820_096)  # an H200
    assert [len(session.entrants) for session in one] == [10] and not left
    small, left = plan(matrix(*cells), known, 32, 40 * GIB)
    assert [len(session.entrants) for session in small] == [2] * 9 and not left
    none, left = plan(matrix(*cells), known, 32, 20 * GIB)
    assert none == () and [each.cell for each in left] == cells[1:]
    unknown = [*known[:-1], entrant(cells[-1])]
    assert max(len(s.entrants) for s in plan(matrix(*cells), unknown, 32, 10**12)[0]) == UNKNOWN


@given(
    st.lists(st.none() | st.integers(1, 60), min_size=1, max_size=14),
    st.integers(2, 12),
    st.none() | st.integers(8, 140),
)
def test_nothing_is_lost_and_nothing_is_too_large(peaks: list[int | None], most: int, memory: int | None) -> None:
    cells = [cell(f"2.{number}") for number in range(10, 10 + len(peaks))]
    entrants = [
        entrant(each, peak=None if peak is None else peak * GIB) for each, peak in zip(cells, peaks, strict=True)
    ]
    found, left = plan(matrix(*cells), entrants, most, None if memory is None else memory * GIB)
    others = Counter(each.cell.id for session in found for each in session.others)
    others.update(each.cell.id for each in left)
    assert others == Counter(each.id for each in cells[1:]) or not cells[1:]
    for session in found:
        assert session.baseline is entrants[0] and len(session.entrants) <= most
        if memory is not None and session.others:
            assert sum(each.bytes or 0 for each in session.entrants) <= USABLE * memory * GIB


def test_sessions_that_start_together_fit_on_gpus_and_cores() -> None:
    sizes = [7, 6, 10, 4, 12]
    sessions = [Session(None, tuple([entrant(cell("2.11"))] * size)) for size in sizes]
    assert [[len(s.others) for s in wave] for wave in waves(sessions, 2, 16)] == [[7, 6], [10, 4], [12]]
    assert [len(wave) for wave in waves(sessions, 1, 99)] == [1] * 5
    assert [len(wave) for wave in waves(sessions, 9, 8)] == [1] * 5
    assert list(waves([], 1, 1)) == []


@given(st.integers(0, 9), st.integers(1, 9), st.booleans(), st.integers())
def test_every_round_is_beside_the_baselines(count: int, rounds: int, compared: bool, seed: int) -> None:
    others = [f"c{number}" for number in range(count)]
    cycles = list(turns("base" if compared else None, others, rounds, seed))
    assert len(cycles) == rounds and cycles == list(turns("base" if compared else None, others, rounds, seed))
    for number, cycle in enumerate(cycles):
        assert Counter(name for name in cycle if name != "base") == Counter(others)
        if compared:
            assert cycle.count("base") == max(1, (count + 1) // 2)
            assert all("base" in cycle[max(0, at - 1) : at + 2] for at in range(len(cycle)))
        if number % 2:
            assert cycle == cycles[number - 1][::-1], "what came before the baseline comes after it"


def test_a_racing_cell_is_warmed_up_and_a_mitigation_is_not_replaced() -> None:
    assert starts(entrant(cell("2.11"), "....")) == (False, False, True)
    assert starts(entrant(cell("2.11"), "F.X.")) == (False, False, True)
    assert starts(entrant(cell("2.11"), "FFH.")) == (True, True)
    assert starts(entrant(cell("2.11"), "")) == (False, False, True)
    warmed = StoredTrial(record(Side.ROUNDS, extra=((WARMED, "why"),)), 0, "r1")
    assert starts(entrant(cell("2.11"), "....").after([warmed])) == (True, True)
    assert starts(entrant(cell("2.11", "lock-all"), "....").after([warmed])) == (False, False)
    assert starts(entrant(cell("2.11", "lock-all"), "FFFF")) == (False, False)


def test_where_gpus_differ_each_kind_has_its_sessions_and_the_baseline_takes_part_in_all() -> None:
    def on(name: str, of: Entrant) -> Entrant:
        gpu = (Device("GPU-1", name, 0, GIB, "580.1"),)
        moved = [replace(sample, record=replace(sample.record, devices=gpu)) for sample in of.samples]
        return replace(of, samples=tuple(moved))

    base, same, other = on("A", entrant(cell("2.10"))), on("A", entrant(cell("2.11"))), on("B", entrant(cell("2.12")))
    failed = entrant(cell("2.13"), "X")
    every = (base, same, other, replace(failed, samples=failed.samples[:1]))
    whole = matrix(*(each.cell for each in every))
    [(first, alike), (second, others)] = by_hardware(whole, every)
    assert (first, alike) == (Hardware((("A", "580.1"),)), (base, same))
    assert (second, others) == (Hardware((("B", "580.1"),)), (other, base))
    sessions, left = plan(whole, others, 8, GIB * 100)
    assert names(sessions) == [["2.10-none", "2.12-none"]] and not left
