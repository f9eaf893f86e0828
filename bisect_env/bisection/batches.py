"""Batches of trials through the engine: mixes resolved, built and proved, then run in turn and stored as for a matrix.

The trials of one bisection are those of its run in the store, and each batch has blocks of its own there. So a batch
that was cut short, even by kill -9, finds what had ended, and a confirming trial is never one that a search has seen.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import inf
from pathlib import Path

from bisect_env.bisection import counting
from bisect_env.bisection.mixes import Mixes, taken_apart
from bisect_env.bisection.progress import Forward, Reporter
from bisect_env.bisection.records import Levels, Observation, Stage, Unresolvable
from bisect_env.engine import judging, prepare
from bisect_env.engine.measuring import Measuring
from bisect_env.engine.settings import Settings
from bisect_env.engine.state import CellState
from bisect_env.engine.trialing import Bench
from bisect_env.environments.records import Environment, Lock, Reason, Unavailable
from bisect_env.environments.uv import Uv
from bisect_env.errors import InfrastructureError
from bisect_env.matrix.cells import Cell, EnvironmentRequest, Matrix
from bisect_env.store.database import Store
from bisect_env.store.environments import TRANSIENT
from bisect_env.store.trials import StoredTrial
from bisect_env.trials.records import Outcome, Reproducer, Side, TrialRecord
from bisect_env.verdicts import hardware
from bisect_env.verdicts.hardware import Hardware
from bisect_env.verdicts.looks import Design
from bisect_env.verdicts.records import Verdict
from bisect_env.verdicts.samples import counts

Resolved = tuple[Cell, Lock | Unavailable]

AT_A_TIME = 2 * prepare.RESOLVERS
"""Mixes that are resolved between two looks at the clock."""


class OutOfTime(Exception):
    """The time is over before a trial of the batch was begun. What was resolved and built by then is kept."""


@dataclass(frozen=True)
class Place:
    """Where a bisection works: what stays the same for all of its batches."""

    settings: Settings
    store: Store
    uv: Uv
    reporter: Reporter
    stop: threading.Event


class Batches:
    """Resolves, builds and measures the mixes of one bisection.

    Args:
        run_id: of the run in the store that the bisection is.
        mixes: its cells.
        reproducer: ready to run.
        place: where.
        deadline: on the clock of ``time.monotonic``: after it nothing is begun, and what is under way comes to its end.
    """

    def __init__(self, run_id: str, mixes: Mixes, reproducer: Reproducer, place: Place, deadline: float = inf) -> None:
        self._run_id, self._mixes, self._reproducer, self._place = run_id, mixes, reproducer, place
        self._deadline = deadline
        self._hung: set[str] = set()
        self._hardware: Hardware | None = None
        """What all mixes are measured on: they are compared with each other."""
        self.loose = False
        """Whether an end resolves only with its pins as overrides; other mixes may then do so too."""

    def resolve(
        self, points: Sequence[Levels], either_way: bool = False
    ) -> dict[Levels, tuple[Cell, Lock | Unavailable]]:
        """The cell and the lock of each mix, or why there is none; several at once, and from the store where known.

        Args:
            points: the mixes.
            either_way: whether what does not resolve is tried with its pins as overrides: an end is what it is.

        Raises:
            InfrastructureError: an index does not answer, so that nothing can be said of a mix; the disk is full.
        """
        cells = {point: self._mixes.cell(point) for point in points}
        locks = self._locks(list(cells.values()))
        found = {point: (cell, locks[cell.request.key]) for point, cell in cells.items()}
        conflicts = [point for point, (_, lock) in found.items() if _conflict(lock)]
        if conflicts and (either_way or self.loose):
            again = {point: self._mixes.cell(point, as_installed=True) for point in conflicts}
            locks = self._locks(list(again.values()))
            found |= {point: (cell, locks[cell.request.key]) for point, cell in again.items()}
            self.loose = True
        for _, lock in found.values():
            if isinstance(lock, Unavailable) and lock.reason in TRANSIENT - {Reason.INTERPRETER}:
                raise InfrastructureError(f"a mixed environment could not be resolved: {lock.message}")
        return found

    def check(self, points: Sequence[Levels]) -> tuple[Unresolvable, ...]:
        """The mixes that do not resolve.

        Raises:
            OutOfTime: before all were resolved.
            As :meth:`resolve`.
        """
        found: dict[Levels, Resolved] = {}
        for start in range(0, len(points), AT_A_TIME):
            self._in_time()
            found |= self.resolve(points[start : start + AT_A_TIME])
        return tuple(
            Unresolvable(point, _first_line(lock.message))
            for point, (_, lock) in found.items()
            if isinstance(lock, Unavailable)
        )

    def run(
        self,
        stage: Stage,
        points: Sequence[Levels],
        sizes: Sequence[int],
        start: int,
        number: int,
        signature: str | None,
    ) -> tuple[Observation, ...]:
        """So many trials of each mix, interleaved, in the blocks from ``start`` on; those that are stored count.

        At the deadline it ends with the trials that were begun by then.

        Args:
            stage: for the observations.
            points: the mixes.
            sizes: trials of each.
            start: first block.
            number: of the batch of the first mix.
            signature: what the question's failures show, as far as it is known.

        Raises:
            OutOfTime: no trial was begun before the deadline.
            InfrastructureError: a mix cannot be told from trouble of the machine, an index or the disk.
            KeyboardInterrupt: it was stopped; the trials that had ended are in the store.
        """
        place = self._place
        resolved = self.resolve(points, either_way=stage is Stage.ENDS)
        of = dict(zip(points, sizes, strict=True))
        for point, size in of.items():
            place.reporter.batch_started(stage, point, size)
        states = {point: CellState(cell, lock) for point, (cell, lock) in resolved.items()}
        built = self._build([state for state in states.values() if isinstance(state.lock, Lock)])
        for point, state in states.items():
            if isinstance(state.lock, Lock):
                found = built[state.lock.address]
                skip = self._imports_say_nothing(point)
                state.environment = found if skip else self._even_if_broken(state.lock, found)
        able = {point: state for point, state in states.items() if isinstance(state.environment, Environment)}
        place.store.put_cells([state.cell for state in states.values()], self._matrix_name)
        if able:
            self._measure([(state, of[point]) for point, state in able.items()], start)
            if not any(_counts_in(each, start, of[point]) for point, state in able.items() for each in state.samples):
                self._in_time()
        seen = []
        for offset, point in enumerate(points):
            state = states[point]
            records = [sample.record for sample in state.samples if _counts_in(sample, start, of[point])]
            seen.append(self._observed(stage, number + offset, point, state, records, signature))
            place.reporter.batch_ended(seen[-1])
        return tuple(seen)

    @property
    def _matrix_name(self) -> str:
        return f"bisection {self._run_id}"

    def _locks(self, cells: Sequence[Cell]) -> Mapping[str, Lock | Unavailable]:
        place = self._place
        forward = Forward(place.reporter, 0, {})
        return prepare.resolve(cells, place.store, place.uv, forward, place.stop, fresh=False)

    def _build(self, states: Sequence[CellState]) -> Mapping[str, Environment | Unavailable]:
        place = self._place
        wanted: dict[str, tuple[Lock, EnvironmentRequest, str]] = {}
        for state in states:
            assert isinstance(state.lock, Lock)
            label = state.cell.id
            wanted.setdefault(state.lock.address, (state.lock, state.cell.request, label))
        if not wanted:
            return {}
        limits, executor = self._mixes.specification.limits, place.settings.executor
        forward = Forward(place.reporter, 0, {})
        built: dict[str, Environment | Unavailable] = {}
        left = iter(wanted.items())
        while some := dict(islice(left, executor.builders)):
            self._in_time()
            built |= executor.build(some, place.settings, place.store, place.uv, forward, place.stop, limits)
        return built

    def _late(self) -> bool:
        return time.monotonic() >= self._deadline

    def _in_time(self) -> None:
        if self._late():
            raise OutOfTime

    def _imports_say_nothing(self, point: Levels) -> bool:
        """Pins that were overridden explain an import that fails: it is a failure, and none of the question's."""
        return taken_apart(point) and self._mixes.specification.question.any_failure

    def _even_if_broken(self, lock: Lock, built: Environment | Unavailable) -> Environment | Unavailable:
        """What stands and cannot be imported is tried all the same: that may be the very question."""
        if isinstance(built, Unavailable) and built.reason is Reason.IMPORT:
            return self._place.settings.executor.find(lock, self._place.settings) or built
        return built

    def _measure(self, wanted: Sequence[tuple[CellState, int]], start: int) -> None:
        """So many trials of each of these."""
        place, specification = self._place, self._mixes.specification
        states, most = [state for state, _ in wanted], max(size for _, size in wanted)
        design = Design(trials=start + most, controls=0, solo=0, stop_early=False)
        matrix = Matrix(
            name=self._matrix_name,
            path=Path(self._run_id),
            cells=tuple(state.cell for state in states),
            axes=(),
            reproducer=specification.reproducer,
            trials=most,
            controls=0,
            solo=0,
            limits=specification.limits,
            pass_env=specification.pass_env,
            at_once=specification.at_once,
            stop_early=False,
        )
        addresses = {state.cell.request.key: state.address for state in states if state.address is not None}
        tell, run_id = place.reporter.note, self._run_id
        bench = Bench(matrix, place.settings, place.store, run_id, self._reproducer, place.stop, tell, addresses)
        self._hardware = self._hardware or hardware.most(place.store.trials_of_run(self._run_id))
        for state, size in wanted:
            assert state.address is not None
            stored = place.store.trials(state.cell.key, state.address, self._reproducer.content_hash)
            mine = range(start, start + size)
            own = [sample for sample in stored if sample.run_id == self._run_id and sample.block in mine]
            # Blocks of earlier batches are taken, whatever became of them: this batch begins behind them. So are those
            # that only larger batches beside it have.
            taken = (block for block in range(start + most) if block not in mine)
            here, state.elsewhere = map(list, hardware.apart(own, self._hardware))
            state.samples = [*(_taken(state.cell, block) for block in taken), *here]
            state.hardware = self._hardware
            state.hung = state.cell.key in self._hung

        def verdict(state: CellState) -> Verdict:
            return judging.verdict(state, states, matrix, design, self._reproducer.protocol)

        forward = Forward(place.reporter, start, {state.cell.key: size for state, size in wanted})
        Measuring(bench, design, states, forward, verdict, lambda state: False, self._late, alike=True).run()
        self._hardware = next((state.hardware for state in states if state.hardware is not None), None)
        self._hung |= {state.cell.key for state in states if state.hung}

    def _observed(
        self,
        stage: Stage,
        number: int,
        point: Levels,
        state: CellState,
        records: Sequence[TrialRecord],
        signature: str | None,
    ) -> Observation:
        question = self._mixes.specification.question
        skip = self._imports_say_nothing(point)
        told = Counter(
            "other" if skip and counting.cannot_import(record) else counting.verdict(record, question, signature)
            for record in records
        )
        shown = Counter(text for record in records for text in counting.signatures(record))
        skipped = _why_not(state) or counting.untestable(records, question, told["failure"] + told["pass"])
        environment = state.environment
        fresh = isinstance(environment, Environment) and environment.build_seconds > 0
        return Observation(
            stage=stage,
            batch=number,
            point=point,
            cell_key=state.cell.key,
            environment=state.address or "",
            failures=told["failure"],
            passes=told["pass"],
            other=told["other"],
            skipped=skipped,
            signatures=tuple(shown.most_common()),
            build_seconds=environment.build_seconds if fresh and isinstance(environment, Environment) else None,
            trial_seconds=sum(record.seconds for record in records) / len(records) if records else None,
            trials=tuple(record.id for record in records),
            off_pin=bool(state.cell.request.overrides),
            built_in=environment.took or None if isinstance(environment, Environment) else None,
        )


def _taken(cell: Cell, block: int) -> StoredTrial:
    record = TrialRecord("", "", "", cell.condition, Side.THREADS, 0, Outcome.CLEAN)
    return StoredTrial(record, block, "")


def _counts_in(sample: StoredTrial, start: int, size: int) -> bool:
    return counts(sample.record) and sample.record.side is Side.THREADS and start <= sample.block < start + size


def _conflict(lock: Lock | Unavailable) -> bool:
    return isinstance(lock, Unavailable) and lock.reason is Reason.CONFLICT


def _why_not(state: CellState) -> str:
    missing = state.unavailable
    return "" if missing is None else f"{missing.reason.value}: {_first_line(missing.message)}"


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "no reason was given")
