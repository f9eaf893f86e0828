"""Where environments are built and trials run: the one interface that everything above the engine's own files knows.

The unit is one *attempt*: a trial, or the warm-up before it. Whoever wants trials hands out attempts while there is
room, and takes their records in whatever order they come. An executor may be this host
(:class:`bisect_env.engine.local.Local`) or many (jobs on a cluster); what it needs to start an attempt in another
process stands in the attempt and in its bench, so that nothing of it is a closure. Only the process that holds the
executor opens the project's store.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

from bisect_env.engine.attempt import Attempt, Prepared
from bisect_env.engine.grouping import Entrant, Session
from bisect_env.engine.progress import Reporter
from bisect_env.environments.records import Environment, Lock, Unavailable
from bisect_env.environments.uv import Uv
from bisect_env.matrix.cells import Cell, EnvironmentRequest, Limits
from bisect_env.store.database import Store
from bisect_env.store.trials import StoredTrial
from bisect_env.trials.records import Device, TrialRecord
from bisect_env.verdicts.hardware import Hardware

if TYPE_CHECKING:  # The settings name the executor, so that it can know them by type alone.
    from bisect_env.engine.settings import Settings
    from bisect_env.engine.trialing import Bench

Task = TypeVar("Task")

Wanted = Mapping[str, tuple[Lock, EnvironmentRequest, str]]
"""By the address of an environment its lock, one of its requests, and its label for people."""
Keep = Callable[[Cell, StoredTrial], None]
"""Gets a record that has just been stored, with its cell."""


@dataclass(frozen=True)
class Available:
    """GPUs that a trial of a cell can get."""

    count: int
    """At most so many for one trial; 0: it runs without."""
    devices: tuple[Device, ...] | None = ()
    """They themselves; None: which they are is not known before a trial has run."""

    @property
    def hardware(self) -> Hardware | None:
        """All their models with their drivers; None for whatever there is."""
        return None if self.devices is None else Hardware.of(self.devices)


class Slots(Protocol[Task]):
    """Room for attempts. A context manager, entered once.

    A *task* is the caller's own token of one slot of its plan: hashable, the same object through all attempts at that
    slot, which follow each other. From the first attempt until it is given back it may keep its place (cores, GPUs, a
    node), or be moved from one attempt to the next.

    An exception in the body sets the bench's stop event. Leaving waits until nothing runs any more (or, where that is
    what whoever interrupts has chosen, until what goes on elsewhere is written down for the next run).
    """

    def __enter__(self) -> Self:
        """Raises InfrastructureError, LeaseStopped, BadInput: there is no room for trials of these cells here."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """See the class."""

    @property
    def free(self) -> bool:
        """Whether a task that has not begun can begin now."""

    def start(self, task: Task, attempt: Attempt) -> None:
        """Begin an attempt, or put it into the queue; returns at once. No two of one task at a time.

        Raises:
            InfrastructureError: the attempt can never run here (a cell that needs more GPUs than there are).
        """

    def wait(self) -> tuple[Task, TrialRecord]:
        """The next attempt that has ended, in any order: its task, and its record, which the store has by then.

        What is said meanwhile goes to the bench's ``tell``, in the calling thread. An attempt that was lost (its
        machine failed, somebody took the GPU) comes as a record of outcome INFRA with the reason, and is not counted.

        Raises:
            Stopped, LeaseStopped: the bench's stop event was set, at most a second or two ago.
            InfrastructureError: nothing can be run or stored any more.
        """

    def give_back(self, task: Task) -> None:
        """No further attempt of this task: its place is free for another."""

    def left(self) -> Iterator[tuple[Task, TrialRecord]]:
        """Once the context was left, also by an exception: what had ended and was stored, and was not waited for."""


class Executor(Protocol):
    """Builds environments, runs attempts, and times rounds. One object for all that a command does."""

    @property
    def host(self) -> str:
        """Where trials run, for what is kept of a run: what was measured elsewhere is another host's."""

    def capacity(self, at_once: int) -> int:
        """How many tasks can be under way at a time, where the matrix asks for ``at_once`` trials on one host."""

    def running(self, at_once: int) -> int:
        """How many trials run at a time at most, where the matrix asks for ``at_once`` on one host."""

    @property
    def builders(self) -> int:
        """How many environments are built at a time: a command that watches the clock asks for no more at once."""

    @property
    def batches(self) -> int:
        """Batches that a bisection asks for at a time, where the user does not say how many."""

    @property
    def sets_aside(self) -> bool:
        """Whether a trial that was given up ends its own cell alone: others may be luckier, on other hosts."""

    def available(self, cell: Cell, selection: str | None) -> Available:
        """What GPUs a trial of the cell can get: none where its condition says ``device: cpu``.

        Args:
            cell: of which a trial may run.
            selection: ``--gpus``.

        Raises:
            BadInput: ``selection`` names a GPU that is not there.
        """

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
        """An environment for each address of ``wanted``, proved against its lock where its trials will run.

        Its folder and its Python are paths there, which this process may not be able to open.

        Raises:
            InfrastructureError: what is to be built does not fit on the disk.
        """

    def find(self, lock: Lock, settings: Settings) -> Environment | None:
        """The environment of the lock that stands, whether or not it can be imported; None where none does."""

    def changes(self, environment: Environment) -> tuple[str, ...]:
        """How an environment differs by now from what was built from its lock, a line a file; () where it does not."""

    def prepared(self, bench: Bench, cell: Cell, environment: Environment) -> Prepared | None:
        """The cell's prepared compile cache, there or to be filled by a warm-up; None: its trials start from none.

        The folder is one that this process can look for. Cells whose folder is the same share the cache.
        """

    def slots(self, bench: Bench, cells: Sequence[Cell]) -> Slots[Task]:
        """Room for attempts at trials of these cells, to be entered as a context."""

    def rounds(self, bench: Bench, entrants: Sequence[Entrant], reporter: Reporter, keep: Keep) -> None:
        """Time the rounds of every entrant that needs some, session by session, each as one unit on one host.

        Arguments, storing and exceptions as :func:`bisect_env.engine.sessions.run`.
        """

    def session(self, bench: Bench, session: Session, reporter: Reporter, keep: Keep) -> bool:
        """Time the rounds of one session, whether or not any are needed; False: its processes do not fit together.

        Arguments, storing and exceptions as :func:`bisect_env.engine.sessions.run_one`.
        """

    def unfinished(self, settings: Settings) -> bool:
        """Whether an earlier command left something running or not yet taken in; :meth:`take_in` is then due."""

    def take_in(self, settings: Settings, store: Store, tell: Callable[[str], None], stop: threading.Event) -> int:
        """Store what an earlier, interrupted command's attempts have come to meanwhile; returns how many records.

        Called when the turn of the store is ours and nothing has been started, before stored trials are looked at.
        """
