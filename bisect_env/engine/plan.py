"""Which trial comes next: pure, seeded, and the same again after an interruption.

A *round* gives every unfinished cell at most one trial of each side, in an order shuffled across all cells, so that a
machine that drifts (heat, other load) meets all cells alike. A trial is identified by its cell, its side and its
index in that side; its seed depends on the condition and the index only, so that threads and controls of one index do
the same work in every cell.

Several trials may run at a time. What runs is taken for clean when the next trial is chosen, so that no place waits for
a round to end, and no trial is begun that would be needless if it comes clean. Whether a cell goes on is decided on its
trials in order: one whose predecessor still runs must wait for it, or a look would depend on which trial was quick.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from bisect_env.matrix.cells import Cell, digest
from bisect_env.trials.records import Outcome, Side, TrialRecord
from bisect_env.verdicts.looks import Design, next_needed
from bisect_env.verdicts.samples import Placed, Sample, counts

COUNTED = (Side.SERIAL, Side.THREADS, Side.SOLO)


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
        needed: for each unfinished cell, how many more trials each side needs, and the index of the next one.
        seed: the run's seed; the order depends on it and on the state alone.

    A cell without a serial control gets that first: the limit for a hang is taken from it.
    """
    first: list[Slot] = []
    rest: list[Slot] = []
    for cell, missing, upcoming in needed:
        for side in COUNTED:
            if missing.get(side, 0) > 0:
                slot = Slot(cell, side, upcoming.get(side, 0))
                (first if side is Side.SERIAL and slot.index == 0 else rest).append(slot)
    state = [(slot.cell.key, slot.side, slot.index) for slot in first + rest]
    order = random.Random(digest([seed, state]))
    order.shuffle(first)
    order.shuffle(rest)
    return tuple(first + rest)


class Chooser:
    """Hands out the trials of one round after the other. The same history gives the same choice."""

    def __init__(self, design: Design, seed: int) -> None:
        self._design, self._seed = design, seed
        self._round: list[Slot] = []
        """What is left of the round, and of earlier ones the trials of cells that had to wait."""

    def next(
        self, cells: Iterable[tuple[Cell, Sequence[Sample]]], running: Collection[Slot], waiting: Collection[Cell] = ()
    ) -> Slot | None:
        """The trial for a free place; None when nothing can be begun before something has ended.

        Args:
            cells: the cells that can be measured, each with its stored trials.
            running: counted trials that have been begun and have not ended.
            waiting: cells of which no trial may begin now.
        """
        begun: dict[str, list[Sample]] = {}
        for each in running:
            begun.setdefault(each.cell.key, []).append(_as_if_clean(each))
        views = {cell.key: (cell, [*samples, *begun.get(cell.key, ())]) for cell, samples in cells}
        held = {cell.key for cell in waiting}
        slot = self._take(views, held)
        if slot is None:
            open_cells = [(cell, samples) for key, (cell, samples) in views.items() if key not in held]
            needed = [
                (cell, next_needed(in_order(samples), self._design), first_missing(samples))
                for cell, samples in open_cells
            ]
            self._round += next_round(needed, self._seed)
            slot = self._take(views, held)
        return slot

    def _take(self, views: Mapping[str, tuple[Cell, Sequence[Sample]]], held: Collection[str]) -> Slot | None:
        for slot in list(self._round):
            if slot.cell.key in held:
                continue
            self._round.remove(slot)
            _, samples = views[slot.cell.key]
            if next_needed(in_order(samples), self._design).get(slot.side, 0) > 0:
                return slot
        return None


def first_missing(samples: Iterable[Sample]) -> dict[Side, int]:
    """Of each counted side the first block without a trial: the index of its next one."""
    taken: dict[Side, set[int]] = {side: set() for side in COUNTED}
    for sample in samples:
        if counts(sample.record):
            taken[sample.record.side].add(sample.block)
    return {side: next(index for index in count() if index not in blocks) for side, blocks in taken.items()}


def in_order(samples: Sequence[Sample]) -> list[Sample]:
    """The samples without the counted ones behind a block that is still missing on their side."""
    until = first_missing(samples)
    return [sample for sample in samples if not counts(sample.record) or sample.block < until[sample.record.side]]


def _as_if_clean(slot: Slot) -> Sample:
    record = TrialRecord("", "", "", slot.cell.condition, slot.side, 0, Outcome.CLEAN)
    return Placed(record, slot.index)


def silence_limit(floor: float, first: float, silences: Sequence[float], tripled: bool) -> float:
    """Seconds without an event after which a trial hangs.

    Five times the longest silence of the cell's serial controls and at least ``floor``; ``first`` while there is no
    control. ``tripled`` once a cell has hung: the hang is confirmed under a longer limit before it counts.
    """
    limit = max(floor, 5 * max(silences)) if silences else max(floor, first)
    return 3 * limit if tripled else limit
