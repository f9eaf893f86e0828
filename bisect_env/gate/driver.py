"""A gate from its two snapshots to its decision: resolved, built, announced, tried in turn, judged.

Every trial is in the store as soon as it has ended, under the gate's own run. Whatever ends a gate, the same command
finds what there is and goes on; nothing is counted twice.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from bisect_env import __version__
from bisect_env.engine.recall import HOST
from bisect_env.engine.state import CellState
from bisect_env.engine.sweeping import sweep
from bisect_env.engine.turn import turn
from bisect_env.environments.records import Lock, Unavailable
from bisect_env.gate import deciding, environment, kept, offering
from bisect_env.gate.environment import Tried
from bisect_env.gate.kept import Header, Machine
from bisect_env.gate.measuring import Measured
from bisect_env.gate.preparing import Preparing
from bisect_env.gate.records import BASELINE, CANDIDATE, Decision, GateResult, Line, SideFacts
from bisect_env.gate.sides import NAMES, cells
from bisect_env.gate.specification import Gate
from bisect_env.gate.turns import MATRIX, Place
from bisect_env.store.trials import StoredTrial
from bisect_env.trials import reproducers


class Run:
    """One call's part of a gate.

    Args:
        gate: what is asked.
        place: where, and who watches.
        missing: why the candidate does not resolve, where that is known already.
        fresh: begin anew, whatever an earlier call of the same gate has measured.
        argv: the command line, for the store's list of runs.

    Raises:
        BadInput: the reproducer cannot be used.
    """

    def __init__(
        self,
        gate: Gate,
        place: Place,
        missing: Unavailable | None = None,
        fresh: bool = False,
        argv: Sequence[str] = (),
    ) -> None:
        self._gate, self._place, self._fresh, self._argv = gate, place, fresh, argv
        self._reproducer = reproducers.prepare(gate.asked.reproducer)
        baseline, candidate = cells(gate.asked)
        self._sides = (CellState(baseline), CellState(candidate, missing))
        self._prepared = Preparing(gate, place, self._sides)
        self._id, self._began, self._before = "", time.monotonic(), 0.0
        self._measured = Measured(gate, place, self._reproducer, self._sides)
        self._changed: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
        """How each environment differs from its lock after the last trial."""

    @property
    def seconds(self) -> float:
        """Of all calls of this gate."""
        return self._before + time.monotonic() - self._began

    def to_the_end(self) -> GateResult:
        """Do what is still to be done, and decide.

        Raises:
            BadInput: there is no baseline here.
            NothingToCompare: both sides come to the same environment.
            InfrastructureError: the machine, an index or the disk failed; what was measured is kept.
            KeyboardInterrupt: it was stopped; likewise. After either :meth:`result` gives what is known.
        """
        place = self._place
        settings, root = place.settings, place.settings.root
        with turn(root, f"a gate of {self._gate.asked.bad.origin}", place.stop, place.reporter.note):
            sweep(place.store)
            settings.executor.take_in(settings, place.store, place.reporter.note, place.stop)
            self._prepared.resolve(self._fresh)
            self._begin()
            try:
                if self._prepared.build():
                    self._measured.run(self._id, self._runs, self._began - self._before)
                    self._changed = self._prepared.changes()
            except BaseException as error:
                place.store.end_run(self._id, "interrupted" if isinstance(error, KeyboardInterrupt) else "failed")
                raise
            finally:
                kept.spend(root, self._id, self.seconds)
            place.store.end_run(self._id, "completed")
        return self.result()

    def dry(self) -> GateResult:
        """What it would take, by what the store holds. The locks are kept; nothing is built or run.

        Raises:
            As :meth:`to_the_end`.
        """
        self._prepared.resolve(self._fresh)
        if isinstance(self._sides[1].lock, Lock):
            self._measured.announce(self.seconds)
        return self.result()

    def result(self, why: str = "") -> GateResult:
        """What is known now; ``why`` says what ended it early."""
        gate, measured = self._gate, self._measured
        samples = measured.samples
        first = environment.line(*(self._tried(at) for at in (0, 1)))
        lines = deciding.lines(gate.rules, measured.announcement, first, *samples)
        decision = deciding.decision(lines)
        offered = self._offered(lines) if decision is Decision.FAIL and self._id else ""
        notes = (*([f"{why}: what follows is what is known by then"] if why else []), *self._notes(lines, offered))
        own = [sample for side in samples for sample in side if sample.run_id == self._id]
        return GateResult(
            id=self._id,
            decision=decision,
            lines=lines,
            difference=gate.asked.difference,
            announcement=measured.announcement,
            rules=gate.rules,
            baseline=self._facts(0, samples[0]),
            candidate=self._facts(1, samples[1]),
            bisect_command=offered,
            notes=notes,
            trials=len(own),
            builds=self._prepared.builds,
            seconds=self.seconds,
        )

    # The gate on the disk

    def _begin(self) -> None:
        """Find the earlier call of the same gate, or begin a new one."""
        place, question = self._place, self._gate.question()
        root, machine, reproducer = place.settings.root, self._machine(), self._reproducer.content_hash
        place.store.put_cells([state.cell for state in self._sides], MATRIX)
        found = None if self._fresh else kept.latest(root, question, machine, reproducer)
        if found is None:
            versions = {"bisect-env": __version__, HOST: machine.host}
            asked = self._gate.asked
            about = f"{asked.bad.origin} in place of {asked.good.origin}"
            run_id = place.store.start_run(MATRIX, about, self._argv, asked.seed, versions)
            earlier = [h for h in kept.headers(root) if (h.machine, h.reproducer) == (machine, reproducer)]
            runs = tuple(header.id for header in earlier) if self._gate.baseline_store else ()
            found = Header(run_id, self._gate, question, machine, reproducer, time.time(), __version__, runs)
            kept.begin(root, found)
        self._id, self._runs = found.id, found.baseline_runs
        self._before = kept.spent(root, found.id)

    def _machine(self) -> Machine:
        settings = self._place.settings
        executor = settings.executor
        used = max((executor.available(s.cell, settings.gpus).devices or () for s in self._sides), key=len)
        models, drivers = sorted(device.name for device in used), sorted({device.driver for device in used})
        return Machine(executor.host, tuple(models), ", ".join(drivers))

    # What came of it

    def _tried(self, at: int) -> Tried:
        state = self._sides[at]
        return Tried(state.lock, state.environment, self._measured.verdict(at), self._changed[at])

    def _facts(self, at: int, samples: Sequence[StoredTrial]) -> SideFacts:
        state = self._sides[at]
        lock = state.lock if isinstance(state.lock, Lock) else None
        return SideFacts(
            name=NAMES[at],
            snapshot=self._gate.sides[at],
            cell=state.cell,
            lock=lock,
            address=lock.address if lock is not None else "",
            verdict=self._measured.verdict(at),
            samples=tuple(samples),
        )

    def _offered(self, lines: Sequence[Line]) -> str:
        """The bisection's command line; a side that cannot be read a second time is kept as a file."""
        if self._gate.asked.base is not None:
            return ""  # A bisection builds all of its environments, and what a host has built itself is on no index.
        root = self._place.settings.root
        sources = [
            source or str(kept.snapshot_file(root, self._id, name, snapshot))
            for name, source, snapshot in zip(NAMES, self._gate.sources, self._gate.sides, strict=True)
        ]
        failed = [line.question for line in lines if line.decision is Decision.FAIL]
        return offering.command(failed, (sources[0], sources[1]), self._gate.words, self._measured.samples)

    def _notes(self, lines: Sequence[Line], offered: str) -> tuple[str, ...]:
        notes = [*self._gate.asked.difference.notes, *self._prepared.notes, *self._measured.notes]
        if self._changed[0]:
            notes.append(f"the {BASELINE} is not what its lock says any more: {'; '.join(self._changed[0][:5])}")
        if any(line.decision is Decision.FAIL for line in lines) and not offered and self._id:
            base = self._gate.asked.base is not None
            notes.append(
                "no bisection stands on a base: a matrix with `base:` tries the versions in between"
                if base
                else f"no bisection can ask for what the {CANDIDATE} failed on"
            )
        return tuple(notes)
