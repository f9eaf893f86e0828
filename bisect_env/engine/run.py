"""The engine: a matrix in, one result a cell out. Resumes by itself, since it counts what the store holds."""

from __future__ import annotations

import shutil
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from bisect_env.engine import prepare
from bisect_env.engine.plan import Slot, next_round, silence_limit
from bisect_env.engine.progress import Reporter
from bisect_env.engine.results import Result
from bisect_env.engine.settings import Settings
from bisect_env.engine.trialing import Bench, needs_warm_up, run_trial, warm_up
from bisect_env.engine.turn import turn
from bisect_env.environments.records import Environment, Lock, Unavailable
from bisect_env.environments.uv import Uv
from bisect_env.errors import InfrastructureError
from bisect_env.matrix.cells import Cell, Condition, EnvironmentRequest, Matrix
from bisect_env.store.database import Store
from bisect_env.store.trials import StoredTrial
from bisect_env.trials import gpu
from bisect_env.trials.records import Outcome, Reproducer, Side, TrialRecord
from bisect_env.verdicts.looks import Design, finished, next_needed
from bisect_env.verdicts.records import Headline, Verdict
from bisect_env.verdicts.verdict import judge, without_environment

RETRIES = 3
"""Attempts at one trial before its infrastructure failure ends the run."""
PROFILED = (Headline.DENSE, Headline.SLOW, Headline.UNSURE, Headline.FULL)
CONTROLS = (
    "a command must itself work in one thread when its condition's `side` is not `threads`: is this one's control one?"
)
COUNTED = (Side.THREADS, Side.SERIAL, Side.SOLO)


@dataclass
class CellState:
    """What the engine knows of one cell while it runs."""

    cell: Cell
    lock: Lock | Unavailable | None = None
    environment: Environment | Unavailable | None = None
    samples: list[StoredTrial] = field(default_factory=list)
    hung: bool = False
    """A trial hung under the first limit; from then on the limit is tripled."""

    @property
    def address(self) -> str | None:
        """Address of the cell's environment, None when there is no lock."""
        return self.lock.address if isinstance(self.lock, Lock) else None

    @property
    def records(self) -> list[TrialRecord]:
        """All stored trials of the cell, in order."""
        return [sample.record for sample in self.samples]


