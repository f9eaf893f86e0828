"""The engine: a matrix in, one result a cell out. Resumes by itself, since it counts what the store holds."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from bisect_env.engine import judging, prepare
from bisect_env.engine.grouping import Entrant, baseline_of, needs_rounds
from bisect_env.engine.measuring import Measuring
from bisect_env.engine.plan import COUNTED
from bisect_env.engine.progress import Reporter
from bisect_env.engine.results import Result
from bisect_env.engine.settings import Settings
from bisect_env.engine.state import CellState
from bisect_env.engine.sweeping import sweep
from bisect_env.engine.trialing import Bench
from bisect_env.engine.turn import turn
from bisect_env.environments.records import Environment, Lock, Reason, Unavailable
from bisect_env.environments.uv import Uv
from bisect_env.matrix.cells import Cell, EnvironmentRequest, Matrix
from bisect_env.store.database import Store
from bisect_env.store.trials import StoredTrial
from bisect_env.trials.records import Outcome, Reproducer, Side
from bisect_env.verdicts.hardware import why_not
from bisect_env.verdicts.looks import finished
from bisect_env.verdicts.records import Headline, Verdict
from bisect_env.verdicts.samples import counts

PROFILED = (Headline.DENSE, Headline.SLOW, Headline.UNSURE, Headline.FULL)


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
        self.design = judging.design_of(matrix, settings.max_race_rate)
        self.states = [CellState(cell) for cell in matrix.cells]

    def sweep(self) -> None:
        """Remove what killed runs left behind: their trials' folders."""
        sweep(self.store)

    def run(self, run_id: str) -> None:
        """Resolve, build, and run trials until every cell is finished; what the store holds is not done again.

        What came of it, also of a run that was ended early, is in :meth:`results`.

        Raises:
            InfrastructureError: the disk is too small, the machine failed several times in a row, or trials of some
                cells were given up while the others were measured.
            KeyboardInterrupt: after every child has been ended; what was measured is in the store.
        """
        self.sweep()
        if not self.settings.fresh:
            self.prepare()
            if not self._unfinished() and not self.settings.executor.unfinished(self.settings):
                return
        about = f"run {run_id} of {self.matrix.name}"
        with turn(self.settings.root, about, self.stop, self.reporter.note) as waited:
            settings = self.settings
            taken_in = settings.executor.take_in(settings, self.store, self.reporter.note, self.stop)
            if settings.fresh:
                self.store.retire([cell.key for cell in self.matrix.cells])
            if settings.fresh or waited or taken_in:
                self.prepare()
            self._build()
            self._measure(run_id)

    def prepare(self) -> None:
        """Resolve every cell and load what the store holds of it."""
        cells = self.matrix.cells
        sources = {cell.key: self.matrix.stale_source_of(cell) for cell in cells if cell.condition.cache == "stale"}
        every = (*cells, *(source for source in sources.values() if source is not None))
        settings = self.settings
        locks = prepare.resolve(
            every, self.store, self.uv, self.reporter, self.stop, settings.fresh, bundle=settings.bundle
        )
        self.store.put_cells(cells, self.matrix.name)
        states = []
        for cell in cells:
            state, source = self._loaded(cell, locks[cell.request.key]), sources.get(cell.key)
            if source is not None:
                state.source = self._loaded(source, locks[source.request.key])
            if state.address is not None:
                here = settings.executor.available(cell, settings.gpus).hardware
                state.take(self.store.trials(cell.key, state.address, self.reproducer.content_hash), here)
                state.hung = any(
                    r.hang_kind and r.outcome is not Outcome.FAILED and r.side is not Side.WITNESS
                    for r in state.records
                )
            states.append(state)
        self.states = states

    def _loaded(self, cell: Cell, lock: Lock | Unavailable) -> CellState:
        state = CellState(cell, lock)
        if state.address is not None:
            state.environment = self.store.unavailable(cell.key, state.address, retry_transient=True)
        return state

    def _unfinished(self) -> list[CellState]:
        """Cells of which something is still to be measured."""
        return [
            state
            for state in self.states
            if state.lock is not None
            and state.unavailable is None
            and (not self._finished(state) or self._wants_profile(state) or needs_rounds(state.cell, state.samples))
        ]

    def _finished(self, state: CellState) -> bool:
        return finished(state.decisive, self.design)

    def _to_build(self) -> list[CellState]:
        """Cells whose environment is needed: the unfinished ones, what they are compared with, and what fills their
        stale caches.
        """
        unfinished = self._unfinished()
        baselines = {cell.key for state in unfinished if (cell := baseline_of(self.matrix, state.cell)) is not None}
        wanted = [
            state
            for state in self.states
            if state in unfinished or (state.cell.key in baselines and state.unavailable is None)
        ]
        return wanted + [state.source for state in wanted if state.source is not None]

    def _build(self) -> None:
        wanted: dict[str, tuple[Lock, EnvironmentRequest, str]] = {}
        states = self._to_build()
        cells = [state.cell for state in states]
        for state in states:
            assert isinstance(state.lock, Lock)
            label = prepare.label_of(cells, state.cell.request)
            wanted.setdefault(state.lock.address, (state.lock, state.cell.request, label))
        if not wanted:
            return
        settings = self.settings
        built = settings.executor.build(
            wanted, settings, self.store, self.uv, self.reporter, self.stop, self.matrix.limits
        )
        for state in states:
            assert isinstance(state.lock, Lock)
            state.environment = built[state.lock.address]
            # What is still to be delivered is looked at again the next time.
            if isinstance(state.environment, Unavailable) and state.environment.reason is not Reason.UNDELIVERED:
                self.store.put_unavailable(state.cell.key, state.lock.address, state.environment)

    def _measure(self, run_id: str) -> None:
        addresses = {
            state.cell.request.key: state.address
            for cell in self.states
            for state in (cell, cell.source)
            if state is not None and state.address is not None
        }
        bench = Bench(
            self.matrix,
            self.settings,
            self.store,
            run_id,
            self.reproducer,
            self.stop,
            self.reporter.note,
            addresses,
        )
        planned = sum(self.trials_left(state) for state in self.states)
        earlier = sum(counts(record) for state in self.states for record in state.records)
        if earlier:
            self.reporter.note(f"{earlier} trials of earlier runs count; {planned} more at most")
        if planned:
            self.reporter.phase("trials", planned)
        able = [state for state in self.states if state.unavailable is None and state.environment is not None]
        measuring = Measuring(bench, self.design, able, self.reporter, self._verdict, self._wants_profile)
        measuring.run()
        self._time_rounds(bench, [state for state in able if state.cell.key not in measuring.set_aside])
        measuring.set_aside.told()

    def _time_rounds(self, bench: Bench, able: Sequence[CellState]) -> None:
        """Throughput, in rounds that have the machine to themselves."""
        by_key = {state.cell.key: state for state in able}
        executor = self.settings.executor
        entrants = [
            Entrant(
                state.cell,
                state.environment,
                tuple(state.samples),
                executor.prepared(bench, state.cell, state.environment),
            )
            for state in able
            if isinstance(state.environment, Environment)
        ]

        def keep(cell: Cell, sample: StoredTrial) -> None:
            state = by_key[cell.key]
            if not state.keep(sample) and state.hardware is not None:
                self.reporter.note(f"{cell.id}: rounds beside its own: {why_not(sample.record, state.hardware)}")

        executor.rounds(bench, entrants, self.reporter, keep)

    def trials_left(self, state: CellState) -> int:
        """Most trials that the cell can still take; a racing one may stop earlier."""
        if state.unavailable is not None or self._finished(state):
            return 0
        done = [record.side for record in state.records if counts(record)]
        return sum(max(0, self.design.planned(side) - done.count(side)) for side in COUNTED)

    def _wants_profile(self, state: CellState) -> bool:
        """Whether a trial under the profiler is due: on a GPU, once, and where the path can decide the verdict."""
        on_gpu = any(sample.record.devices for sample in state.samples)
        profiled = any(sample.record.side is Side.PROFILE for sample in state.samples)
        return on_gpu and not profiled and self.reproducer.protocol and self._verdict(state).headline in PROFILED

    def _verdict(self, state: CellState) -> Verdict:
        return judging.verdict(state, self.states, self.matrix, self.design, self.reproducer.protocol)

    def results(self) -> tuple[Result, ...]:
        """What is known of every cell now, in the order of the matrix."""
        return tuple(judging.result(state, self._verdict(state)) for state in self.states)
