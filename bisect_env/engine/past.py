"""What became of a matrix over its runs, from the store alone: each cell as it stood at the end of each run.

A verdict after a run rests on the trials that counted then: of that run's environment, reproducer, GPU model and
driver, those of earlier runs included, but none that a run with ``--fresh`` had put aside by then.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from bisect_env.environments.records import Lock, Unavailable
from bisect_env.matrix.cells import Cell
from bisect_env.store.database import Store
from bisect_env.store.runs import StoredRun
from bisect_env.store.trials import StoredTrial
from bisect_env.trials.records import Outcome, Side
from bisect_env.verdicts.hardware import belongs, most
from bisect_env.verdicts.looks import Design
from bisect_env.verdicts.records import Verdict
from bisect_env.verdicts.verdict import judge, without_environment

FRESH = "--fresh"


@dataclass(frozen=True)
class Moment:
    """A cell at the end of a run that measured something of it."""

    run: StoredRun
    cell: Cell
    """As it was defined then."""
    verdict: Verdict
    lock: Lock | None
    """None where the store has no environment of this address any more."""
    samples: tuple[StoredTrial, ...]
    """That counted then."""
    own: int
    """Trials that this run added, whatever they said."""

    @property
    def address(self) -> str:
        """Of the environment."""
        return self.samples[-1].record.environment


@dataclass(frozen=True)
class CellPast:
    """A cell, by its name, over the runs."""

    cell: Cell
    """As the last run defined it."""
    moments: tuple[Moment, ...]
    """The earliest first; empty: never measured."""
    now: Verdict | None
    """What is known of it without a trial: it has no environment at present, or was never run."""


@dataclass(frozen=True)
class Past:
    """A matrix over its runs."""

    matrix: str
    runs: tuple[StoredRun, ...]
    """The earliest first, those that measured nothing included."""
    cells: tuple[CellPast, ...]


def past(store: Store, matrix: str) -> Past:
    """What the store has of the runs of the matrix with this name. Cells are told apart by name.

    Without the matrix file there is no reference cell, so that no cell is SLOW.
    """
    runs = tuple(reversed(store.runs(matrix)))
    fresh = sorted(run.started for run in store.runs() if FRESH in run.argv)
    names: defaultdict[str, list[Cell]] = defaultdict(list)
    seen = set()
    for stored in store.cells(""):  # The latest first: a key that was renamed goes by its latest name.
        if stored.matrix == matrix and stored.key not in seen:
            seen.add(stored.key)
            names[stored.cell.id].append(stored.cell)
    cells = []
    for alike in names.values():
        moments = [moment for cell in alike for moment in _moments(store, cell, runs, fresh)]
        moments.sort(key=lambda moment: moment.run.started)
        cells.append(CellPast(alike[0], tuple(moments), _now(store, alike[0], bool(moments))))
    return Past(matrix, runs, tuple(sorted(cells, key=lambda found: found.cell.id)))


def design_of(run: StoredRun | None, samples: Sequence[StoredTrial]) -> Design:
    """The plan of a run; where an older version did not note it, as many trials as there are.

    To take an unfinished cell for a finished one would be a further look.
    """
    if run is not None and run.trials:
        return Design(run.trials, run.controls, solo=run.solo, stop_early=run.stop_early)
    sides = [sample.record.side for sample in samples if sample.record.outcome is not Outcome.INFRA]
    solo = sides.count(Side.SOLO)
    return Design(max(1, sides.count(Side.THREADS)), sides.count(Side.SERIAL), solo=solo)


def _moments(store: Store, cell: Cell, runs: Sequence[StoredRun], fresh: Sequence[float]) -> list[Moment]:
    every = store.trials_of_cell(cell.key)
    kinds = {(sample.record.environment, sample.record.reproducer) for sample in every}
    counting = {sample.record.id for kind in kinds for sample in store.trials(cell.key, *kind)}
    found = []
    for run in runs:
        own = [sample for sample in every if sample.run_id == run.id]
        said = [sample for sample in own if sample.record.side not in (Side.WARMUP, Side.WITNESS)]
        if not said:
            continue
        last = said[-1].record
        kind = (last.environment, last.reproducer)
        judged = most(sample for sample in said if (sample.record.environment, sample.record.reproducer) == kind)
        until = max(sample.record.started for sample in own)
        # Put aside by the first fresh run after it; before that one, it counted.
        begun = max((start for start in fresh if start <= last.started), default=0.0)
        samples = tuple(
            sample
            for sample in every
            if (sample.record.environment, sample.record.reproducer) == kind
            and belongs(sample.record, judged)
            and sample.record.started <= until
            and (sample.record.id in counting or sample.record.started >= begun)
        )
        environment = store.environment(last.environment)
        verdict = judge(samples, design_of(run, samples))
        found.append(Moment(run, cell, verdict, environment.lock if environment else None, samples, len(own)))
    return found


def _now(store: Store, cell: Cell, measured: bool) -> Verdict | None:
    lock = store.lock(cell.request.key)
    missing = lock if isinstance(lock, Unavailable) else store.unavailable(cell.key, lock.address if lock else None)
    if missing is not None:
        return without_environment(missing)
    return None if measured else judge((), Design(1, 0))