class Engine:
    """Runs a matrix. Not for more than one run; ``stop`` may be set from anywhere and ends it within a second."""

    def __init__(
        self,
        matrix: Matrix,
        reproducer: Reproducer,
        settings: Settings,
        store: Store,
        uv: Uv,
        reporter: Reporter,
        stop: threading.Event,
    ) -> None:
        self.matrix, self.reproducer, self.settings, self.store = matrix, reproducer, settings, store
        self.uv, self.reporter, self.stop = uv, reporter, stop
        self.design = Design(
            trials=matrix.trials,
            controls=matrix.controls,
            slow_below=matrix.slow_below,
            max_race_rate=settings.max_race_rate,
        )
        self.states = [CellState(cell) for cell in matrix.cells]

    def sweep(self) -> None:
        """Remove what killed runs left behind: their trials' folders."""
        for left in self.store.stale_in_flight():
            shutil.rmtree(left.folder, ignore_errors=True)
            self.store.clear_in_flight(left.trial_id)

    def run(self, run_id: str) -> None:
        """Resolve, build, and run trials until every cell is finished; what the store holds is not done again.

        What came of it, also of a run that was ended early, is in :meth:`results`.

        Raises:
            InfrastructureError: the disk is too small, or the machine failed several times in a row.
            KeyboardInterrupt: after every child has been ended; what was measured is in the store.
        """
        self.sweep()
        if not self.settings.fresh:
            self.prepare()
            if not self._unfinished():
                return
        about = f"run {run_id} of {self.matrix.name}"
        with turn(self.settings.root, about, self.stop, self.reporter.note) as waited:
            if self.settings.fresh:
                self.store.retire([cell.key for cell in self.matrix.cells])
            if self.settings.fresh or waited:
                self.prepare()
            self._build()
            self._measure(run_id)

    def prepare(self) -> None:
        """Resolve every cell and load what the store holds of it."""
        cells = self.matrix.cells
        locks = prepare.resolve(cells, self.store, self.uv, self.reporter, self.stop, self.settings.fresh)
        states = []
        self.store.put_cells(cells, self.matrix.name)
        for cell in cells:
            state = CellState(cell, locks[cell.request.key])
            if state.address is not None:
                state.samples = self._stored(cell, state.address)
                state.environment = self.store.unavailable(cell.key, state.address, retry_transient=True)
                state.hung = any(r.hang_kind and r.outcome is not Outcome.FAILED for r in state.records)
            states.append(state)
        self.states = states

    def _stored(self, cell: Cell, address: str) -> list[StoredTrial]:
        names = frozenset(device.name for device in gpu.devices(self.settings.gpus))
        uses_gpu = cell.condition.device != "cpu" and names
        return self.store.trials(
            cell.key, address, self.reproducer.content_hash, device_names=names if uses_gpu else frozenset()
        )

    def _unfinished(self) -> list[CellState]:
        return [
            state
            for state in self.states
            if isinstance(state.lock, Lock)
            and not isinstance(state.environment, Unavailable)
            and (not finished(state.samples, self.design) or self._wants_profile(state))
        ]

    def _build(self) -> None:
        wanted: dict[str, tuple[Lock, EnvironmentRequest, str]] = {}
        for state in self._unfinished():
            assert isinstance(state.lock, Lock)
            label = prepare.label_of(self.matrix.cells, state.cell.request)
            wanted.setdefault(state.lock.address, (state.lock, state.cell.request, label))
        if not wanted:
            return
        built = prepare.build(
            wanted, self.settings.root, self.store, self.uv, self.reporter, self.stop, self.matrix.limits
        )
        for state in self._unfinished():
            assert isinstance(state.lock, Lock)
            state.environment = built[state.lock.address]
            if isinstance(state.environment, Unavailable):
                self.store.put_unavailable(state.cell.key, state.lock.address, state.environment)

    def _measure(self, run_id: str) -> None:
        bench = Bench(self.matrix, self.settings, self.store, run_id, self.reproducer, self.stop, self.reporter.note)
        by_key = {state.cell.key: state for state in self.states}
        planned = sum(self.trials_left(state) for state in self.states)
        earlier = sum(sum(_done(state.samples).values()) for state in self.states)
        if earlier:
            self.reporter.note(f"{earlier} trials of earlier runs count; {planned} more at most")
        if planned:
            self.reporter.phase("trials", planned)
        while unfinished := self._unfinished():
            for state in unfinished:
                if finished(state.samples, self.design):
                    self._profile(bench, state)
            needed = [
                (state.cell, next_needed(state.samples, self.design), _done(state.samples)) for state in unfinished
            ]
            for slot in next_round(needed, self.settings.seed):
                state = by_key[slot.cell.key]
                if finished(state.samples, self.design):
                    continue
                self._run_slot(bench, state, slot)
                if finished(state.samples, self.design):
                    if self._wants_profile(state):
                        self._profile(bench, state)
                    self.reporter.cell_finished(state.cell, self._verdict(state))

    def trials_left(self, state: CellState) -> int:
        """Most trials that the cell can still take; a racing one may stop earlier."""
        unavailable = isinstance(state.lock, Unavailable) or isinstance(state.environment, Unavailable)
        if unavailable or finished(state.samples, self.design):
            return 0
        most = {Side.THREADS: self.design.trials, Side.SERIAL: self.design.controls, Side.SOLO: self.design.controls}
        done = _done(state.samples)
        return sum(max(0, count - done.get(side, 0)) for side, count in most.items())

    def _wants_profile(self, state: CellState) -> bool:
        """Whether a trial under the profiler is due: on a GPU, once, and where the path can decide the verdict."""
        on_gpu = any(sample.record.devices for sample in state.samples)
        profiled = any(sample.record.side is Side.PROFILE for sample in state.samples)
        return on_gpu and not profiled and self.reproducer.protocol and self._verdict(state).headline in PROFILED

    def _profile(self, bench: Bench, state: CellState) -> None:
        """One trial under the profiler, never counted: the kernels' names are a sign of the attention path."""
        assert isinstance(state.environment, Environment)
        slot = Slot(state.cell, Side.PROFILE, 0)
        self.reporter.trial_started(state.cell, Side.PROFILE, 1, 1)
        record = run_trial(bench, slot, state.environment, self.matrix.limits.first_silence, counts_hang=True)
        state.samples.append(StoredTrial(record, 0, bench.run_id))
        self.reporter.trial_ended(state.cell, record, "not counted: under the profiler")

    def _run_slot(self, bench: Bench, state: CellState, slot: Slot) -> None:
        """Run the trial until it counts.

        Raises:
            InfrastructureError: it never did, or trying again cannot help.
        """
        for attempt in range(1, RETRIES + 1):
            last = attempt == RETRIES
            warmed = self._warm_up(bench, state)
            record = warmed if warmed and warmed.outcome is Outcome.INFRA else self._attempt(bench, state, slot, last)
            if record.outcome is not Outcome.INFRA:
                return
            if record.aborted:
                break
        raise InfrastructureError(
            f"{slot.cell.id}: a trial failed for a reason that says nothing about the cell: {record.message}\n"
            "  What was measured so far is kept: the same command goes on from there."
        )

    def _attempt(self, bench: Bench, state: CellState, slot: Slot, last: bool) -> TrialRecord:
        """One try at a trial. On a GPU that is always throttled the ``last`` one counts: its figures say so."""
        assert isinstance(state.environment, Environment)
        total = self.design.trials if slot.side is Side.THREADS else self.design.controls
        limits = self.matrix.limits
        silences = [r.longest_silence for r in state.records if r.side is Side.SERIAL and r.outcome in _ENDED]
        confirmed = state.hung
        silence = silence_limit(limits.silence, limits.first_silence, silences, tripled=confirmed)
        self.reporter.trial_started(slot.cell, slot.side, slot.index + 1, total)
        record = run_trial(bench, slot, state.environment, silence, counts_hang=confirmed, counts_slowed=last)
        state.samples.append(StoredTrial(record, slot.index, bench.run_id))
        note = f"not counted: {record.message}" if record.outcome is Outcome.INFRA else ""
        if record.hang_kind and record.outcome is Outcome.INFRA:
            state.hung = True
            note = "hung; tried again with three times the limit"
        self.reporter.trial_ended(slot.cell, record, note)
        return record

    def _warm_up(self, bench: Bench, state: CellState) -> TrialRecord | None:
        """Prepare the cell's compile cache when it wants one; None when there is nothing to do.

        One that failed is not tried again: what breaks it breaks the controls too.
        """
        assert isinstance(state.environment, Environment)
        failed = any(r.side is Side.WARMUP and r.outcome not in (Outcome.CLEAN, Outcome.INFRA) for r in state.records)
        if failed or not needs_warm_up(bench, state.cell, state.environment):
            return None
        self.reporter.trial_started(state.cell, Side.WARMUP, 1, 1)
        record = warm_up(bench, state.cell, state.environment)
        state.samples.append(StoredTrial(record, 0, bench.run_id))
        self.reporter.trial_ended(state.cell, record, "not counted: it fills the compile cache")
        return record

    def _verdict(self, state: CellState) -> Verdict:
        if isinstance(state.lock, Unavailable):
            return without_environment(state.lock)
        if isinstance(state.environment, Unavailable):
            return without_environment(state.environment)
        verdict = judge(state.samples, self.design, self._reference(state), self._warmed(state))
        if verdict.headline is Headline.BROKEN and not self.reproducer.protocol:
            # The usual cause with a command of the user's own, and nothing in its trials can tell.
            verdict = replace(verdict, marks=(*verdict.marks, CONTROLS))
        return verdict

    def _reference(self, state: CellState) -> Sequence[StoredTrial] | None:
        """The reference cell's trials that ran interleaved with this cell's: same run and same block."""
        cell = self.matrix.reference_of(state.cell)
        if cell is None or cell == state.cell:
            return None
        places = {(sample.run_id, sample.block) for sample in state.samples}
        reference = next(other for other in self.states if other.cell == cell)
        return [sample for sample in reference.samples if (sample.run_id, sample.block) in places]

    def _warmed(self, state: CellState) -> Sequence[StoredTrial] | None:
        """The trials of the same cell with a prepared compile cache, where the matrix has that too."""
        cell = state.cell
        condition = Condition.of({**cell.condition.as_dict(), "cache": "warm"})
        twin = replace(cell, condition=condition)
        return next((other.samples for other in self.states if other.cell.key == twin.key != cell.key), None)

    def results(self) -> tuple[Result, ...]:
        """What is known of every cell now, in the order of the matrix."""
        return tuple(
            Result(
                state.cell,
                self._verdict(state),
                state.lock if isinstance(state.lock, Lock) else None,
                tuple(state.samples),
            )
            for state in self.states
        )


_ENDED = (Outcome.CLEAN, Outcome.FAILED, Outcome.WRONG, Outcome.OOM)


def _done(samples: Sequence[StoredTrial]) -> Mapping[Side, int]:
    """Counted trials of each side: the index of the next one."""
    return Counter(
        sample.record.side
        for sample in samples
        if sample.record.side in COUNTED and sample.record.outcome is not Outcome.INFRA
    )
