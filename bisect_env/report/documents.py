"""What every JSON document holds, as types: the published schemas (docs/schema) are made from them.

The documents themselves are written elsewhere (``machine``, ``bisection_machine``, ``gate_machine``, ``difference``,
``history``); tests hold real ones against these types, so that neither can change alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bisect_env.bisection.records import Finding, Observation, Plan
from bisect_env.gate.records import Announcement, Decision, Line, Rules
from bisect_env.matrix.cells import Scalar
from bisect_env.report.history import Shift
from bisect_env.report.mitigations import Effect
from bisect_env.report.origin import Origin
from bisect_env.search.simulated_subsets import FactorWorld
from bisect_env.search.simulation import LineWorld
from bisect_env.snapshots.factors import Difference, Factor, Follower, Held
from bisect_env.trials.records import Outcome, Round, Side, Signature, Utilisation
from bisect_env.verdicts.records import Headline, Interval, Throughput, Verdict

One = Literal[1]
Levels = dict[str, str]
Condition = dict[str, Scalar]


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


@dataclass(frozen=True, kw_only=True)
class Search:
    """How the search was asked."""

    confidence: float
    batch: int | Literal["auto"]
    seed: int


@dataclass(frozen=True, kw_only=True)
class LineOptions(LineWorld, Search):
    """Versions in order, one of them to blame."""


@dataclass(frozen=True, kw_only=True)
class FactorOptions(FactorWorld, Search):
    """Things that differ at once, one or two of them to blame."""


@dataclass(frozen=True)
class SimulateDocument:
    """`bisect-env simulate --json`: what to expect of a bisection in a world that is known. Shares are of all runs."""

    schema: One
    runs: int
    mean_trials: float
    p95_trials: float
    """95 of 100 bisections take no more."""
    mean_environments: float
    mean_seconds: float
    wrong: float
    wrong_low: float
    wrong_high: float
    undecided: float
    stated: float
    """Mean probability that the answers were given."""
    world: LineOptions | FactorOptions


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


DOCUMENTS: dict[str, type] = {
    "matrix": MatrixDocument,
    "bisect": BisectDocument,
    "bisect-plan": BisectPlanDocument,
    "gate": GateDocument,
    "diff": DiffDocument,
    "simulate": SimulateDocument,
    "history": HistoryDocument,
}
"""Each document by the name of its schema."""
