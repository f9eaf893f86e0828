"""Which mitigation clears a racing cell, and what it costs: a cell's twins that differ in ``mitigation`` only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from bisect_env.report.rows import Row, measured_on
from bisect_env.report.twins import groups, level_of
from bisect_env.trials.records import Outcome
from bisect_env.verdicts.facts import BAD
from bisect_env.verdicts.hardware import belongs
from bisect_env.verdicts.records import Headline, Interval, Throughput
from bisect_env.verdicts.samples import Sample, by_side, counted
from bisect_env.verdicts.statistics import clopper_pearson, fisher_greater, upper_bound
from bisect_env.verdicts.throughput import throughput

KEY, NONE = "mitigation", "none"
ALPHA = 0.05
"""Of the comparison of one mitigation with none; several mitigations are several comparisons."""
SPOILED = (Headline.RACE, Headline.HANG, Headline.BROKEN, Headline.OOM, Headline.WRONG)


class Effect(StrEnum):
    """What a mitigation does to the failures of the cell without one."""

    CLEARED = "cleared"
    """All its planned trials are in, none failed, and without it significantly more do."""
    NOT_CLEARED = "not cleared"
    """A threaded trial failed under it, or its cell is broken, wrong or out of memory."""
    UNSURE = "unsure"
    """Nothing failed, and chance can explain that, trials are missing, or without it other GPUs were measured."""
    NOTHING = "nothing to clear"
    """Nothing failed without it either."""
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Mitigated:
    """One mitigation of one cell, beside the cell without."""

    none: Row
    row: Row
    mitigation: str
    effect: Effect
    failed: Interval | None
    """Threaded trials that failed in any way: raised, hung, ran out of memory, or computed wrong numbers."""
    bound: float | None
    """One-sided 95 % upper bound of that rate."""
    p_value: float | None
    """One-sided exact test: do more trials fail without the mitigation?"""
    missing: int
    """Planned threaded trials that are not in yet."""
    throughput: Throughput | None
    """Its ratio is that to the cell without a mitigation."""


def mitigations(rows: Sequence[Row], planned: int) -> tuple[tuple[Row, tuple[Mitigated, ...]], ...]:
    """Each cell without a mitigation that has mitigated twins, with these.

    Args:
        rows: all cells of a matrix.
        planned: threaded trials of a cell; a cell with fewer clears nothing yet, since to look at a comparison after
            every trial would find a lucky moment.
    """
    found = []
    for group in groups(rows, KEY):
        none = next((row for row in group if level_of(row, KEY) == NONE), None)
        if none is not None:
            twins = tuple(_compare(none, row, planned) for row in group if row is not none)
            found.append((none, twins))
    return tuple(found)


def effect(none: Interval | None, own: Interval | None, headline: Headline, planned: int) -> Effect:
    """What a mitigation does, from the failures without and with it and from its cell's headline."""
    if own is None:
        return Effect.NOT_RUN
    if own.k > 0 or headline in SPOILED:
        return Effect.NOT_CLEARED
    if none is None or headline is Headline.UNSURE:
        return Effect.UNSURE
    if none.k == 0:
        return Effect.NOTHING
    rare = fisher_greater(none.k, none.n, own.k, own.n) <= ALPHA
    return Effect.CLEARED if rare and own.n >= planned else Effect.UNSURE


def failures(row: Row) -> Interval | None:
    """Threaded trials of a row that failed in any way; None where there is none that counts."""
    records = counted(by_side(row.samples).threads)
    if not records:
        return None
    return clopper_pearson(sum(record.outcome in (*BAD, Outcome.WRONG) for record in records), len(records))


def _compare(none: Row, row: Row, planned: int) -> Mitigated:
    # What was measured on other GPUs is no comparison.
    before, own = failures(none) if measured_on(none) == measured_on(row) else None, failures(row)
    return Mitigated(
        none,
        row,
        level_of(row, KEY),
        effect(before, own, row.verdict.headline, planned),
        own,
        None if own is None else upper_bound(own.k, own.n),
        None if own is None or before is None else fisher_greater(before.k, before.n, own.k, own.n),
        max(0, planned - (own.n if own is not None else 0)),
        throughput(by_side(row.samples), by_side(_beside(row, none))),
    )


def _beside(row: Row, none: Row) -> list[Sample]:
    """Of the cell without a mitigation the trials that took turns with the row's: same run and block, and same GPUs."""
    places = {(sample.run_id, sample.block) for sample in row.samples}
    judged = measured_on(row)
    return [
        sample
        for sample in (*none.samples, *none.elsewhere)
        if (sample.run_id, sample.block) in places and belongs(sample.record, judged)
    ]
