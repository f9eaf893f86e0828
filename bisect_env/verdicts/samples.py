"""Trials sorted by side and block: what every verdict starts from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from bisect_env.trials.records import Outcome, Side, TrialRecord

_SCORED = (Side.THREADS, Side.SERIAL, Side.SOLO)


class Sample(Protocol):
    """A trial and its block. Trials of equal block, of any side and any cell, were run next to each other."""

    @property
    def record(self) -> TrialRecord:
        """The trial."""

    @property
    def block(self) -> int:
        """Number of the block, from 0."""

    @property
    def run_id(self) -> str:
        """The run, or session, in which it ran; rounds are paired within one only."""


@dataclass(frozen=True)
class Placed:
    """A bare record with the block it takes by its order."""

    record: TrialRecord
    block: int
    run_id: str = ""


Records = Sequence[TrialRecord] | Sequence[Sample]
"""Bare records take their blocks from their order on each side, INFRA and undecided ones left out."""


@dataclass(frozen=True)
class Sides:
    """A cell's trials by side, each in the order of its blocks. INFRA, undecided and witnessed ones are left out."""

    threads: tuple[Sample, ...]
    serial: tuple[Sample, ...]
    solo: tuple[Sample, ...]
    profile: tuple[Sample, ...]
    infra: int
    rounds: tuple[Sample, ...] = ()
    """Timed, never counted."""
    undecided: tuple[Sample, ...] = ()
    """Of every side: failures after a reset, whose fresh process counts in their place."""

    @property
    def scored(self) -> tuple[Sample, ...]:
        """The trials that verdicts count."""
        return self.threads + self.serial + self.solo


def counts(record: TrialRecord) -> bool:
    """Whether the trial takes its place on a side that verdicts count."""
    return record.side in _SCORED and record.outcome is not Outcome.INFRA and not record.undecided


def by_side(records: Records) -> Sides:
    """Sort trials by side and block."""
    sides: dict[Side, list[Sample]] = {side: [] for side in Side}
    infra = 0
    undecided: list[Sample] = []
    taken: Counter[Side] = Counter()
    for item in records:
        sample: Sample = Placed(item, taken[item.side]) if isinstance(item, TrialRecord) else item
        if sample.record.side is Side.WITNESS:
            continue
        if sample.record.outcome is Outcome.INFRA:
            infra += sample.record.side in _SCORED
            continue
        if sample.record.undecided:
            undecided.append(sample)
            continue
        taken[sample.record.side] += 1
        sides[sample.record.side].append(sample)
    ordered = {side: tuple(sorted(samples, key=_place)) for side, samples in sides.items()}
    return Sides(
        threads=ordered[Side.THREADS],
        serial=ordered[Side.SERIAL],
        solo=ordered[Side.SOLO],
        profile=ordered[Side.PROFILE],
        infra=infra,
        rounds=ordered[Side.ROUNDS],
        undecided=tuple(sorted(undecided, key=_place)),
    )


def _place(sample: Sample) -> tuple[int, str]:
    return sample.block, sample.record.id


def counted(samples: Sequence[Sample]) -> list[TrialRecord]:
    """The records that say something of their side: all but the skipped ones."""
    return [sample.record for sample in samples if sample.record.outcome is not Outcome.SKIPPED]
