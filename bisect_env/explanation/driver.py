"""Witnessed trials of a cell: environment, then trials until enough went wrong, each stored as it ends; then controls.

Witnessed trials are no part of what a cell's verdict counts. The controls (serial, and with threads but no witness) are
trials like those of a matrix, which counts them. The next call uses those that are stored, and runs what is missing.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count, islice

from bisect_env import __version__
from bisect_env.engine import disk, prepare
from bisect_env.engine.attempt import Attempt
from bisect_env.engine.executor import Slots
from bisect_env.engine.plan import Slot, silence_limit
from bisect_env.engine.progress import Reporter
from bisect_env.engine.recall import HOST
from bisect_env.engine.settings import Settings
from bisect_env.engine.state import CellState
from bisect_env.engine.sweeping import sweep
from bisect_env.engine.trialing import PREPARED, Bench
from bisect_env.engine.turn import turn
from bisect_env.environments.records import Environment, Lock, Unavailable
from bisect_env.environments.uv import Uv
from bisect_env.errors import BadInput
from bisect_env.explanation.explain import explain_by, went_wrong
from bisect_env.explanation.planned import Planned, Series, expected, needed
from bisect_env.explanation.records import Explanation
from bisect_env.explanation.series import Task, alone, run
from bisect_env.matrix.cells import Cell, EnvironmentRequest, Matrix
from bisect_env.store.database import Store
from bisect_env.store.trials import StoredTrial
from bisect_env.trials import machine
from bisect_env.trials.records import Outcome, Reproducer, Side, TrialRecord
from bisect_env.verdicts.samples import counts

RUNS = "explain"
"""Name of its runs in the store."""
FAILURES, MOST = 3, 12
"""Without a number of trials: until so many went wrong, at most so many."""
CONTROLS = 3
"""Of each kind. Fewer are not told from chance even where all fail with threads and none without (3 and 3: 1 in 20)."""
PLAIN = (Side.SERIAL, Side.THREADS)
"""Controls, in the order in which they run."""


@dataclass(frozen=True)
class Asked:
    """What is to be explained, and by how many trials."""

    matrix: Matrix
    """That the cell is in: its limits, its reproducer."""
    cell: Cell
    trials: int | None = None
    """None: until ``FAILURES`` went wrong, at most ``MOST``."""
    again: bool = False
    """Leave stored witnessed trials out."""
    controls: int = CONTROLS
    """Serial trials, and trials with threads and no witness, that are to be stored; 0: whatever there is."""


class Witnessing:
    """One call's part of an explanation.

    Args:
        asked: what is asked.
        reproducer: ready to run; it has to be one that Python runs in the trial's process.
        settings, store, uv, reporter: where and how.
        stop: ends it within a second when set.
    """

    def __init__(
        self,
        asked: Asked,
        reproducer: Reproducer,
        settings: Settings,
        store: Store,
        uv: Uv,
        reporter: Reporter,
        stop: threading.Event,
    ) -> None:
        self._asked, self._reproducer, self._settings, self._store = asked, reproducer, settings, store
        self._uv, self._reporter, self._stop = uv, reporter, stop
        self._matrix = replace(asked.matrix, at_once=1)
        self._locks: dict[str, Lock | Unavailable] = {}
        self._records: list[TrialRecord] = []
        self._taken: dict[Side, set[int]] = {}
        """By kind of control the blocks that have a trial which counts."""

    def run(self, argv: Sequence[str] = ()) -> None:
        """Do what is missing; what came of it, also when it was ended early, is in :meth:`explanation`.

        Raises:
            BadInput: the cell has no environment here, or its trials cannot run here.
            InfrastructureError: the machine, an index or the disk failed; what was measured is kept.
            KeyboardInterrupt: it was stopped; likewise.
        """
        store, cell = self._store, self._asked.cell
        sweep(store)
        self._resolve()
        self._load()
        if self._records:
            stored = "1 witnessed trial is" if len(self._records) == 1 else f"{len(self._records)} witnessed trials are"
            self._reporter.note(f"{stored} stored and used again (--again: anew)")
        if self._enough() and not self._missing() and not self._settings.executor.unfinished(self._settings):
            return
        about = f"an explanation of {cell.id}"
        settings = self._settings
        with turn(settings.root, about, self._stop, self._reporter.note):
            if settings.executor.take_in(settings, store, self._reporter.note, self._stop):
                self._load()
            environment, filler = self._build()
            versions = {"bisect-env": __version__, "python": sys.version.split()[0], HOST: settings.executor.host}
            run_id = store.start_run(RUNS, self._matrix.path, argv, self._settings.seed, versions)
            try:
                self._measure(run_id, environment, filler)
            except BaseException as error:
                store.end_run(run_id, "interrupted" if isinstance(error, KeyboardInterrupt) else "failed")
                raise
            store.end_run(run_id, "completed")

    def plan(self) -> Planned:
        """What :meth:`run` would do now. Cells are resolved for that, and nothing is built, run or removed.

        Raises:
            BadInput: the cell has no environment here.
            InfrastructureError: an index or the disk failed.
        """
        self._resolve()
        self._load()
        settings, done, missing = self._settings, len(self._records), [side for side, _ in self._missing()]
        least = max(0, self._still_needed())
        most = self._most() - done if least else 0
        locks = {self._lock(cell).address: (cell, self._lock(cell)) for cell in self._cells()}
        found = {address: settings.executor.find(lock, settings) for address, (_, lock) in locks.items()}
        runs = bool(least or missing)
        to_build = [lock for address, (_, lock) in locks.items() if runs and found[address] is None]
        controls = {side: Series(len(self._taken[side]), *[missing.count(side)] * 2) for side in PLAIN}
        series = {Side.WITNESS: Series(done, least, most), **controls}
        records = [sample.record for sample in self._stored()]
        times = {side: [record.seconds for record in records if record.side is side] for side in series}
        return Planned(
            self._asked.cell.id,
            tuple(needed(cell.id, lock, found[lock.address]) for cell, lock in locks.values() if runs),
            disk.download_bytes(to_build),
            disk.needed_bytes(to_build),
            machine.free_bytes(settings.root),
            runs and self._to_fill(list(found.values())),
            series[Side.WITNESS],
            series[Side.SERIAL],
            series[Side.THREADS],
            FAILURES if self._asked.trials is None else None,
            expected({side: each.most for side, each in series.items()}, times),
            settings.executor.unfinished(settings),
        )

    def _load(self) -> None:
        stored = self._stored()
        if not self._asked.again:
            self._records = [sample.record for sample in stored if sample.record.side is Side.WITNESS]
        for side in PLAIN:
            self._taken[side] = {s.block for s in stored if s.record.side is side and counts(s.record)}

    def explanation(self) -> Explanation:
        """What is known now."""
        records = [sample.record for sample in self._stored()]
        return explain_by(self._asked.cell.id, self._address or "", self._records, records)

    # The environment

    @property
    def _address(self) -> str | None:
        lock = self._locks.get(self._asked.cell.request.key)
        return lock.address if isinstance(lock, Lock) else None

    def _cells(self) -> tuple[Cell, ...]:
        """The cell, and the one whose environment fills its stale compile cache."""
        cell = self._asked.cell
        source = self._matrix.stale_source_of(cell) if cell.condition.cache == "stale" else None
        return (cell,) if source is None else (cell, source)

    def _resolve(self) -> None:
        settings = self._settings
        self._locks = prepare.resolve(
            self._cells(), self._store, self._uv, self._reporter, self._stop, settings.fresh, settings.bundle
        )
        self._store.put_cells([self._asked.cell], self._matrix.name)
        for cell in self._cells():
            self._refuse(cell, self._locks[cell.request.key])

    def _lock(self, cell: Cell) -> Lock:
        lock = self._locks[cell.request.key]
        assert isinstance(lock, Lock), "what does not resolve was refused"
        return lock

    def _build(self) -> tuple[Environment, Environment]:
        """The cell's environment, and the one that fills its compile cache."""
        wanted: dict[str, tuple[Lock, EnvironmentRequest, str]] = {}
        for cell in self._cells():
            lock = self._lock(cell)
            wanted.setdefault(lock.address, (lock, cell.request, cell.id))
        settings = self._settings
        built = settings.executor.build(
            wanted, settings, self._store, self._uv, self._reporter, self._stop, self._matrix.limits
        )
        found = []
        for cell in self._cells():
            environment = built[self._lock(cell).address]
            self._refuse(cell, environment)
            assert isinstance(environment, Environment), "what cannot be built was refused"
            found.append(environment)
        return found[0], found[-1]

    def _refuse(self, cell: Cell, found: Lock | Environment | Unavailable) -> None:
        if isinstance(found, Unavailable):
            wanted = "a cell that has an environment; `bisect-env matrix` says what is the matter with this one"
            raise BadInput("CELL", "", f"{cell.id} has no environment here: {found.reason}: {found.message}", wanted)

    # Its trials

    def _stored(self) -> list[StoredTrial]:
        """All of its trials that say something, of every kind."""
        if self._address is None:
            return []
        cell, settings = self._asked.cell, self._settings
        # As a run of the matrix would take them: on one GPU model and driver.
        state = CellState(cell)
        here = settings.executor.available(cell, settings.gpus).hardware
        state.take(self._store.trials(cell.key, self._address, self._reproducer.content_hash), here)
        return [sample for sample in state.samples if sample.record.outcome is not Outcome.INFRA]

    def _enough(self) -> bool:
        return self._still_needed() <= 0

    def _still_needed(self) -> int:
        """Trials that are needed whatever comes of them: at least so many go wrong before there are enough."""
        done, wanted = len(self._records), self._asked.trials
        if wanted is not None:
            return wanted - done
        return min(MOST - done, FAILURES - sum(map(went_wrong, self._records)))

    def _most(self) -> int:
        """Witnessed trials, with those that are stored."""
        return MOST if self._asked.trials is None else self._asked.trials

    def _bench(self, run_id: str) -> Bench:
        addresses = {cell.request.key: self._lock(cell).address for cell in self._cells()}
        return Bench(
            self._matrix, self._settings, self._store, run_id, self._reproducer, self._stop, self._reporter.note,
            addresses,
        )  # fmt: skip

    def _to_fill(self, found: Sequence[Environment | None]) -> bool:
        """Whether the compile cache that the trials start from is still to be filled, where there is such a one."""
        cell, environment = self._asked.cell, found[0]
        if environment is None or found[-1] is None:
            return cell.condition.cache in PREPARED
        prepared = self._settings.executor.prepared(self._bench(""), cell, environment)
        return prepared is not None and not prepared.folder.is_dir()

    def _measure(self, run_id: str, environment: Environment, filler: Environment) -> None:
        cell, bench = self._asked.cell, self._bench(run_id)
        most, controls = self._most(), self._missing()
        self._reporter.phase("trials", max(0, most - len(self._records)))
        prepared = self._settings.executor.prepared(bench, cell, environment)
        slots: Slots[Task] = self._settings.executor.slots(bench, [cell])
        with slots:
            if prepared is not None and not prepared.folder.is_dir():
                self._reporter.trial_started(cell, Side.WARMUP, 1, 1)
                warm_up = Slot(cell, Side.WARMUP, 0)
                record = alone(slots, Attempt(warm_up, filler, self._matrix.limits.first_silence, prepared=prepared))
                self._reporter.trial_ended(cell, record, "not counted: it fills the compile cache")
            silences = [s.record.longest_silence for s in self._stored() if s.record.side is Side.SERIAL]
            limits = self._matrix.limits
            # Three times the limit from the first one on: it need not be confirmed that the cell hangs, and the
            # witness makes it slower.
            silence = silence_limit(limits.silence, limits.first_silence, silences, tripled=True)
            attempt = Attempt(Slot(cell, Side.WITNESS, 0), environment, silence, prepared=prepared)
            self._witness(slots, attempt, most)
            self._control(slots, attempt, controls)

    def _missing(self) -> list[tuple[Side, int]]:
        """The controls that are not stored: kind and block, the first free ones, as a run of the matrix would."""
        return [
            (side, block)
            for side in PLAIN
            for block in islice(
                (block for block in count() if block not in self._taken[side]),
                max(0, self._asked.controls - len(self._taken[side])),
            )
        ]

    def _witness(self, slots: Slots[Task], first: Attempt, most: int) -> None:
        """Trials like ``first`` until there are enough."""
        tasks = ((Side.WITNESS, number) for number in count(len(self._records)))
        run(slots, first, tasks, most, self._still_needed, self._records.append, self._reporter)

    def _control(self, slots: Slots[Task], first: Attempt, missing: Sequence[tuple[Side, int]]) -> None:
        """What the witnessed trials are held against."""
        if not missing:
            return
        kinds = [side for side, _ in missing]
        told = {Side.SERIAL: "in one thread", Side.THREADS: "with threads and no witness"}
        words = " and ".join(f"{kinds.count(side)} {told[side]}" for side in PLAIN if side in kinds)
        self._reporter.note(f"trials to compare with, stored for the matrix too: {words} (--controls 0: none)")
        self._reporter.phase("trials", len(missing))
        done: list[TrialRecord] = []
        of = self._asked.controls
        run(slots, first, iter(missing), of, lambda: len(missing) - len(done), done.append, self._reporter)
