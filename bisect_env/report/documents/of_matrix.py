"""The document of a matrix: cells with their trials, mitigations and caches."""

from __future__ import annotations

from dataclasses import dataclass

from bisect_env.report.documents.words import Condition, Levels, One
from bisect_env.report.mitigations import Effect
from bisect_env.report.origin import Origin
from bisect_env.trials.records import Outcome, Round, Side, Signature, Utilisation
from bisect_env.verdicts.records import Headline, Interval, Throughput, Verdict


@dataclass(frozen=True, kw_only=True)
class CellVerdict(Verdict):
    """A cell's verdict with every figure that it rests on."""

    text: str = ""
    """The verdict as tables show it, ``RACE 5/6``."""


@dataclass(frozen=True)
class EnvironmentFacts:
    """What an environment is built from."""

    address: str
    lock_sha256: str
    python: str
    platform: str
    cuda: str | None
    pins: dict[str, str]
    """Name and version of each distribution of the lock."""
    base_manifest: str | None
    marks: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class TrialFacts:
    """One trial, without its output and tracebacks, which ``bisect-env show ID`` prints."""

    id: str
    side: Side
    block: int
    seed: int
    outcome: Outcome
    signature: Signature | None
    """Of its first failure."""
    tokens_per_second: float | None
    rounds: tuple[Round, ...]
    utilisation: tuple[Utilisation, ...]
    exposures: int | None
    peak_bytes: int | None
    resets: int
    phase: str
    only_repeat: int | None
    at_once: int
    started: float
    """Unix time."""
    seconds: float
    message: str


@dataclass(frozen=True)
class GpuFacts:
    """A kind of GPU."""

    model: str
    driver: str


@dataclass(frozen=True)
class ElsewhereFacts:
    """Trials of a cell on another GPU model or driver than it is measured on: kept, and not counted."""

    hardware: tuple[GpuFacts, ...]
    trials: tuple[str, ...]
    """Their ids."""


@dataclass(frozen=True)
class MatrixFacts:
    """What all cells have in common."""

    name: str
    axes: tuple[str, ...]
    reproducer: str
    trials: int
    """Threaded trials planned for each cell."""
    controls: int
    solo: int
    stop_early: bool
    at_once: int
    reference: Levels
    slow_below: float
    max_race_rate: float
    notes: tuple[str, ...]


@dataclass(frozen=True)
class CellFacts:
    """One combination of levels."""

    id: str
    key: str
    show: str
    """What ``bisect-env show`` takes, and tables have."""
    levels: Levels
    tags: tuple[str, ...]
    condition: Condition
    variables: tuple[str, ...]
    """Names of the environment variables of its trials, without the values."""
    requirements: tuple[str, ...]
    recommended: bool
    """At full throughput, and its race rate is shown to be at most ``max_race_rate``."""
    verdict: CellVerdict
    environment: EnvironmentFacts | None
    versions: dict[str, str]
    """As imported."""
    trials: tuple[TrialFacts, ...]
    """On what the cell is measured on."""
    hardware: tuple[GpuFacts, ...]
    """What that is; empty where its trials ran on no GPU, and where there are none."""
    elsewhere: tuple[ElsewhereFacts, ...]


@dataclass(frozen=True)
class MitigatedFacts:
    """One mitigation of one cell, beside the cell without."""

    cell: str
    mitigation: str
    effect: Effect
    dense: bool
    failed: Interval | None
    bound: float | None
    """One-sided 95 % upper bound of that rate."""
    p_value: float | None
    throughput: Throughput | None
    """Its ratio is that to the cell without a mitigation."""


@dataclass(frozen=True)
class MitigationFacts:
    """A cell without a mitigation, and its twins with one."""

    none: str
    headline: Headline
    failed: Interval | None
    mitigated: tuple[MitigatedFacts, ...]


@dataclass(frozen=True)
class CacheFacts:
    """One state of the compile cache of one cell."""

    cell: str
    cache: str
    failed: Interval | None
    hits: float | None
    misses: float | None


@dataclass(frozen=True)
class MatrixDocument:
    """`bisect-env matrix --json` and `bisect-env report --json`: every cell with its verdict and its trials."""

    schema: One
    matrix: MatrixFacts
    measured: Origin | None
    """Where and when: of `report`, null of `matrix`."""
    summary: str
    cells: tuple[CellFacts, ...]
    mitigations: tuple[MitigationFacts, ...]
    caches: tuple[tuple[CacheFacts, ...], ...]
