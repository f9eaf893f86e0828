"""What the engine tells whoever is watching: a reporter of empty hooks.

The engine calls these and knows nothing of terminals. Hooks may be called from several threads while environments are
resolved and built; trials are reported from one thread.
"""

from __future__ import annotations

from bisect_env.environments.records import Environment, Lock, Unavailable
from bisect_env.matrix.cells import Cell
from bisect_env.trials.records import Side, TrialRecord
from bisect_env.verdicts.records import Verdict


class Reporter:
    """Silent; subclasses override what they show."""

    def note(self, text: str) -> None:
        """Something worth knowing, once."""

    def phase(self, name: str, total: int) -> None:
        """A phase begins: ``resolve``, ``build`` or ``trials``, with so many units at most."""

    def resolving(self, label: str) -> None:
        """A request is being resolved."""

    def resolved(self, label: str, result: Lock | Unavailable, seconds: float) -> None:
        """A request has been resolved, or not."""

    def building(self, label: str, lock: Lock) -> None:
        """An environment is being built."""

    def built(self, label: str, result: Environment | Unavailable, seconds: float) -> None:
        """An environment stands, or does not."""

    def trial_started(self, cell: Cell, side: Side, number: int, of: int) -> None:
        """Trial ``number`` of at most ``of`` of this cell's side begins."""

    def trial_ended(self, cell: Cell, record: TrialRecord, note: str) -> None:
        """A trial ended; ``note`` says when it is not counted, and why."""

    def cell_finished(self, cell: Cell, verdict: Verdict) -> None:
        """No further trial of this cell is needed."""


class Forward(Reporter):
    """Passes on to another reporter what concerns resolving, building and single trials, and swallows the rest."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self.note = reporter.note  # type: ignore[method-assign]
        self.resolving = reporter.resolving  # type: ignore[method-assign]
        self.resolved = reporter.resolved  # type: ignore[method-assign]
        self.building = reporter.building  # type: ignore[method-assign]
        self.built = reporter.built  # type: ignore[method-assign]
        self.trial_started = reporter.trial_started  # type: ignore[method-assign]
        self.trial_ended = reporter.trial_ended  # type: ignore[method-assign]
