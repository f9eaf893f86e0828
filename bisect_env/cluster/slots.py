"""Room for attempts in the jobs that are in flight: they wait for a job, and come back as records in the store."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from bisect_env.cluster import asking
from bisect_env.cluster.flight import QUICK, SLOW, SLOWER, Finished
from bisect_env.engine.attempt import Attempt
from bisect_env.engine.trialing import Bench
from bisect_env.trials.records import TrialRecord
from bisect_env.trials.runner import Stopped

if TYPE_CHECKING:
    from bisect_env.cluster.slurm import Slurm

Task = TypeVar("Task")


class SlurmSlots(Generic[Task]):
    """Room for as many attempts as jobs in flight hold. As :class:`~bisect_env.engine.executor.Slots`."""

    def __init__(self, executor: Slurm, bench: Bench) -> None:
        self._executor, self._bench = executor, bench
        self._tasks: set[Task] = set()
        self._units: dict[str, tuple[Task, Attempt]] = {}
        self._inbox: deque[tuple[Task, TrialRecord]] = deque()

    def __enter__(self) -> Self:
        self._flight = self._executor.flight(self._bench.settings.root, self._bench.tell)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is not None:
            self._bench.stop.set()
        for finished in self._executor.ended(self._flight, error):
            self._came(finished)
        self._flight.clean()

    @property
    def free(self) -> bool:
        """Whether there is room for a further task."""
        return len(self._tasks) < self._executor.capacity(self._bench.matrix.at_once)

    def start(self, task: Task, attempt: Attempt) -> None:
        """Let an attempt wait for a job."""
        self._tasks.add(task)
        executor = self._executor
        work = asking.attempt_work(self._bench, executor.settings, executor.known, attempt)
        self._units[self._flight.add(work)] = task, attempt

    def wait(self) -> tuple[Task, TrialRecord]:
        """The next attempt that has ended."""
        pause = QUICK
        while not self._inbox:
            for finished in self._flight.step(more=not self.free):
                self._came(finished)
            if not self._inbox and self._bench.stop.wait(pause):
                raise Stopped
            pause = min(SLOW, pause * SLOWER)
        return self._inbox.popleft()

    def give_back(self, task: Task) -> None:
        """There is room for another."""
        self._tasks.discard(task)

    def left(self) -> Iterator[tuple[Task, TrialRecord]]:
        """What ended and was not waited for."""
        while self._inbox:
            yield self._inbox.popleft()

    def _came(self, finished: Finished) -> None:
        task, attempt = self._units.pop(finished.unit)
        bench, slot = self._bench, attempt.slot
        if finished.losses:
            record = asking.given_up(bench, attempt, finished.losses)
        else:
            record = finished.results[0].sample.record
        bench.store.put_trial(record, slot.cell.key, bench.run_id, slot.index, bench.reproducer.content_hash)
        self._inbox.append((task, record))
