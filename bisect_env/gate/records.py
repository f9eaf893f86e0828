"""What a gate is asked, what it announces beforehand, and what it answers. Immutable, and the same in every report."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bisect_env.environments.records import Lock
from bisect_env.matrix.cells import Cell
from bisect_env.snapshots.factors import Difference
from bisect_env.snapshots.records import Snapshot
from bisect_env.store.trials import StoredTrial
from bisect_env.verdicts.records import Verdict

BASELINE, CANDIDATE = "baseline", "candidate"


class Question(StrEnum):
    """What is asked of a candidate; the value is the word in tables, the order that of the table."""

    ENVIRONMENT = "environment"
    RACES = "races"
    THROUGHPUT = "throughput"
    MEMORY = "memory"
    ATTENTION = "attention"
    NUMBERS = "numbers"


class Decision(StrEnum):
    """The answer to one question, or to all together."""

    PASS = "pass"  # noqa: S105 (no password)
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    NOT_ASKED = "not asked"
    """The reproducer does not report it, or there is no GPU: listed with the reason, neither for nor against."""


@dataclass(frozen=True)
class Rules:
    """What was fixed before the run."""

    max_race_rate: float = 0.05
    """The candidate passes when its rate of bad trials (failed, hung, out of memory) is shown to be below this."""
    confidence: float = 0.95
    """Of every question by itself: a false pass, and a false fail, has at most the rest of 1."""
    no_worse: float | None = None
    """Margin: ask instead whether the candidate's rate exceeds the baseline's by more than this. None: not asked."""
    min_throughput: float = 0.97
    """Least ratio of the candidate's tokens a second to the baseline's."""
    max_memory: float = 1.05
    """Highest ratio of the candidate's peak bytes to the baseline's."""
    trials: int | None = None
    """Threaded trials of the candidate; None: the fewest that can pass. More of them allow for some bad ones."""
    budget_seconds: float | None = None
    """Time for the whole gate; None: no limit."""
    pairs: int | None = None
    """Pairs of timed rounds; None: as many as the noise at the start asks for."""

    def __post_init__(self) -> None:
        if not (0 < self.max_race_rate < 1 and 0.5 <= self.confidence < 1):
            raise ValueError(f"not a rate or confidence within 0 to 1: {self.max_race_rate}, {self.confidence}")
        if self.no_worse is not None and not 0 < self.no_worse < 1:
            raise ValueError(f"a margin between two rates is above 0 and below 1, not {self.no_worse}")
        if not (0 < self.min_throughput < 1 and self.max_memory >= 1):
            raise ValueError(
                f"a candidate equal to the baseline could not pass: throughput at least {self.min_throughput}, "
                f"memory at most {self.max_memory}"
            )
        if min(self.trials or 1, self.pairs or 1) < 1 or 0 in (self.trials, self.pairs):
            raise ValueError(f"{self.trials} trials and {self.pairs} pairs measure nothing")


@dataclass(frozen=True)
class Chance:
    """A candidate whose trials go wrong at this rate passes the race question with this probability."""

    rate: float
    passes: float
    fails: float = 0.0


@dataclass(frozen=True)
class Announcement:
    """What is said before the first trial."""

    clean_trials: int
    """Fewest clean trials of the candidate that pass the race question, whatever was asked for."""
    blocks: int
    """Blocks to be run; each has one threaded trial of the candidate."""
    chances: tuple[Chance, ...]
    pairs: int | None
    """Pairs of timed rounds to begin with; None: throughput is not asked."""
    seconds: float | None
    """How long trials and pairs take, as far as known; None: not known yet."""
    within_budget: tuple[Question, ...]
    """Questions that can be decided within the budget; all that are asked where there is none."""
    sentences: tuple[str, ...]
    baseline_trials: int = 0
    """Threaded trials of the baseline; 0: none are needed."""
    allowed: int = 0
    """Bad trials of the candidate with which it still passes."""
    fails_at: int = 0
    """Bad trials of the candidate that make it fail, whenever they are reached; 0: the margin's test decides."""
    most_pairs: int | None = None
    """Pairs at most, whatever the noise."""


@dataclass(frozen=True)
class Line:
    """The answer to one question."""

    question: Question
    decision: Decision
    sentence: str
    baseline: str
    """The baseline's figure as text; empty: none."""
    candidate: str
    figures: tuple[tuple[str, float], ...] = ()
    """Every figure that the decision rests on, by name."""
    more: str = ""
    """A sentence: what it would take to decide; empty when it is decided."""
    trials: tuple[str, ...] = ()
    """Ids of the trials that are the evidence."""


@dataclass(frozen=True)
class SideFacts:
    """One of the two environments with everything measured in it."""

    name: str
    """``baseline`` or ``candidate``."""
    snapshot: Snapshot
    cell: Cell
    lock: Lock | None
    """None: it does not resolve; the verdict says why."""
    address: str
    verdict: Verdict | None
    samples: tuple[StoredTrial, ...]


@dataclass(frozen=True)
class GateResult:
    """A whole gate, finished or not."""

    id: str
    decision: Decision
    lines: tuple[Line, ...]
    """In the order of the questions."""
    difference: Difference
    announcement: Announcement
    rules: Rules
    baseline: SideFacts
    candidate: SideFacts
    bisect_command: str = ""
    """Finds what made it fail; empty when it did not."""
    notes: tuple[str, ...] = ()
    trials: int = 0
    builds: int = 0
    seconds: float = 0.0
