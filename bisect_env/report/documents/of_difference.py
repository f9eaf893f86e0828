"""The document of what differs between two snapshots."""

from __future__ import annotations

from dataclasses import dataclass

from bisect_env.report.documents.words import One
from bisect_env.snapshots.factors import Factor, Follower, Held


@dataclass(frozen=True)
class SnapshotFacts:
    """Where a snapshot is from."""

    origin: str
    form: str


@dataclass(frozen=True)
class DiffDocument:
    """`bisect-env diff --json`: in what two environments differ. A level that is absent is null."""

    schema: One
    good: SnapshotFacts
    bad: SnapshotFacts
    factors: tuple[Factor, ...]
    followers: tuple[Follower, ...]
    held: tuple[Held, ...]
    notes: tuple[str, ...]
