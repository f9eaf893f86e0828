"""An executor that does whatever one may: many attempts at a time, answers in any order, attempts that are lost.

Its trials are real processes, by the same ``run_attempt`` as on this host. What has ended is held back until so much
has gathered that there is something to choose from, or nothing else runs; then any of it is handed out.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from bisect_env.engine.attempt import Attempt
from bisect_env.engine.executor import Slots
from bisect_env.engine.local import Local
from bisect_env.engine.places import Place
from bisect_env.engine.pool import Pool
from bisect_env.engine.trialing import Bench, run_attempt
from bisect_env.matrix.cells import Cell
from bisect_env.store.ids import new_trial_id
from bisect_env.trials import machine
from bisect_env.trials.records import Outcome, TrialRecord

Task = TypeVar("Task")
Run = Callable[[Bench, Attempt, Place], TrialRecord]


class ScrambledSlots(Generic[Task]):
    """As the engine's ``Slots``."""

    def __init__(self, executor: Scrambled, bench: Bench, cells: Sequence[Cell]) -> None:
        self._executor, self._bench = executor, bench
        self._keys = {cell.key for cell in cells}
        self._pool = Pool[Task](executor.processes, bench.stop, bench.tell)
        self._tasks: set[Task] = set()
        self._under_way: set[Task] = set()
        self._ended: list[tuple[Task, TrialRecord]] = []

    def __enter__(self) -> Self:
        self._pool.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._pool.__exit__(kind, error, at)

    @property
    def free(self) -> bool:
        return len(self._tasks) < self._executor.room

    def start(self, task: Task, attempt: Attempt) -> None:
        assert attempt.slot.cell.key in self._keys and task not in self._under_way, "one attempt of a task at a time"
        self._tasks.add(task)
        self._under_way.add(task)
        self._executor.begun.append(len(self._tasks))
        lost = self._executor.loses(attempt)
        self._pool.start(task, lambda: self._run(attempt, lost))

    def _run(self, attempt: Attempt, lost: bool) -> TrialRecord:
        if not lost:
            return self._executor.run(self._bench, attempt, Place(0, machine.cores()))
        bench, slot = self._bench, attempt.slot
        address = attempt.environment.lock.address
        record = TrialRecord(
            new_trial_id(), address, bench.reproducer.content_hash, slot.cell.condition, slot.side, 0, Outcome.INFRA
        )
        record = replace(record, message="its node failed")
        bench.store.put_trial(record, slot.cell.key, bench.run_id, slot.index, bench.reproducer.content_hash)
        return record

    def wait(self) -> tuple[Task, TrialRecord]:
        # Held back: until three have ended, or nothing runs that could end.
        while len(self._ended) < min(3, len(self._under_way)):
            self._ended.append(self._pool.wait())
        task, record = self._ended.pop(self._executor.random.randrange(len(self._ended)))
        self._under_way.remove(task)
        return task, record

    def give_back(self, task: Task) -> None:
        self._tasks.remove(task)

    def left(self) -> Iterator[tuple[Task, TrialRecord]]:
        yield from self._ended
        yield from self._pool.left()


@dataclass(frozen=True)
class Scrambled(Local):
    """This host's environments and rounds, and trials in no order.

    ``room`` tasks at a time, ``processes`` of them running; of the first two attempts at a slot some are lost.
    """

    seed: int = 0
    room: int = 12
    processes: int = 3
    lost: float = 0.3
    run: Run = run_attempt
    random: random.Random = field(default_factory=random.Random)
    tries: dict[Any, int] = field(default_factory=dict)
    losses: list[str] = field(default_factory=list)
    begun: list[int] = field(default_factory=list)
    """At the start of each attempt, how many tasks there were."""

    def __post_init__(self) -> None:
        self.random.seed(self.seed)

    @property
    def most_at_once(self) -> int:
        """Tasks at a time at most."""
        return max(self.begun, default=0)

    def capacity(self, at_once: int) -> int:
        return self.room

    def slots(self, bench: Bench, cells: Sequence[Cell]) -> Slots[Task]:
        return ScrambledSlots[Task](self, bench, cells)

    def loses(self, attempt: Attempt) -> bool:
        """Whether this attempt is one that is lost. A third attempt at a trial would end the run."""
        slot = (attempt.slot.cell.key, attempt.slot.side, attempt.slot.index)
        tried = self.tries[slot] = self.tries.get(slot, 0) + 1
        lost = tried < 3 and self.random.random() < self.lost
        self.losses.extend([attempt.slot.cell.id] if lost else [])
        return lost
