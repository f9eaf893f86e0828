"""The executor of this host: environments in the project's folder, trials on its cores and under leases of its GPUs."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from bisect_env.engine import left_over, prepare, sessions
from bisect_env.engine.attempt import Attempt, Prepared
from bisect_env.engine.executor import Available, Keep, Slots, Wanted
from bisect_env.engine.grouping import Entrant, Session
from bisect_env.engine.places import Place, Places
from bisect_env.engine.pool import Pool
from bisect_env.engine.progress import Reporter
from bisect_env.engine.trialing import Bench, devices_wanted, prepared_cache, run_attempt
from bisect_env.environments import building, manifest
from bisect_env.environments.records import Environment, Lock, Unavailable
from bisect_env.environments.uv import Uv
from bisect_env.matrix.cells import Cell, Limits
from bisect_env.store.database import Store
from bisect_env.trials import gpu, leases, machine
from bisect_env.trials.records import Device, TrialRecord
from bisect_env.trials.sharing import Company
from bisect_env.verdicts.hardware import Hardware

if TYPE_CHECKING:  # The settings name this executor where no other is asked for.
    from bisect_env.engine.settings import Settings

Task = TypeVar("Task")
LEFT_OVER = (
    "jobs that an earlier command left to Slurm are not waited for, and what they measure is measured here again: "
    "Ctrl-C, and the earlier command once more (--executor slurm) takes in what they come to first; `squeue --me` "
    "shows what still runs"
)


class LocalSlots(Generic[Task]):
    """As many places as the matrix has trials at once, each with cores of its own. As :class:`~.executor.Slots`.

    Args:
        bench: where trials run; ``at_once`` of its matrix is the number of places.
        cells: of which attempts may come: whether GPUs are to be leased depends on them.
    """

    def __init__(self, bench: Bench, cells: Sequence[Cell]) -> None:
        self._bench, self._cells = bench, cells
        self._pool = Pool[Task](bench.matrix.at_once, bench.stop, bench.tell)
        self._places: dict[Task, Place] = {}
        self._context = ExitStack()

    def __enter__(self) -> Self:
        bench, pool = self._bench, self._pool
        with ExitStack() as context:
            self._available = len(gpu.devices(bench.settings.gpus))
            devices = self._leased(context)
            company = None if devices is None else Company(bench.settings.allow_busy, bench.stop, pool.say)
            # Entered last, so that the GPUs are held until every thread has ended.
            context.enter_context(pool)
            self._bench = replace(bench, tell=pool.say, company=company)
            cores = machine.cores() if bench.matrix.at_once == 1 else machine.neighbours(machine.cores())
            self._room = Places(cores, bench.matrix.at_once, devices)
            self._context = context.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._context.__exit__(kind, error, at)

    def _leased(self, context: ExitStack) -> Sequence[Device] | None:
        """GPUs for all trials together when they run side by side; None when each leases its own, or needs none."""
        bench = self._bench
        wanted = any(devices_wanted(cell, self._available) for cell in self._cells)
        if bench.matrix.at_once == 1 or not wanted:
            return None
        return context.enter_context(
            leases.lease(
                self._available,
                allow_busy=bench.settings.allow_busy,
                stop=bench.stop,
                apart=True,
                selection=bench.settings.gpus,
                tell=bench.tell,
            )
        )

    @property
    def free(self) -> bool:
        """Whether there is a place for a further task."""
        return self._room.free

    def start(self, task: Task, attempt: Attempt) -> None:
        """Begin an attempt on the task's place, which its first one takes."""
        if task in self._places and not _fits(self._places[task], attempt):
            self.give_back(task)
        if task not in self._places:
            count = devices_wanted(attempt.slot.cell, self._available)
            self._places[task] = self._room.take(count, attempt.hardware)
        self._pool.start(task, partial(run_attempt, self._bench, attempt, self._places[task]))

    def wait(self) -> tuple[Task, TrialRecord]:
        """The next attempt that has ended."""
        return self._pool.wait()

    def give_back(self, task: Task) -> None:
        """The task's place is free."""
        self._room.give_back(self._places.pop(task))

    def left(self) -> Iterator[tuple[Task, TrialRecord]]:
        """What ended and was not waited for."""
        return self._pool.left()


def _fits(place: Place, attempt: Attempt) -> bool:
    """False where the host has several kinds of GPUs, and the cell turned out to be measured on another one."""
    return not place.devices or attempt.hardware in (None, Hardware.of(place.devices))


@dataclass(frozen=True)
class Local:
    """This host. As :class:`~.executor.Executor`."""

    @property
    def host(self) -> str:
        """Its name."""
        return socket.gethostname()

    def capacity(self, at_once: int) -> int:
        """What the matrix asks for."""
        return at_once

    def running(self, at_once: int) -> int:
        """All of them."""
        return at_once

    @property
    def builders(self) -> int:
        """As many as its disk can take."""
        return prepare.BUILDERS

    @property
    def batches(self) -> int:
        """One: more of them take more trials."""
        return 1

    @property
    def sets_aside(self) -> bool:
        """False: what this host cannot do for one cell it cannot do for the others."""
        return False

    def available(self, cell: Cell, selection: str | None) -> Available:
        """The GPUs that this process may use, of those selected."""
        devices = () if cell.condition.device == "cpu" else gpu.devices(selection)
        return Available(len(devices), devices)

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
        """In the project's folder, several at once."""
        return prepare.build(wanted, settings.root, store, uv, reporter, stop, limits, settings.bundle)

    def find(self, lock: Lock, settings: Settings) -> Environment | None:
        """In the project's folder."""
        return building.find(lock.address, lock, settings.root)

    def changes(self, environment: Environment) -> tuple[str, ...]:
        """By its manifest."""
        return manifest.verify(environment)

    def prepared(self, bench: Bench, cell: Cell, environment: Environment) -> Prepared | None:
        """In the project's folder, for the models of the GPUs that can be used here."""
        models = [device.name for device in gpu.devices(bench.settings.gpus)]
        return prepared_cache(bench, cell, environment, models)

    def slots(self, bench: Bench, cells: Sequence[Cell]) -> Slots[Task]:
        """Places on this host."""
        return LocalSlots[Task](bench, cells)

    def rounds(self, bench: Bench, entrants: Sequence[Entrant], reporter: Reporter, keep: Keep) -> None:
        """Sessions on this host."""
        sessions.run(bench, entrants, reporter, keep)

    def session(self, bench: Bench, session: Session, reporter: Reporter, keep: Keep) -> bool:
        """A session on this host."""
        return sessions.run_one(bench, session, reporter, keep)

    def unfinished(self, settings: Settings) -> bool:
        """Never: no trial outlives its command."""
        return False

    def take_in(self, settings: Settings, store: Store, tell: Callable[[str], None], stop: threading.Event) -> int:
        """Nothing, but it says so where jobs of a cluster were left."""
        if left_over.commands(settings.root):
            tell(LEFT_OVER)
        return 0
