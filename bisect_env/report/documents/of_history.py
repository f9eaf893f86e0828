"""The document of the verdicts of a matrix from run to run."""

from __future__ import annotations

from dataclasses import dataclass

from bisect_env.report.documents.words import Levels, One
from bisect_env.report.history import Shift
from bisect_env.verdicts.records import Headline, Interval, Throughput


@dataclass(frozen=True)
class Planned:
    """Trials planned for each cell."""

    trials: int
    controls: int
    solo: int | None


@dataclass(frozen=True)
class RunFacts:
    """One call of `bisect-env matrix`."""

    id: str
    path: str
    started: float
    ended: float | None
    status: str
    """Empty while it runs, and when it was killed."""
    host: str
    versions: dict[str, str]
    planned: Planned | None
    trials: int
    """That it ran."""


@dataclass(frozen=True)
class MomentFacts:
    """A cell at the end of a run that measured something of it."""

    run: str
    key: str
    headline: Headline
    text: str
    reason: str
    threads: Interval | None
    bound: float | None
    throughput: Throughput | None
    peak_bytes: int | None
    environment: str
    drivers: tuple[str, ...]
    gpus: tuple[str, ...]
    reproducer: str
    trials: int
    """That counted then."""
    own: int
    """That the run added."""
    changes: tuple[Shift, ...]
    """Since the moment before."""


@dataclass(frozen=True)
class Now:
    """Why a cell has no verdict of trials at present."""

    headline: Headline
    text: str
    reason: str


@dataclass(frozen=True)
class PastFacts:
    """A cell over the runs."""

    id: str
    key: str
    show: str
    levels: Levels
    moments: tuple[MomentFacts, ...]
    """The earliest first."""
    now: Now | None


@dataclass(frozen=True)
class Changed:
    """A cell that the last run measured again, and what was otherwise before."""

    cell: str
    before: str
    """The run that measured it before."""
    changes: tuple[Shift, ...]


@dataclass(frozen=True)
class HistoryDocument:
    """`bisect-env history --json`: the verdicts of a matrix from run to run."""

    schema: One
    matrix: str
    runs: tuple[RunFacts, ...]
    """The earliest first."""
    last: str | None
    """The last run that measured something."""
    changed: tuple[Changed, ...]
    cells: tuple[PastFacts, ...]
