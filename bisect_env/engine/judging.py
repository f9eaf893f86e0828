"""From what is known of every cell to verdicts: which other cells' trials speak for one. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bisect_env.engine.results import Result
from bisect_env.engine.state import CellState
from bisect_env.environments.records import Lock
from bisect_env.matrix.cells import Condition, Matrix
from bisect_env.store.trials import StoredTrial
from bisect_env.verdicts.hardware import belongs, marks
from bisect_env.verdicts.looks import Design
from bisect_env.verdicts.records import Headline, Verdict
from bisect_env.verdicts.verdict import judge, without_environment

CONTROLS = (
    "a command must itself work in one thread when its condition's `side` is not `threads`: is this one's control one?"
)


def design_of(matrix: Matrix, max_race_rate: float) -> Design:
    """What the matrix fixes beforehand."""
    return Design(
        trials=matrix.trials,
        controls=matrix.controls,
        slow_below=matrix.slow_below,
        max_race_rate=max_race_rate,
        solo=matrix.solo,
        stop_early=matrix.stop_early,
    )


def verdict(state: CellState, states: Sequence[CellState], matrix: Matrix, design: Design, protocol: bool) -> Verdict:
    """A cell's verdict.

    Args:
        state: the cell.
        states: every cell of the matrix, itself included.
        matrix: names the cell that throughput is compared with.
        design: of the run.
        protocol: whether the reproducer speaks the protocol; False for a user's own command.
    """
    missing = state.unavailable
    if missing is not None:
        return without_environment(missing)
    found = judge(state.samples, design, _reference(state, states, matrix), _warmed(state, states))
    if found.headline is Headline.BROKEN and not protocol:
        # The usual cause with a command of the user's own, and nothing in its trials can tell.
        found = replace(found, marks=(*found.marks, CONTROLS))
    return replace(found, marks=(*found.marks, *marks(state.hardware, state.elsewhere)))


def result(state: CellState, found: Verdict) -> Result:
    """The cell's line in every report."""
    lock = state.lock if isinstance(state.lock, Lock) else None
    return Result(state.cell, found, lock, tuple(state.samples), tuple(state.elsewhere))


def _reference(state: CellState, states: Sequence[CellState], matrix: Matrix) -> Sequence[StoredTrial] | None:
    """The reference cell's trials that ran interleaved with this cell's, on the same GPU model and driver.

    Interleaved are those of the same run and block. The reference itself may be measured on something else: its trials
    beside this cell's are then compared all the same.
    """
    cell = matrix.reference_of(state.cell)
    if cell is None or cell == state.cell:
        return None
    places = {(sample.run_id, sample.block) for sample in state.samples}
    reference = next(other for other in states if other.cell == cell)
    return [
        sample
        for sample in (*reference.samples, *reference.elsewhere)
        if (sample.run_id, sample.block) in places and belongs(sample.record, state.hardware)
    ]


def _warmed(state: CellState, states: Sequence[CellState]) -> Sequence[StoredTrial] | None:
    """The trials of the same cell with a prepared compile cache, where the matrix has that too."""
    cell = state.cell
    condition = Condition.of({**cell.condition.as_dict(), "cache": "warm"})
    twin = replace(cell, condition=condition)
    found = next((other for other in states if other.cell.key == twin.key != cell.key), None)
    if found is None:
        return None
    return [s for s in (*found.samples, *found.elsewhere) if belongs(s.record, state.hardware)]
