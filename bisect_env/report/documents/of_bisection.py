"""The documents of a bisection and of its plan."""

from __future__ import annotations

from dataclasses import dataclass

from bisect_env.bisection.records import Finding, Observation, Plan
from bisect_env.report.documents.words import Condition, Levels, One


@dataclass(frozen=True)
class Suspect:
    """A hypothesis of the last stage."""

    name: str
    probability: float


@dataclass(frozen=True)
class Skipped:
    """A mixed environment that could not be tested."""

    environment: str
    why: str


@dataclass(frozen=True)
class Seen:
    """A failure's text, and in how many trials it was seen."""

    signature: str
    trials: int


@dataclass(frozen=True)
class Texts:
    """A text for each side."""

    good: str
    bad: str


@dataclass(frozen=True)
class Variables:
    """Environment variables of each side; values of those that are named like a secret are hidden."""

    good: dict[str, str]
    bad: dict[str, str]


@dataclass(frozen=True)
class Conditions:
    """How trials run on each side."""

    good: Condition
    bad: Condition


@dataclass(frozen=True, kw_only=True)
class BatchFacts(Observation):
    """One batch of trials in one mixed environment, or why there could be none."""

    point: Levels  # type: ignore[assignment]
    """What is not named is at `good`."""
    signatures: tuple[Seen, ...]  # type: ignore[assignment]


@dataclass(frozen=True, kw_only=True)
class BisectDocument(Finding):
    """`bisect-env bisect --json`: the culprit, its probability, and everything that was tried."""

    schema: One
    suspects: tuple[Suspect, ...]  # type: ignore[assignment]
    """Every hypothesis of the last stage, the likeliest first; `none of these` among them."""
    skipped: tuple[Skipped, ...]  # type: ignore[assignment]
    other_signatures: tuple[Seen, ...]  # type: ignore[assignment]
    locks: Texts | None  # type: ignore[assignment]
    """Both sides of the smallest difference that still fails, in full."""
    variables: Variables  # type: ignore[assignment]
    conditions: Conditions | None  # type: ignore[assignment]
    commands: Texts | None  # type: ignore[assignment]
    """What reproduces each side, from the project's folder."""
    observations: tuple[BatchFacts, ...]


@dataclass(frozen=True)
class Mix:
    """A mixed environment that cannot be resolved."""

    point: Levels
    reason: str


@dataclass(frozen=True, kw_only=True)
class BisectPlanDocument(Plan):
    """`bisect-env bisect --dry-run --json`: what a bisection would do."""

    unresolvable: tuple[Mix, ...]  # type: ignore[assignment]
    versions: dict[str, int]  # type: ignore[assignment]
    """Distribution and how many of its released versions lie between the two sides."""
    schema: One
