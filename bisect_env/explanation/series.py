"""Trials of one kind after another, or side by side, until there are enough."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace

from bisect_env.engine.attempt import Attempt
from bisect_env.engine.executor import Slots
from bisect_env.engine.progress import Reporter
from bisect_env.errors import BadInput, InfrastructureError
from bisect_env.matrix.cells import Cell
from bisect_env.trials.records import Outcome, Side, TrialRecord

RETRIES = 3
"""Trials in a row that say nothing of the cell, after which it ends."""
HOPELESS = (Outcome.IMPORT_FAILED, Outcome.SKIPPED)
"""What ends so will end so again."""
Task = tuple[Side, int]
"""Kind and number of a trial."""


def run(
    slots: Slots[Task],
    like: Attempt,
    tasks: Iterator[Task],
    of: int,
    needed: Callable[[], int],
    keep: Callable[[TrialRecord], None],
    reporter: Reporter,
) -> None:
    """Run trials: as many at a time as there is room for, and as are needed whatever comes of those that run.

    Args:
        slots: where.
        like: the first one, but for its kind and number.
        tasks: what is to be run, in order; at least so many as will be needed.
        of: how many of a kind there are at most, for the reporter.
        needed: how many more there must be, those that run included.
        keep: gets each that says something of the cell.
        reporter: is told of every trial.

    Raises:
        BadInput: they cannot run here.
        InfrastructureError: they fail for reasons that say nothing of the cell, again and again.
    """
    again, running, in_vain = deque[Task](), set[Task](), 0
    while needed() > 0:
        while slots.free and len(running) < needed():
            side, number = task = again.popleft() if again else next(tasks)
            slot = replace(like.slot, side=side, index=number)
            reporter.trial_started(slot.cell, side, number + 1, max(of, number + 1))
            slots.start(task, replace(like, slot=slot))
            running.add(task)
        task, record = slots.wait()
        running.remove(task)
        slots.give_back(task)
        useless = record.outcome is Outcome.INFRA
        reporter.trial_ended(like.slot.cell, record, f"not counted: {record.message}" if useless else "")
        in_vain = in_vain + 1 if useless else 0
        if useless:
            again.append(task)
        else:
            keep(record)
        _refuse(like.slot.cell, record, in_vain)


def alone(slots: Slots[Task], attempt: Attempt) -> TrialRecord:
    """One attempt and nothing beside it."""
    task = attempt.slot.side, attempt.slot.index
    slots.start(task, attempt)
    record = slots.wait()[1]
    slots.give_back(task)
    return record


def _refuse(cell: Cell, record: TrialRecord, in_vain: int) -> None:
    """Raise where no further trial would tell more."""
    if in_vain == RETRIES or (record.outcome is Outcome.INFRA and record.aborted):
        raise InfrastructureError(
            f"{cell.id}: a trial failed for a reason that says nothing about the cell: {record.message}\n"
            "  What was measured so far is kept: the same command goes on from there."
        )
    if record.outcome in HOPELESS:
        shown = str(record.failures[0].signature) if record.failures else record.message
        wanted = f"a cell whose reproducer runs; `bisect-env show {record.id}` has this trial's output"
        raise BadInput("CELL", "", f"its trials cannot run here: {record.outcome}: {shown}", wanted)
