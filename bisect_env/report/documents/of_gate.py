"""The document of a gate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bisect_env.gate.records import Announcement, Decision, Line, Rules
from bisect_env.report.documents.of_matrix import CellVerdict, EnvironmentFacts, TrialFacts
from bisect_env.report.documents.words import Condition, One
from bisect_env.snapshots.factors import Difference


@dataclass(frozen=True, kw_only=True)
class GateLine(Line):
    """The answer to one question."""

    figures: dict[str, float]  # type: ignore[assignment]
    """Every figure that the decision rests on, by name."""


@dataclass(frozen=True, kw_only=True)
class GateTrial(TrialFacts):
    """One trial, without its output and tracebacks, which ``bisect-env show ID`` prints."""

    run: str
    """The gate that it ran in: an earlier one, with --baseline-store."""


@dataclass(frozen=True)
class GateSide:
    """One of the two environments, with everything measured in it."""

    name: Literal["baseline", "candidate"]
    origin: str
    form: str
    """Of the snapshot: `pip freeze`, `uv.lock`, ..."""
    distributions: dict[str, str | None]
    python: str | None
    driver: str | None
    gpus: tuple[str, ...]
    cell: str
    """Its key, which ``bisect-env show`` takes."""
    condition: Condition
    variables: dict[str, str]
    environment: EnvironmentFacts | None
    verdict: CellVerdict | None
    trials: tuple[GateTrial, ...]


@dataclass(frozen=True)
class GateDocument:
    """`bisect-env gate --json`: the decision, the answer to each question, and every trial behind it."""

    schema: One
    id: str
    decision: Decision
    sentence: str
    lines: tuple[GateLine, ...]
    rules: Rules
    announcement: Announcement
    difference: Difference
    baseline: GateSide
    candidate: GateSide
    bisect_command: str
    """Finds what made it fail; empty when it did not."""
    notes: tuple[str, ...]
    trials: int
    builds: int
    seconds: float
