"""The documents of what a command would do, made before it does anything."""

from __future__ import annotations

from dataclasses import dataclass

from bisect_env.environments.records import Unavailable
from bisect_env.explanation.planned import Planned
from bisect_env.inspection.facts import Facts
from bisect_env.inspection.inspected import Cost
from bisect_env.report.documents.words import Levels, One


@dataclass(frozen=True)
class PlannedCell:
    """One combination of levels, and what is left to do of it."""

    id: str
    key: str
    show: str
    """What ``bisect-env show`` takes, and tables have."""
    levels: Levels
    unavailable: Unavailable | None
    """Why it has no environment; null: it has one, or one can be built."""
    address: str | None
    """Of its environment."""
    built: bool
    pins: dict[str, str] | None
    """Name and version of each distribution of its environment."""
    download_bytes: int | None
    """That an empty cache fetches for it; null: the index does not tell."""
    trials: int
    """To run; where racing cells stop early, at most."""
    seconds_per_trial: float | None
    """Median of those that are stored."""


@dataclass(frozen=True)
class MatrixRun:
    """What a run of the matrix would do."""

    cells: tuple[PlannedCell, ...]
    environments: int
    """To build."""
    download_bytes: int
    """Up to, less what uv has cached."""
    disk_bytes: int
    """That building takes at most."""
    free_bytes: int
    trials: int
    """To run; with ``stop_early`` at most."""
    stop_early: bool
    seconds: float | None
    """Of all its trials, by those that are stored; null: there are none yet."""


@dataclass(frozen=True, kw_only=True)
class TorchFacts(Facts):
    """One torch, with what threads of a process share in it. Of what is not known, ``scope`` is null."""

    cells: tuple[str, ...]
    """Ids of those that would get it."""
    levels: str | None
    """What they have in common and no other cell has, ``torch=2.11.0``; null where no levels tell them apart."""
    torch: str | None
    """Its version, without the variant where the cells have several; null where it is not known."""


@dataclass(frozen=True)
class StaticFacts:
    """What the torch of each cell shares between threads, read from its source."""

    torches: tuple[TorchFacts, ...]
    cost: Cost


@dataclass(frozen=True)
class MatrixPlanDocument:
    """`bisect-env matrix --dry-run --json` and `matrix --static --json`: what can be told before anything is built."""

    schema: One
    matrix: str
    run: MatrixRun | None
    """Of `--dry-run`, else null."""
    static: StaticFacts | None
    """Of `--static`, else null."""


@dataclass(frozen=True, kw_only=True)
class ExplainPlanDocument(Planned):
    """`bisect-env explain --dry-run --json`: what an explanation would do."""

    schema: One
