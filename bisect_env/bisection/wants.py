"""What a bisection may want of the world, and how its stages ask for it."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeVar

from bisect_env.bisection.log import Answer
from bisect_env.bisection.records import Levels, Stage

T = TypeVar("T")


@dataclass(frozen=True)
class Trials:
    """So many trials of each of these mixes, interleaved. Answered by :class:`Told`, one observation a point."""

    stage: Stage
    points: tuple[Levels, ...]
    size: int


@dataclass(frozen=True)
class Round:
    """Batches side by side: of each mix so many trials. Answered by :class:`Told`, one observation a point.

    No mix is compared with another. Where a budget allows only a part of the trials, the last batches are cut short or
    left out, and the answer has no observation of what was left out.
    """

    stage: Stage
    points: tuple[Levels, ...]
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class Check:
    """Which of these mixes resolve? Answered by :class:`Checked`."""

    stage: Stage
    points: tuple[Levels, ...]


@dataclass(frozen=True)
class Lookup:
    """What lies between two levels of a distribution? Answered by :class:`Candidates`, ends included."""

    stage: Stage
    distribution: str
    good: str
    bad: str


Want = Trials | Round | Check | Lookup
Asking = Generator[Want, Answer, T]
"""A stage, or a part of one: it asks for what it wants, is sent the answers, and returns what it came to."""
