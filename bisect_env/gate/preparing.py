"""Both environments of a gate: resolved, compared with their snapshots, built and proved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bisect_env.engine import prepare
from bisect_env.engine.state import CellState
from bisect_env.environments.records import Environment, Lock, Unavailable
from bisect_env.errors import BisectEnvError, ExitCode
from bisect_env.gate import environment, resolving
from bisect_env.gate.progress import Forward
from bisect_env.gate.sides import NAMES
from bisect_env.gate.specification import Gate
from bisect_env.gate.turns import Place
from bisect_env.matrix.cells import Cell


class NothingToCompare(BisectEnvError):
    """Both sides are the same environment under the same condition."""

    exit_code = ExitCode.NOTHING_TO_COMPARE


class Preparing:
    """Changes the two sides' locks and environments.

    Args:
        gate: what is asked.
        place: where.
        sides: baseline and candidate; one that has no lock already keeps its reason.
    """

    def __init__(self, gate: Gate, place: Place, sides: tuple[CellState, CellState]) -> None:
        self._gate, self._place, self._sides = gate, place, sides
        self._forward = Forward(place.reporter, 0, 0)
        self.builds = 0
        """Environments that were built, and not found."""
        self.notes: tuple[str, ...] = ()

    def resolve(self, fresh: bool) -> None:
        """Both locks; the candidate's state says why where it has none.

        Raises:
            BadInput, InfrastructureError: the baseline has none, or it is not to be told.
            NothingToCompare: they are the same.
        """
        place, (baseline, candidate) = self._place, self._sides

        def locks(wanted: Sequence[Cell]) -> Mapping[str, Lock | Unavailable]:
            return prepare.resolve(wanted, place.store, place.uv, self._forward, place.stop, fresh)

        asked = self._gate.asked
        known = candidate.lock is not None
        ((cell, lock), (own, found)), notes = resolving.resolved(
            replace(asked, bad=asked.good) if known else asked, locks
        )
        baseline.cell, baseline.lock = cell, lock
        if not known:
            candidate.cell, candidate.lock = own, found
        for name, snapshot, state in zip(NAMES, self._gate.sides, self._sides, strict=True):
            if isinstance(state.lock, Lock):
                notes += environment.notes(name, snapshot, state.lock)
        self.notes = notes
        alike = [(state.address, state.cell.condition, state.cell.variables) for state in self._sides]
        if alike[0] == alike[1]:
            same = "both sides come to the same environment under the same condition, so there is nothing to try"
            raise NothingToCompare(f"Nothing to gate: {same}.")

    def build(self) -> bool:
        """Both environments; False where the candidate has none.

        Raises:
            BadInput, InfrastructureError: the baseline has none, or the disk is full.
        """
        place, (baseline, candidate) = self._place, self._sides
        if not isinstance(candidate.lock, Lock):
            return False
        assert isinstance(baseline.lock, Lock), "resolve() gives the baseline one, or raises"
        wanted = {
            lock.address: (lock, state.cell.request, state.cell.id)
            for state, lock in ((candidate, candidate.lock), (baseline, baseline.lock))
        }
        limits, executor = self._gate.asked.limits, place.settings.executor
        built = executor.build(wanted, place.settings, place.store, place.uv, self._forward, place.stop, limits)
        baseline.environment, candidate.environment = built[baseline.lock.address], built[candidate.lock.address]
        if isinstance(baseline.environment, Unavailable):
            raise resolving.refusal(baseline.environment, self._gate.asked)
        self.builds += sum(each.build_seconds > 0 for each in built.values() if isinstance(each, Environment))
        return isinstance(candidate.environment, Environment)

    def changes(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """How each environment differs by now from what was built from its lock, a line a file."""
        executor = self._place.settings.executor
        found = [
            executor.changes(state.environment) if isinstance(state.environment, Environment) else ()
            for state in self._sides
        ]
        return found[0], found[1]
