"""Trials of baseline and candidate in turn, through the engine: A B B A, each stored as soon as it has ended.

A block is one threaded trial a side, and for the first ones a serial control a side beside it. Within two blocks the
sides change places, so that a machine that drifts steadily favours neither; which of the two begins is drawn for every
two blocks. The trials are those of the gate's run in the store: what an interrupted gate had measured is found there.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path

from bisect_env.engine import judging
from bisect_env.engine.grouping import Entrant, Session
from bisect_env.engine.measuring import Measuring
from bisect_env.engine.settings import Settings
from bisect_env.engine.state import CellState, measured_alike
from bisect_env.engine.trialing import Bench
from bisect_env.environments.records import Environment
from bisect_env.environments.uv import Uv
from bisect_env.gate import pace
from bisect_env.gate.progress import Forward, Reporter
from bisect_env.gate.specification import Gate
from bisect_env.matrix.cells import Cell, Matrix, digest
from bisect_env.store.database import Store
from bisect_env.store.trials import StoredTrial
from bisect_env.trials.records import Outcome, Reproducer, Side, TrialRecord
from bisect_env.verdicts.facts import BAD
from bisect_env.verdicts.hardware import apart, most, why_not
from bisect_env.verdicts.looks import Design
from bisect_env.verdicts.records import Verdict
from bisect_env.verdicts.samples import counts

MATRIX = "gate"
"""Name of a gate's runs and cells in the store."""
AT_A_TIME = 4
"""Blocks between two looks, where trials run side by side: for each of their places."""


@dataclass(frozen=True)
class Place:
    """Where a gate works."""

    settings: Settings
    store: Store
    uv: Uv
    reporter: Reporter
    stop: threading.Event


