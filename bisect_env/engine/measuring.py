"""Trials until every cell has enough: as many at a time as there is room for, the next as soon as one has ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bisect_env.engine.attempt import Attempt, Prepared
from bisect_env.engine.executor import Slots
from bisect_env.engine.plan import COUNTED, Chooser, Slot, silence_limit
from bisect_env.engine.progress import Reporter
from bisect_env.engine.setting_aside import SetAside
from bisect_env.engine.state import CellState, measured_alike
from bisect_env.engine.trialing import BESIDE_OTHERS, Bench
from bisect_env.environments.records import Environment
from bisect_env.errors import InfrastructureError
from bisect_env.matrix.cells import Cell
from bisect_env.store.trials import StoredTrial
from bisect_env.trials.records import Outcome, Side, TrialRecord
from bisect_env.verdicts.hardware import why_not
from bisect_env.verdicts.looks import Design, finished
from bisect_env.verdicts.records import Verdict

RETRIES = 3
"""Attempts at one trial before its infrastructure failure sets its cell aside, or ends the run."""
ENDED = (Outcome.CLEAN, Outcome.FAILED, Outcome.WRONG, Outcome.OOM)


@dataclass(eq=False)
class _Running:
    """A slot through all its attempts."""

    slot: Slot
    state: CellState
    only_repeat: int | None = None
    attempt: int = 1
    by_itself: bool = False
    """Whether no other trial is to be on its GPUs: beside others it ran out of memory."""
    elsewhere: int = 0
    """Attempts that ran on something else than what the cell is measured on."""
    misplaced: bool = False
    """Whether the last one was one of these."""
    warming: bool = False
    """What runs now is not the trial itself but the warm-up before it."""


class Measuring:
    """The measuring period of a run. Its state, the store's reader and the reporter belong to the calling thread.

    Args:
        bench: what their trials have in common; its settings' executor runs them.
        design: what each cell needs.
        states: the cells that can be measured, with their environments. Their samples grow.
        reporter: is told of every trial.
        verdict: a cell's verdict by what is known of it.
        wants_profile: whether a finished cell is due for a trial under the profiler.
        over: asked before each trial: whether no further one is to be started. Those that run come to their end.
        alike: whether the cells' trials are compared with each other, so that one hardware is that of all.
    """

    def __init__(
        self,
        bench: Bench,
        design: Design,
        states: Sequence[CellState],
        reporter: Reporter,
        verdict: Callable[[CellState], Verdict],
        wants_profile: Callable[[CellState], bool],
        over: Callable[[], bool] = lambda: False,
        alike: bool = False,
    ) -> None:
        self._bench, self._design, self._states, self._reporter = bench, design, states, reporter
        self._verdict, self._wants_profile, self._over, self._alike = verdict, wants_profile, over, alike
        self._by_key = {state.cell.key: state for state in states}
        self._chooser = Chooser(design, bench.settings.seed)
        self._running: list[_Running] = []
        self._not_to_be_had: set[str] = set()
        """Keys of cells whose hardware no attempt got any more: nothing further of them is tried."""
        self._due = [state for state in states if self._finished(state) and wants_profile(state)]
        """Finished cells whose trial under the profiler comes next."""
        executor = bench.settings.executor
        self.set_aside = SetAside(executor.sets_aside and not alike)
        """Cells of which a trial was given up."""
        self._caches: dict[str, Prepared] = {
            state.cell.key: prepared
            for state in states
            if (prepared := executor.prepared(bench, state.cell, _built(state))) is not None
        }
        """Of the cells that start from a prepared compile cache, where it is or will be."""
        self._cannot_warm = {self._caches[state.cell.key] for state in states if self._warm_up_failed(state)}
        self._slots: Slots[_Running] = executor.slots(bench, [state.cell for state in states])

    def run(self) -> None:
        """Run all trials.

        Raises:
            InfrastructureError: a trial failed for a reason that is not the cell's, again and again, and its cell is
                not just set aside; or cells that are to be measured alike cannot be any more.
            KeyboardInterrupt, LeaseStopped: the run was stopped. In every case nothing runs any more, and what had
                ended is in the store and in the states.
        """
        try:
            with self._slots:
                self._loop()
        finally:
            for running, record in self._slots.left():
                self._keep(running, record)

    def _loop(self) -> None:
        while True:
            while self._slots.free and not self._over() and (slot := self._choose()) is not None:
                self._begin(slot)
            if not self._running:
                return
            self._went(*self._slots.wait())

    def _finished(self, state: CellState) -> bool:
        return finished(state.decisive, self._design)

    def _choose(self) -> Slot | None:
        if self._due:
            return Slot(self._due.pop(0).cell, Side.PROFILE, 0)
        cells = [(state.cell, state.samples) for state in self._states]
        counted = [running.slot for running in self._running if running.slot.side in COUNTED]
        return self._chooser.next(cells, counted, self._waiting())

    def _waiting(self) -> list[Cell]:
        """Cells whose compile cache is just being prepared, and those that cannot be measured any further."""
        under_way = {self._caches[running.slot.cell.key] for running in self._running if running.warming}
        return [
            state.cell
            for state in self._states
            if self._caches.get(state.cell.key) in under_way or self._ended_early(state)
        ]

    def _ended_early(self, state: CellState) -> bool:
        return state.cell.key in self._not_to_be_had or state.cell.key in self.set_aside

    def _begin(self, slot: Slot) -> None:
        state = self._by_key[slot.cell.key]
        running = _Running(slot, state, _repeat_to_decide(state, slot))
        self._running.append(running)
        self._start(running)

    def _start(self, running: _Running) -> None:
        """Start the next attempt, or the warm-up that has to come before it."""
        slot = running.slot
        running.warming = slot.side in COUNTED and self._needs_warm_up(running.state)
        if running.warming:
            self._reporter.trial_started(slot.cell, Side.WARMUP, 1, 1)
        else:
            of = self._design.planned(slot.side) if slot.side in COUNTED else 1
            self._reporter.trial_started(slot.cell, slot.side, slot.index + 1, of)
        self._slots.start(running, self._attempt(running))

    def _attempt(self, running: _Running) -> Attempt:
        slot, state, limits = running.slot, running.state, self._bench.matrix.limits
        prepared, alone, judged = self._caches.get(slot.cell.key), running.by_itself, state.hardware
        if running.warming:
            filler, slot = _built(state.source or state), Slot(slot.cell, Side.WARMUP, 0)
            return Attempt(slot, filler, limits.first_silence, by_itself=alone, prepared=prepared, hardware=judged)
        environment = _built(state)
        if slot.side is Side.PROFILE:
            first = limits.first_silence
            return Attempt(slot, environment, first, by_itself=alone, prepared=prepared, hardware=judged)
        silences = [r.longest_silence for r in state.records if r.side is Side.SERIAL and r.outcome in ENDED]
        silence = silence_limit(limits.silence, limits.first_silence, silences, tripled=state.hung)
        # On a GPU that is always throttled the last attempt counts: its figures say so.
        last = running.attempt == RETRIES
        return Attempt(slot, environment, silence, state.hung, last, running.only_repeat, alone, prepared, judged)

    def _went(self, running: _Running, record: TrialRecord) -> None:
        """Keep what came of an attempt, and go on with the slot or give it back.

        Raises:
            InfrastructureError: it never came to a result, or trying again cannot help.
        """
        running.misplaced = not self._keep(running, record)
        self._reporter.trial_ended(running.slot.cell, record, _note(running, record))
        if self._goes_on(running, record):
            self._start(running)
            return
        self._running.remove(running)
        self._slots.give_back(running)
        state = running.state
        if any(other.state is state for other in self._running):
            return
        if state.cell.key in self._not_to_be_had:
            self._reporter.note(
                f"{state.cell.id}: not measured any further in this run: {RETRIES} attempts at a trial ran on something"
                f" else than its trials are of, {state.hardware} (--fresh measures it anew, on what there is)"
            )
            return
        if state.cell.key in self.set_aside:
            self._reporter.note(f"{state.cell.id}: set aside, and the others go on: a trial was given up")
            return
        if not self._finished(state):
            return
        if self._wants_profile(state):
            self._due.append(state)
        else:
            self._reporter.cell_finished(state.cell, self._verdict(state))

    def _keep(self, running: _Running, record: TrialRecord) -> bool:
        """Add the trial to its cell's; False where it ran on something else than they did, which says nothing more."""
        state, index = running.state, 0 if running.warming else running.slot.index
        own = state.keep(StoredTrial(record, index, self._bench.run_id))
        if self._alike:
            measured_alike(self._states)
        if not (own or running.warming or record.outcome is Outcome.INFRA):
            return False
        if running.warming and record.outcome not in (Outcome.CLEAN, Outcome.INFRA):
            self._cannot_warm.add(self._caches[state.cell.key])
        if record.side in COUNTED and record.hang_kind and (record.outcome is Outcome.INFRA or record.undecided):
            state.hung = True
        return True

    def _goes_on(self, running: _Running, record: TrialRecord) -> bool:
        """Whether the slot needs another attempt."""
        if running.misplaced:
            running.elsewhere += 1
            if running.elsewhere >= RETRIES and self._alike:
                raise InfrastructureError(
                    f"{RETRIES} attempts at a trial ran on something else than what it is to be compared with, "
                    f"{running.state.hardware}\n  What was measured so far is kept: the same command goes on there "
                    "once that is to be had."
                )
            if running.elsewhere >= RETRIES:
                self._not_to_be_had.add(running.slot.cell.key)
            return running.slot.cell.key not in self._not_to_be_had
        crowded = record.outcome is Outcome.INFRA and record.message == BESIDE_OTHERS
        running.by_itself |= crowded
        if running.slot.side is Side.PROFILE:
            return crowded
        if record.outcome is Outcome.INFRA:
            if record.aborted or running.attempt == RETRIES:
                self.set_aside.given_up(running.slot.cell, record)
            running.attempt += 1
            return running.slot.cell.key not in self.set_aside
        self.set_aside.measured()
        if running.warming:
            running.attempt = 1  # What was lost of the warm-up is none of the trial's attempts.
        if record.undecided:
            running.only_repeat = record.resets
        return running.warming or record.undecided

    def _needs_warm_up(self, state: CellState) -> bool:
        """Whether the cell's prepared cache is not there; what failed to fill it would break the controls too."""
        cache = self._caches.get(state.cell.key)
        return cache is not None and cache not in self._cannot_warm and not cache.folder.is_dir()

    def _warm_up_failed(self, state: CellState) -> bool:
        if state.cell.key not in self._caches:
            return False
        filler, bench = _built(state.source or state).lock.address, self._bench
        stored = bench.store.trials(state.cell.key, filler, bench.reproducer.content_hash)
        outcomes = [sample.record.outcome for sample in stored if sample.record.side is Side.WARMUP]
        return any(outcome not in (Outcome.CLEAN, Outcome.INFRA) for outcome in outcomes)


def _built(state: CellState) -> Environment:
    assert isinstance(state.environment, Environment), "only cells with an environment are measured"
    return state.environment


def _repeat_to_decide(state: CellState, slot: Slot) -> int | None:
    """The repeat that went wrong in this place after a reset, where an earlier run ended before it was decided."""
    here = [s.record for s in state.samples if (s.record.side, s.block) == (slot.side, slot.index)]
    return next((record.resets for record in reversed(here) if record.undecided), None)


def _note(running: _Running, record: TrialRecord) -> str:
    """Why the trial is not counted; empty for one that is."""
    if running.misplaced and running.state.hardware is not None:
        return f"not counted: {why_not(record, running.state.hardware)}"
    if running.warming:
        return "not counted: it fills the compile cache"
    if record.side is Side.PROFILE:
        return "not counted: under the profiler"
    if record.undecided:
        return f"not counted: after {record.resets} resets; repeat {record.resets} alone in a fresh process decides"
    if record.outcome is not Outcome.INFRA:
        return ""
    return "hung; tried again with three times the limit" if record.hang_kind else f"not counted: {record.message}"
