"""The document of an explanation."""

from __future__ import annotations

from dataclasses import dataclass

from bisect_env.explanation.records import Action, Collision, Hypothesis, State, Unknown, Watched
from bisect_env.report.documents.words import One


@dataclass(frozen=True)
class ExplainedWindow:
    """A time in which one thread had a state set, a trace or a compile open, or the lock held."""

    state: State
    thread: str
    value: str
    start: float
    """Unix time."""
    end: float | None
    """Unix time; null: never closed."""


@dataclass(frozen=True)
class ExplainedCount:
    """How often a thread did something that is no event of its own."""

    thread: str
    state: State
    action: Action
    count: int


@dataclass(frozen=True)
class ExplainedLog:
    """What one process's witness wrote, without its events."""

    torch: str
    python: str
    started: float
    """Unix time."""
    threads: tuple[str, ...]
    """In the order of their first event."""
    watched: tuple[Watched, ...]
    unknown: tuple[Unknown, ...]
    events: int
    """How many there are."""
    counts: tuple[ExplainedCount, ...]
    dropped: int
    """Events that no room was left for."""
    complete: bool
    """False when the process ended without closing it: what was flushed last may be missing."""


@dataclass(frozen=True)
class ExplainedTrial:
    """One witnessed trial explained."""

    trial: str
    """Id, which ``bisect-env show`` takes."""
    outcome: str
    sentences: tuple[str, ...]
    """The account in words."""
    collisions: tuple[Collision, ...]
    """The first is the one that explains the outcome."""
    windows: tuple[ExplainedWindow, ...]
    log: ExplainedLog | None
    """Null: the witness did not start."""


@dataclass(frozen=True)
class ExplainDocument:
    """`bisect-env explain --json`: the answer, an account of each witnessed trial, and the hypotheses."""

    schema: One
    cell: str
    """Its id, which ``bisect-env show`` takes."""
    environment: str
    """Its address."""
    sentence: str
    primary: str | None
    """The trial that the sentence is about; null where none was witnessed."""
    accounts: tuple[ExplainedTrial, ...]
    hypotheses: tuple[Hypothesis, ...]
    failed: int
    """Witnessed trials that failed, hung, or ran dense."""
    witnessed: int
    plain_failed: int
    plain: int
    """Trials of the same condition without a witness, from the store."""
    vanished: str
    """A sentence, when the failure is rarer under the witness than chance explains; else empty."""
    cost: str
    """A sentence: what the witness cost; empty where it was not measured."""
    notes: tuple[str, ...]
    follows: str
    """A sentence on what to try next; empty where nothing went wrong."""
