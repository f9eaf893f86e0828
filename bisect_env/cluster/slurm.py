"""The executor over Slurm: attempts, builds and rounds go to nodes as jobs, and their records come back into the store.

As :class:`bisect_env.engine.executor.Executor` and :class:`~bisect_env.engine.executor.Slots` say. Everything runs in
the caller's thread: between two looks it sleeps, and it ends its sleep when the bench's stop event is set.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from bisect_env.cluster import asking, pending, submitting
from bisect_env.cluster.flight import QUICK, SLOW, SLOWER, Finished, Flight
from bisect_env.cluster.job import Wanted as WantedOfJob
from bisect_env.cluster.settings import SlurmSettings
from bisect_env.cluster.slots import SlurmSlots
from bisect_env.cluster.submitting import Cluster
from bisect_env.cluster.taking_in import take_in
from bisect_env.engine import disk
from bisect_env.engine.attempt import Prepared
from bisect_env.engine.executor import Available, Keep, Wanted
from bisect_env.engine.grouping import Entrant, Session
from bisect_env.engine.progress import Reporter
from bisect_env.engine.trialing import Bench, prepared_cache
from bisect_env.environments import building, manifest
from bisect_env.environments.records import Environment, Lock, Unavailable
from bisect_env.environments.uv import Uv
from bisect_env.errors import InfrastructureError
from bisect_env.matrix.cells import Cell, EnvironmentRequest, Limits
from bisect_env.store.database import Store
from bisect_env.trials.records import Outcome, TrialRecord
from bisect_env.trials.runner import Stopped

if TYPE_CHECKING:  # As in the engine's own executor.
    from bisect_env.engine.settings import Settings

Task = TypeVar("Task")
Leave = Callable[[str], bool]
"""Asked when a command is interrupted, with what is in flight in words: whether to leave that in Slurm's hands."""
SAY = "Slurm: "


def cancel_all(in_flight: str) -> bool:
    """Leaves nothing running."""
    return False


