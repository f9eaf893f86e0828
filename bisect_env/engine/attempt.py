"""One attempt at a trial, with all that is decided before it starts: a record that can be sent to another process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bisect_env.engine.plan import Slot
from bisect_env.environments.records import Environment
from bisect_env.trials.records import Side
from bisect_env.verdicts.hardware import Hardware


@dataclass(frozen=True)
class Prepared:
    """A compile cache that a single-threaded trial fills beforehand, for those that start from it."""

    folder: Path
    """Where it is, or will be once a warm-up has ended clean."""
    filler: str
    """Address of the environment that fills it: the cell's own, or under ``cache: stale`` another torch's."""


@dataclass(frozen=True)
class Attempt:
    """One try at a slot.

    Its seed is :func:`bisect_env.engine.plan.seed_of` of the run's seed (in the bench's settings), the cell and the
    index; limits, variables to pass on and the reproducer are those of the bench.
    """

    slot: Slot
    """Under ``Side.WARMUP`` it fills the prepared cache of the slot's cell, by ``environment``."""
    environment: Environment
    """In which it runs."""
    silence: float
    """Seconds without an event after which it hangs."""
    counts_hang: bool = True
    """False while no hang of the cell has been confirmed; a hang is then kept, but not counted."""
    counts_slowed: bool = True
    """False when a trial whose GPU was throttled is to be run again."""
    only_repeat: int | None = None
    """The repeat that this trial decides about: it went wrong in a process in which others had been before it."""
    by_itself: bool = False
    """Whether no other trial is to be on its GPUs."""
    prepared: Prepared | None = None
    """What its compile cache starts from, when it is there; None: from nothing, or from the user's own folder."""

    hardware: Hardware | None = None
    """What the cell is measured on: wherever there is a choice, the attempt runs on that; None: on anything."""

    @property
    def warms_up(self) -> bool:
        """Whether it is no trial of the cell, but fills the cell's cache."""
        return self.slot.side is Side.WARMUP
