"""What the engine knows of one cell while it runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from bisect_env.engine.plan import in_order
from bisect_env.environments.records import Environment, Lock, Unavailable
from bisect_env.matrix.cells import Cell
from bisect_env.store.trials import StoredTrial
from bisect_env.trials.records import TrialRecord
from bisect_env.verdicts.hardware import Hardware, apart, belongs, most, possible, ran_on
from bisect_env.verdicts.samples import Sample, counts


@dataclass(eq=False)
class CellState:
    """A cell with its environment and its trials so far. Changed by one thread only."""

    cell: Cell
    lock: Lock | Unavailable | None = None
    environment: Environment | Unavailable | None = None
    samples: list[StoredTrial] = field(default_factory=list)
    """Its trials on the hardware that it is measured on."""
    hung: bool = False
    """A trial hung under the first limit; from then on the limit is tripled."""
    source: CellState | None = None
    """Under ``cache: stale``: the cell whose environment fills the cache. Only its lock and environment are of use."""

    hardware: Hardware | None = None
    """What it is measured on: fixed by the stored trials, or else by the first one that counts; None until then."""
    elsewhere: list[StoredTrial] = field(default_factory=list)
    """Its trials on anything else: kept, and not counted."""

    def take(self, stored: Iterable[StoredTrial], here: Hardware | None = None) -> None:
        """Begin with these stored trials: the most of them that count on one hardware say what it is measured on.

        Args:
            stored: in the order in which they were started.
            here: all GPUs that a trial can get; None: which they are is not known.
        """
        every = list(stored)
        usable = [sample for sample in every if possible(sample.record, here)]
        self.hardware = most(usable)
        own, _ = apart(usable, self.hardware)
        kept = {sample.record.id for sample in own}
        self.samples = list(own)
        self.elsewhere = [sample for sample in every if sample.record.id not in kept]

    def keep(self, sample: StoredTrial) -> bool:
        """Add a trial that has just ended. False: it ran on something else than the cell is measured on."""
        if self.hardware is None and counts(sample.record):
            self.hardware = ran_on(sample.record)
        own = belongs(sample.record, self.hardware)
        (self.samples if own else self.elsewhere).append(sample)
        return own

    @property
    def address(self) -> str | None:
        """Address of the cell's environment, None when there is no lock."""
        return self.lock.address if isinstance(self.lock, Lock) else None

    @property
    def unavailable(self) -> Unavailable | None:
        """Why the cell cannot be measured: its own environment is missing, or the one that fills its stale cache."""
        for found in (self.lock, self.environment):
            if isinstance(found, Unavailable):
                return found
        missing = self.source.unavailable if self.source else None
        if self.source is None or missing is None:
            return None
        text = f"its stale compile cache is filled by {self.source.cell.id}, which has no environment: "
        return Unavailable(missing.stage, missing.reason, text + missing.message)

    @property
    def records(self) -> list[TrialRecord]:
        """All stored trials of the cell, in order."""
        return [sample.record for sample in self.samples]

    @property
    def decisive(self) -> list[Sample]:
        """The trials that may decide whether the cell goes on: no block before them is still missing."""
        return in_order(self.samples)


def measured_alike(states: Sequence[CellState]) -> None:
    """Cells whose trials are compared with each other are measured on one hardware: what the first of them has."""
    judged = next((state.hardware for state in states if state.hardware is not None), None)
    for state in states:
        state.hardware = state.hardware or judged
