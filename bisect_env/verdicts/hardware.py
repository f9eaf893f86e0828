"""On which GPUs trials ran, and which of a cell's trials count together: those of one model and driver. Pure.

A rate of failures or a throughput that comes from two models, or from two versions of the driver, is a figure of
neither. So a cell's trials fall into groups by *hardware*, the models of the GPUs with their drivers, and one group is
judged. Which host it was does not matter, and trials on no GPU are one group. Which group is judged depends on how many
trials it has and when they were started, never on what they showed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from bisect_env.trials.records import Device, Outcome, TrialRecord
from bisect_env.verdicts.samples import Sample, counts

AnySample = TypeVar("AnySample", bound=Sample)


@dataclass(frozen=True)
class Hardware:
    """What trials ran on, as far as it can change what they show."""

    gpus: tuple[tuple[str, str], ...] = ()
    """Model and driver, each pair once, sorted; empty: no GPU."""

    @staticmethod
    def of(devices: Iterable[Device]) -> Hardware:
        """That of GPUs as they were leased."""
        return Hardware(tuple(sorted({(device.name, device.driver) for device in devices})))

    @property
    def models(self) -> str:
        """In words: ``NVIDIA A2 and NVIDIA H200``, ``no GPU``."""
        return " and ".join(dict.fromkeys(model for model, _ in self.gpus)) or "no GPU"

    @property
    def drivers(self) -> str:
        """Its driver, empty without a GPU."""
        return " and ".join(sorted({driver for _, driver in self.gpus if driver}))

    def __str__(self) -> str:
        return f"{self.models}, driver {self.drivers}" if self.drivers else self.models


def ran_on(record: TrialRecord) -> Hardware:
    """What a trial ran on."""
    return Hardware.of(record.devices)


def says_of_hardware(record: TrialRecord) -> bool:
    """Whether the trial tells what its cell is measured on: one that failed for the machine may have had no GPU yet."""
    return record.outcome is not Outcome.INFRA


def belongs(record: TrialRecord, judged: Hardware | None) -> bool:
    """Whether a trial is of the group that is judged, for what it is of, or says nothing of any.

    Args:
        record: the trial.
        judged: that group's hardware; None: none is known yet, and every trial may be of it.
    """
    return judged is None or ran_on(record) == judged or not (says_of_hardware(record) or record.devices)


def possible(record: TrialRecord, here: Hardware | None) -> bool:
    """Whether a further trial could run on what this one ran on.

    Args:
        record: the trial.
        here: all GPUs that there are; None: whichever a trial will get is not known.
    """
    if here is None or not (says_of_hardware(record) or record.devices):
        return True
    own = ran_on(record)
    return bool(own.gpus) == bool(here.gpus) and set(own.gpus) <= set(here.gpus)


def apart(samples: Sequence[AnySample], judged: Hardware | None) -> tuple[tuple[AnySample, ...], tuple[AnySample, ...]]:
    """The trials of the group that is judged, and the others, each in their order: every one is in one of the two."""
    own = tuple(sample for sample in samples if belongs(sample.record, judged))
    return own, tuple(sample for sample in samples if not belongs(sample.record, judged))


def most(samples: Iterable[Sample]) -> Hardware | None:
    """That of the group with the most trials that count, of several the one of the latest trial.

    None where no trial tells: there is none, or all failed for reasons of the machine.
    """
    counted: dict[Hardware, int] = {}
    latest: dict[Hardware, float] = {}
    for sample in samples:
        record = sample.record
        if says_of_hardware(record):
            own = ran_on(record)
            counted[own] = counted.get(own, 0) + counts(record)
            latest[own] = max(latest.get(own, record.started), record.started)
    return max(counted, key=lambda own: (counted[own], latest[own], own.gpus), default=None)


def told(own: Hardware, among: Collection[Hardware]) -> str:
    """In words, with the driver only where several occur among GPUs."""
    return str(own) if len({each.drivers for each in among if each.gpus}) > 1 else own.models


def marks(judged: Hardware | None, others: Sequence[Sample]) -> tuple[str, ...]:
    """What must be said beside a cell of its trials that do not count for what they ran on: a line a group.

    Those that say nothing of the cell anyway are passed over.
    """
    groups: dict[Hardware, int] = {}
    for sample in others:
        if says_of_hardware(sample.record):
            groups[ran_on(sample.record)] = groups.get(ran_on(sample.record), 0) + 1
    if judged is None:
        return ()
    every = (judged, *groups)
    return tuple(
        f"{count} trial{'s' if count > 1 else ''} on {told(own, every)} {'are' if count > 1 else 'is'} there too, and "
        f"not pooled with those on {told(judged, every)}"
        for own, count in groups.items()
    )


def why_not(record: TrialRecord, judged: Hardware) -> str:
    """Why a trial that ran on something else does not count."""
    return f"it ran on {ran_on(record)}; this cell's trials are of {judged}"