def order(seed: int, block: int) -> tuple[int, int]:
    """Which side goes first in a block: 0 the baseline, 1 the candidate. Every second block is the mirror image."""
    first = random.Random(digest([seed, "sides", block // 2])).randrange(2)
    return (first, 1 - first) if block % 2 == 0 else (1 - first, first)


def threaded(samples: Sequence[StoredTrial]) -> list[StoredTrial]:
    """The threaded trials that count, by block."""
    found = [sample for sample in samples if sample.record.side is Side.THREADS and counts(sample.record)]
    return sorted((s for s in found if s.record.outcome is not Outcome.SKIPPED), key=lambda sample: sample.block)


def bad(record: TrialRecord) -> bool:
    """Whether a trial failed, hung or ran out of memory."""
    return record.outcome in BAD


class Turns:
    """The trials of one gate.

    Args:
        run_id: of its run in the store.
        gate: what is asked.
        reproducer: ready to run.
        place: where.
        sides: baseline and candidate with their environments; their samples are those of this gate, and grow.
        blocks: at most.
        controls: serial controls a side.
        deadline: on the clock of ``time.monotonic``: after it no trial is begun.
    """

    def __init__(
        self,
        run_id: str,
        gate: Gate,
        reproducer: Reproducer,
        place: Place,
        sides: tuple[CellState, CellState],
        blocks: int,
        controls: int,
        deadline: float = inf,
    ) -> None:
        self._gate, self._reproducer, self._place, self._sides = gate, reproducer, place, sides
        self._blocks, self._controls, self._deadline = blocks, controls, deadline
        self._left_out: frozenset[int] = frozenset()
        asked = gate.asked
        self._matrix = Matrix(
            name=MATRIX,
            path=Path(run_id),
            cells=tuple(state.cell for state in sides),
            axes=("side",),
            reproducer=asked.reproducer,
            trials=blocks,
            controls=controls,
            solo=0,
            limits=asked.limits,
            pass_env=asked.pass_env,
            at_once=asked.at_once,
            stop_early=False,
        )
        addresses = {state.cell.request.key: state.address for state in sides if state.address is not None}
        self._bench = Bench(
            self._matrix,
            replace(place.settings, seed=asked.seed),
            place.store,
            run_id,
            reproducer,
            place.stop,
            place.reporter.note,
            addresses,
        )
        self._forward = Forward(place.reporter, blocks, controls)

    def load(self) -> None:
        """Find what earlier calls of this gate have measured."""
        stored = [self._stored(state) for state in self._sides]
        judged = self._sides[0].hardware or most([sample for side in stored for sample in side])
        for state, own in zip(self._sides, stored, strict=True):
            state.hardware = judged
            state.samples, state.elsewhere = map(list, apart(own, judged))
            state.hung = any(r.hang_kind and r.outcome is not Outcome.FAILED for r in state.records)

    def _stored(self, state: CellState) -> list[StoredTrial]:
        assert state.address is not None
        stored = self._place.store.trials(state.cell.key, state.address, self._reproducer.content_hash)
        return [sample for sample in stored if sample.run_id == self._bench.run_id]

    def run(self, until: int, enough: Callable[[], bool], left_out: frozenset[int] = frozenset()) -> None:
        """Run the blocks before ``until`` that are still missing, as long as they are not ``enough``.

        Args:
            until: number of blocks.
            enough: asked before every trial.
            left_out: blocks in which the baseline has no threaded trial, since earlier gates have run enough of them.

        Raises:
            InfrastructureError: a trial failed for a reason that says nothing of its side, again and again.
            KeyboardInterrupt: it was stopped; what had ended is in the store.
        """
        self._left_out, done = left_out, 0
        places = self._place.settings.executor.capacity(self._gate.asked.at_once)
        while done < until and not enough():
            together = places > 1
            reached = min(until, done + AT_A_TIME * places) if together else done + 1
            if together:
                self._measure(self._sides, reached, enough)
            else:
                for at in order(self._gate.asked.seed, done):
                    if not enough():
                        self._measure([self._sides[at]], reached, enough)
            done = reached
            self._told(done, max(until, self._blocks))

    def profile(self) -> None:
        """One trial a side under the profiler, where trials are on a GPU and none was yet: it is never counted."""
        for state in self._sides:
            on_gpu = any(sample.record.devices for sample in state.samples)
            done = any(sample.record.side is Side.PROFILE for sample in state.samples)
            if on_gpu and not done and self._reproducer.protocol:
                self._measure([state], 0, self._late, profiled=True)

    def session(self) -> bool:
        """Time the rounds of both sides in turn, once; False where they do not fit on a GPU together."""
        states = {state.cell.key: state for state in self._sides}
        executor, entrants = self._place.settings.executor, []
        for state in self._sides:
            assert isinstance(state.environment, Environment)
            prepared = executor.prepared(self._bench, state.cell, state.environment)
            entrants.append(Entrant(state.cell, state.environment, tuple(state.samples), prepared))

        def keep(cell: Cell, sample: StoredTrial) -> None:
            state = states[cell.key]
            if not state.keep(sample) and state.hardware is not None:
                self._place.reporter.note(f"{cell.id}: rounds are not used: {why_not(sample.record, state.hardware)}")

        return executor.session(self._bench, Session(entrants[0], (entrants[1],)), self._forward, keep)

    def verdict(self, state: CellState, design: Design) -> Verdict:
        """A side's verdict by its trials, without the other side's."""
        return judging.verdict(state, self._sides, self._matrix, design, self._reproducer.protocol)

    def _late(self) -> bool:
        return time.monotonic() >= self._deadline

    def _measure(
        self, states: Sequence[CellState], until: int, over: Callable[[], bool], profiled: bool = False
    ) -> None:
        """The trials before block ``until`` that these sides still need, as long as it is not over."""
        controls = min(until, self._controls)
        design = Design(trials=max(1, until), controls=controls, solo=0, stop_early=False)
        for state in states:
            state.samples += [_taken(state.cell, block) for block in self._missing_on_purpose(state, until)]
        try:
            Measuring(
                self._bench,
                design,
                states,
                self._forward,
                lambda state: self.verdict(state, design),
                lambda state: profiled and not any(s.record.side is Side.PROFILE for s in state.samples),
                over,
                alike=True,
            ).run()
        finally:
            for state in states:
                state.samples = [sample for sample in state.samples if sample.run_id]
            measured_alike(self._sides)

    def _missing_on_purpose(self, state: CellState, until: int) -> list[int]:
        return sorted(block for block in self._left_out if block < until) if state is self._sides[0] else []

    def _told(self, block: int, blocks: int) -> None:
        seen = [threaded(state.samples) for state in self._sides]
        wrong = [sum(bad(sample.record) for sample in side) for side in seen]
        places = self._place.settings.executor.capacity(self._gate.asked.at_once)
        seconds = pace.per_trial([s for state in self._sides for s in state.samples], places)
        if seconds is not None:
            self._place.reporter.remaining(2 * seconds * (blocks - block))
        self._place.reporter.stands(block, blocks, (wrong[0], wrong[1]), (len(seen[0]), len(seen[1])))


def _taken(cell: Cell, block: int) -> StoredTrial:
    """Stands for a trial that is not to be run."""
    record = TrialRecord("", "", "", cell.condition, Side.THREADS, 0, Outcome.CLEAN)
    return StoredTrial(record, block, "")
