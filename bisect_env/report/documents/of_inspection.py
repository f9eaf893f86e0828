"""The document of an inspection: a name's surface, what it reaches, and who uses it, in one place or several."""

from __future__ import annotations

from dataclasses import dataclass

from bisect_env.inspection.inspected import Asked, Cost
from bisect_env.inspection.records import Entry, Found, Hit, NotFound, Scope, Unresolved, Use
from bisect_env.report.documents.words import One


@dataclass(frozen=True)
class SurfaceFacts:
    """What the name offers in one place."""

    signature: str
    """Of the name itself, when it can be called."""
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class ScanFacts:
    """What a scan for patterns found, and how far it reached."""

    patterns: tuple[str, ...]
    depth: int
    """Most steps from the name asked for."""
    functions: int
    """Functions read, the one asked for included."""
    hits: tuple[Hit, ...]
    unresolved: tuple[Unresolved, ...]
    """Calls that could not be followed."""
    beyond: int
    """Functions that are called at the last step and were not read."""


@dataclass(frozen=True)
class UsesFacts:
    """Who sets a module-level name, and who reads it."""

    name: str
    scope: Scope
    stores: tuple[Use, ...]
    reads: tuple[Use, ...]
    files: int
    """Files that were looked through."""


@dataclass(frozen=True)
class PlaceFacts:
    """What was found in one place; what was not asked for is null."""

    label: str
    found: Found | None
    missing: NotFound | None
    """Where there is no such name."""
    surface: SurfaceFacts | None
    scan: ScanFacts | None
    uses: UsesFacts | None
    instead: UsesFacts | None
    """Of the name most like it, where it is in other places and not in this one."""


@dataclass(frozen=True)
class ChangeFacts:
    """A name across the places."""

    name: str
    signatures: tuple[str | None, ...]
    """By place; null where the name is not there."""
    steps: tuple[str, ...]
    """By place, from the second on: empty as before, `appeared`, `changed`, `went`."""


@dataclass(frozen=True)
class TracedFacts:
    """A script that was run to see which calls it makes."""

    script: str
    calls: int
    """Distinct ones."""
    more: int
    """Distinct calls that no room was left for."""
    seconds: float
    status: int | None
    """Null when it was ended at the time limit."""


@dataclass(frozen=True)
class InspectDocument:
    """`bisect-env inspect --json`: a name of a library in one place, or across several."""

    schema: One
    asked: Asked
    places: tuple[PlaceFacts, ...]
    changes: tuple[ChangeFacts, ...]
    difference: str | None
    """Unified diff between two places; empty when they do not differ."""
    traced: TracedFacts | None
    cost: Cost
    notes: tuple[str, ...]
