"""What an explanation would do, before it does it."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bisect_env.environments.records import Environment, Lock
from bisect_env.trials.records import Side


@dataclass(frozen=True)
class Needed:
    """An environment that its trials run in, or that fills their compile cache."""

    cell: str
    """That it is of."""
    address: str
    built: bool
    packages: int
    download_bytes: int | None
    """That an empty cache fetches for it; null: the index does not tell."""


@dataclass(frozen=True)
class Series:
    """Trials of one kind."""

    stored: int
    """That are used again."""
    least: int
    """To run, whatever comes of them."""
    most: int
    """To run, where none goes wrong."""


@dataclass(frozen=True)
class Planned:
    """What is missing of an explanation."""

    cell: str
    environments: tuple[Needed, ...]
    """None where no trial is missing."""
    download_bytes: int
    """Up to, less what uv has cached."""
    disk_bytes: int
    """That building takes at most."""
    free_bytes: int
    warm_up: bool
    """Whether a trial in one thread has to fill the compile cache first; it is not counted."""
    witnessed: Series
    serial: Series
    """Controls in one thread."""
    threads: Series
    """Controls with threads and no witness."""
    until: int | None
    """Witnessed trials end when so many went wrong; null: all of them are run."""
    seconds: float | None
    """Of all trials, when as many as possible are run, by those that are stored; null: there are none."""
    unfinished: bool
    """An earlier, interrupted command has trials elsewhere, whose records are taken in first."""


def needed(cell: str, lock: Lock, found: Environment | None) -> Needed:
    """An environment as a plan tells of it; ``found``: where it stands, None where it does not."""
    return Needed(cell, lock.address, found is not None, len(lock.pins), lock.download_bytes)


def expected(missing: Mapping[Side, int], stored: Mapping[Side, Sequence[float]]) -> float | None:
    """Seconds that the missing trials take: each as long as the median of its kind, or else of the slowest kind.

    Args:
        missing: by kind, how many are to be run.
        stored: by kind, the seconds of those that are stored.

    Returns:
        None where none are stored.
    """
    medians = {side: statistics.median(seconds) for side, seconds in stored.items() if seconds}
    if not medians:
        return None
    return sum(number * medians.get(side, max(medians.values())) for side, number in missing.items())
