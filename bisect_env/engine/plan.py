"""Which trial comes next: pure, seeded, and the same again after an interruption.

A *round* gives every unfinished cell at most one trial of each side, in an order shuffled across all cells, so that a
machine that drifts (heat, other load) meets all cells alike. A trial is identified by its cell, its side and its
index in that side; its seed depends on the condition and the index only, so that threads and controls of one index do
the same work in every cell.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bisect_env.matrix.cells import Cell, digest
from bisect_env.trials.records import Side


@dataclass(frozen=True)
class Slot:
    """One trial to run."""

    cell: Cell
    side: Side
    index: int


def seed_of(run_seed: int, cell: Cell, index: int) -> int:
    """The trial's seed, below 2**31."""
    return int(digest([run_seed, cell.condition_key, index], 8), 16) % 2**31


def next_round(needed: Sequence[tuple[Cell, Mapping[Side, int], Mapping[Side, int]]], seed: int) -> tuple[Slot, ...]:
    """The trials of the next round.

    Args:
        needed: for each unfinished cell, how many more trials each side needs, and how many it has.
        seed: the run's seed; the order depends on it and on the state alone.

    A cell without a serial control gets that first: the limit for a hang is taken from it.
    """
    first: list[Slot] = []
    rest: list[Slot] = []
    for cell, missing, done in needed:
        for side in (Side.SERIAL, Side.THREADS, Side.SOLO):
            if missing.get(side, 0) > 0:
                slot = Slot(cell, side, done.get(side, 0))
                (first if side is Side.SERIAL and slot.index == 0 else rest).append(slot)
    state = [(slot.cell.key, slot.side, slot.index) for slot in first + rest]
    order = random.Random(digest([seed, state]))
    order.shuffle(first)
    order.shuffle(rest)
    return tuple(first + rest)


def silence_limit(floor: float, first: float, silences: Sequence[float], tripled: bool) -> float:
    """Seconds without an event after which a trial hangs.

    Five times the longest silence of the cell's serial controls and at least ``floor``; ``first`` while there is no
    control. ``tripled`` once a cell has hung: the hang is confirmed under a longer limit before it counts.
    """
    limit = max(floor, 5 * max(silences)) if silences else max(floor, first)
    return 3 * limit if tripled else limit