class Slurm:
    """A cluster under Slurm.

    Args:
        settings: what jobs ask for.
        leave: asked at an interruption; see :data:`Leave`.
        builds_in: partition of builds where the settings name none: that of some cell.
    """

    def __init__(self, settings: SlurmSettings, leave: Leave = cancel_all, builds_in: str | None = None) -> None:
        self.settings, self._leave, self._builds_in = settings, leave, builds_in
        self.known: dict[str, tuple[EnvironmentRequest, str]] = {}
        """Of environments that were asked for."""
        self._built: dict[str, Environment] = {}
        self._flight: Flight | None = None

    @property
    def host(self) -> str:
        """The cluster's part in which trials run."""
        parts = [self.settings.partition, self.settings.constraint]
        return " ".join(["slurm", *(part for part in parts if part)])

    def capacity(self, at_once: int) -> int:
        """Trials that the jobs in flight hold."""
        return self.settings.jobs * self.settings.batch

    def running(self, at_once: int) -> int:
        """One a job."""
        return self.settings.jobs

    @property
    def builders(self) -> int:
        """One job each."""
        return self.settings.jobs

    @property
    def batches(self) -> int:
        """As many as there are jobs: none of them is to be idle."""
        return self.settings.jobs

    @property
    def sets_aside(self) -> bool:
        """Always: each job has nodes of its own."""
        return True

    def available(self, cell: Cell, selection: str | None) -> Available:
        """As many as a job asks for; which they are is known by the first record."""
        gpus = asking.gpus_of(self.settings, cell)
        return Available(0) if gpus is None else Available(int(gpus.rpartition(":")[2]), None)

    def flight(self, root: Path, tell: Callable[[str], None]) -> Flight:
        """What this command has in flight; one for all that it does.

        Raises:
            BadInput: this host has no Slurm, or there is no submitit.
        """
        if self._flight is None:
            submitting.check()  # Before anything is written.
            found = pending.new(root)
            self._flight = Flight(self.settings, Cluster(self.settings, found.folder), found, tell)
        self._flight.tell = lambda text: tell(f"{SAY}{text}")
        return self._flight

    def ended(self, flight: Flight, error: BaseException | None) -> list[Finished]:
        """Whoever had work in flight is done with it, by an ``error`` or in peace: what had ended by then.

        An interruption asks whether to leave the jobs; anything else cancels what is left of them.
        """
        if error is None:
            return flight.settle()
        if not flight.watch.jobs:
            return flight.cancel()
        if isinstance(error, KeyboardInterrupt) and self._leave(flight.described()):
            found = flight.read()
            flight.tell(flight.left_running())
            self._flight = None
            return found
        flight.tell(f"cancelling {flight.described()}")
        return flight.cancel()

    # Environments

    def build(
        self,
        wanted: Wanted,
        settings: Settings,
        store: Store,
        uv: Uv,
        reporter: Reporter,
        stop: threading.Event,
        limits: Limits,
    ) -> dict[str, Environment | Unavailable]:
        """One job each, unless it stands where this process can see it."""
        self.known |= {address: (request, label) for address, (_, request, label) in wanted.items()}
        ready: dict[str, Environment | Unavailable] = {}
        bundle = settings.bundle
        for address, (lock, request, label) in wanted.items():
            standing = self.find(lock, settings)
            if standing is not None and not self.changes(standing):
                ready[address] = standing
            elif bundle is not None and (lacking := bundle.lacking(request)) is not None:
                ready[address] = lacking
                reporter.built(label, lacking, 0.0)
        missing = {address: each for address, each in wanted.items() if address not in ready}
        if not missing:
            return ready
        if self.settings.node_folder is None:
            disk.refuse_if_full(settings.root, [lock for lock, _, _ in missing.values()])
        flight = self.flight(settings.root, reporter.note)
        reporter.phase("build", len(missing))
        units: dict[str, str] = {}
        for address, (lock, request, label) in missing.items():
            reporter.building(label, lock)
            folder = None if bundle is None else bundle.folder
            each = WantedOfJob(lock, request, label)
            job = asking.build_work(self.settings, self._builds_in, settings.root, each, limits, folder)
            units[flight.add(job)] = address

        def came(finished: Finished) -> None:
            address = units[finished.unit]
            result, seconds = _built(finished)
            ready[address] = result
            if isinstance(result, Environment):
                self._built[address] = result
                store.put_environment(result, seconds)
            reporter.built(missing[address][2], result, seconds)

        self._wait_for(flight, units, stop, came)
        return ready

    def find(self, lock: Lock, settings: Settings) -> Environment | None:
        """In the project's folder, or as a node has told of it."""
        if self.settings.node_folder is None:
            return building.find(lock.address, lock, settings.root)
        return self._built.get(lock.address)

    def changes(self, environment: Environment) -> tuple[str, ...]:
        """By its manifest, where this process can see it; a node looks at its own before it is used."""
        return tuple(manifest.verify(environment)) if self.settings.node_folder is None else ()

    def prepared(self, bench: Bench, cell: Cell, environment: Environment) -> Prepared | None:
        """In the project's folder, for the nodes that jobs of the cell ask for."""
        settings = self.settings
        kind = (asking.partition_of(settings, cell), settings.constraint, asking.gpus_of(settings, cell))
        return prepared_cache(bench, cell, environment, [part for part in kind if part])

    # Trials

    def slots(self, bench: Bench, cells: Sequence[Cell]) -> SlurmSlots[Task]:
        """Room in jobs."""
        return SlurmSlots[Task](self, bench)

    def rounds(self, bench: Bench, entrants: Sequence[Entrant], reporter: Reporter, keep: Keep) -> None:
        """One job for those that are compared with each other."""
        groups = asking.comparable(bench.matrix, self.settings, entrants)
        if groups:
            self._rounds(bench, [(group, None) for group in groups], reporter, keep)

    def session(self, bench: Bench, session: Session, reporter: Reporter, keep: Keep) -> bool:
        """One job."""
        [finished] = self._rounds(bench, [(session.entrants, session)], reporter, keep)
        if finished.losses:
            raise InfrastructureError(f"the rounds in turn could not be timed: {asking.lost(finished.losses)}")
        return finished.ended is None or finished.ended.fits

    def _rounds(
        self,
        bench: Bench,
        wanted: Sequence[tuple[Sequence[Entrant], Session | None]],
        reporter: Reporter,
        keep: Keep,
    ) -> list[Finished]:
        flight = self.flight(bench.settings.root, bench.tell)
        units = {
            flight.add(asking.rounds_work(bench, self.settings, self.known, entrants, session)): entrants
            for entrants, session in wanted
        }
        found: list[Finished] = []

        def came(finished: Finished) -> None:
            found.append(finished)
            cells = {entrant.cell.key: entrant.cell for entrant in units[finished.unit]}
            for result in finished.results:
                sample, cell = result.sample, cells[result.cell_key]
                bench.store.put_trial(sample.record, cell.key, sample.run_id, sample.block, sample.record.reproducer)
                keep(cell, sample)
                reporter.trial_ended(cell, sample.record, _note(sample.record))
            if finished.losses:
                names = ", ".join(cell.id for cell in cells.values())
                reporter.note(f"{names}: no rounds in turn: {asking.lost(finished.losses)}")
            for note in finished.ended.notes if finished.ended else ():
                reporter.note(note)

        self._wait_for(flight, units, bench.stop, came)
        return found

    def _wait_for(
        self, flight: Flight, units: Collection[str], stop: threading.Event, came: Callable[[Finished], None]
    ) -> None:
        """Until all of these units, which are all that is in flight, have come or something ends the wait."""
        missing, pause = set(units), QUICK
        error: BaseException | None = None
        try:
            while missing:
                found = flight.step()
                for finished in found:
                    missing.discard(finished.unit)
                    came(finished)
                pause = QUICK if found else min(SLOW, pause * SLOWER)
                if missing and stop.wait(pause):
                    raise Stopped
        except BaseException as raised:
            error = raised
            stop.set()
            raise
        finally:
            for finished in self.ended(flight, error):
                came(finished)
            flight.clean()

    # An earlier command's jobs

    def unfinished(self, settings: Settings) -> bool:
        """Whether jobs are written down that nobody has taken in."""
        return bool(pending.left(settings.root))

    def take_in(self, settings: Settings, store: Store, tell: Callable[[str], None], stop: threading.Event) -> int:
        """Store what an earlier command's jobs come to, once they have all ended."""
        return take_in(self.settings, settings.root, store, lambda text: tell(f"{SAY}{text}"), stop, self._leave)


def _built(finished: Finished) -> tuple[Environment | Unavailable, float]:
    """What a job says of its one environment, and the seconds that it took.

    Raises:
        InfrastructureError: no job came to an answer.
    """
    if finished.ended is None or not finished.ended.environments:
        raise InfrastructureError(f"an environment could not be built: {asking.lost(finished.losses)}")
    return finished.ended.environments[0], finished.ended.build_seconds


def _note(record: TrialRecord) -> str:
    if record.outcome is Outcome.INFRA:
        return f"not used: {record.message}"
    return f"{len(record.rounds)} rounds timed"
