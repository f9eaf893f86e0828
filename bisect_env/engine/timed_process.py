"""One process of a session: started, given its turns one after the other, ended, and its records."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import ExitStack
from dataclasses import replace

from bisect_env.engine.grouping import Entrant, starts
from bisect_env.engine.trialing import Bench, cache_to_copy, spec_of, trial_folder
from bisect_env.matrix.cells import Condition
from bisect_env.trials import machine, runner
from bisect_env.trials.isolation import Folders
from bisect_env.trials.records import Device, Outcome, Side, TrialRecord
from bisect_env.trials.watchdog import END, EventsWatch
from bisect_env.verdicts.throughput import WARMED

STARTING = 0.05
"""Seconds between two looks at processes that start."""
TURN = 0.005
"""Seconds between two looks at the process whose turn it is."""


class TimedProcess:
    """A cell's process on the side ``rounds``. Used by one thread; :meth:`close` it whatever happened.

    Args:
        devices: GPUs of its session.
        at_once: processes of its session.
        seed: the session's: they all do the same work.
        silence: seconds without an event, and without waiting for its turn, after which it hangs.
        cores: those that it starts on. With a share of its own it neither disturbs the others' starts, nor begins as
            many compiler processes as the machine has cores. For its rounds it gets all, as everybody does: on cores
            farther from the GPU one would be slower than another.
    """

    def __init__(
        self,
        bench: Bench,
        entrant: Entrant,
        devices: tuple[Device, ...],
        at_once: int,
        seed: int,
        silence: float,
        cores: tuple[int, ...],
    ) -> None:
        self.entrant = entrant
        self.records: list[TrialRecord] = []
        """Of all starts; the last one's is that of the rounds."""
        self._bench, self._devices, self._at_once = bench, devices, at_once
        self._seed, self._silence, self._cores = seed, silence, cores
        self._tries = list(starts(entrant))
        self._repeated = False
        self._stack = ExitStack()
        self._future: Future[TrialRecord] | None = None
        self._pid: int | None = None
        self._next = 0

    def start(self, pool: Executor) -> None:
        """Start the next try in a thread of ``pool``."""
        self._begin(pool, self._tries.pop(0))

    def _begin(self, pool: Executor, warmed: bool) -> None:
        bench, entrant = self._bench, self.entrant
        folder = self._stack.enter_context(trial_folder(bench))
        condition = entrant.cell.condition
        if warmed:
            condition = Condition.of({**condition.as_dict(), "mitigation": "warmup"})
        self._warmed, self._turns, self._next, self._pid = warmed, folder / "turns", 0, None
        cell, environment = entrant.cell, entrant.environment
        spec = replace(
            spec_of(
                bench, cell, environment, folder, Side.ROUNDS, self._seed, self._silence, self._devices, self._cores
            ),
            condition=condition,
            warm_cache=cache_to_copy(cell, entrant.prepared),
            turns=self._turns,
            at_once=self._at_once,
        )
        self._watch = EventsWatch(Folders(folder).events, time.monotonic(), self._turns)
        self._future = pool.submit(runner.run, spec, bench.stop, machine.facts, began=self._began)

    def _began(self, pid: int) -> None:
        self._pid = pid

    @property
    def ended(self) -> bool:
        """Whether it has no further turn."""
        return self._future is None or self._future.done()

    def settled(self, pool: Executor) -> bool:
        """Whether it waits for its first turn, or has failed for good; a start that failed is followed by the next."""
        if self._future is None:
            return True
        if self._waits(0):
            if self._pid is not None:
                machine.move(self._pid, machine.cores())
            return True
        if not self._future.done():
            return False
        record = self._take()
        if record.outcome is Outcome.INFRA and not record.aborted and not self._repeated:
            self._repeated = True
            self._begin(pool, self._warmed)
            return False
        if record.outcome is Outcome.HANG:
            # Everybody waits for it, and a hang takes long to be told.
            self._tries = [warmed for warmed in self._tries if warmed]
        if record.outcome in (Outcome.FAILED, Outcome.HANG) and self._tries:
            self.start(pool)
            return False
        return True

    def take_turn(self) -> None:
        """Let it compute one round, and return when it waits for the next one or has ended."""
        if self._give(str(self._next)):
            self._next += 1
            self._until(lambda: self._waits(self._next))

    def finish(self) -> None:
        """No more rounds: let it measure its utilisation, and return when it has ended."""
        if self._give(END):
            self._until(lambda: False)
        if self._future is not None:
            self._take()

    def close(self) -> None:
        """Wait for its end, which must have been asked for, and remove its folder."""
        if self._future is not None:
            self._future.exception()
        self._stack.close()

    def _give(self, name: str) -> bool:
        if self.ended:
            return False
        try:
            (self._turns / name).touch()
        except FileNotFoundError:  # Its folder is being removed: it ends just now.
            self._until(lambda: False)
            return False
        return True

    def _until(self, reached: Callable[[], bool]) -> None:
        while not (self.ended or reached()):
            pause(self._bench.stop, TURN)

    def _waits(self, number: int) -> bool:
        self._watch.look(time.monotonic())
        return self._watch.waiting == number

    def _take(self) -> TrialRecord:
        assert self._future is not None
        record, self._future = self._future.result(), None
        if record.rounds:
            record = replace(record, cores=machine.cores())
        if self._warmed:
            record = replace(record, extra=(*record.extra, (WARMED, "by one thread alone, since it fails without")))
        self.records.append(record)
        return record


def pause(stop: threading.Event, seconds: float) -> None:
    """Sleep a little.

    Raises:
        Stopped: ``stop`` was set.
    """
    if stop.wait(seconds):
        raise runner.Stopped
