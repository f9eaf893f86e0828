"""What a bisection is asked, what it saw, and what it found. Immutable, and the same in the log and in every report."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from bisect_env.matrix.cells import Condition, IndexChoice, Limits, ReproducerChoice
from bisect_env.snapshots.factors import Difference, Factor, Held
from bisect_env.snapshots.records import Snapshot
from bisect_env.verdicts.records import Interval

GOOD, BAD = "good", "bad"
"""The two levels of a factor. Along versions and commits a level is the version or the commit itself."""

Levels = tuple[tuple[str, str], ...]
"""One mixed environment: factors and their levels, sorted. What is not named is at ``good``.

A member of a group that was split is ``GROUP/MEMBER``."""


class Measure(StrEnum):
    """What of a trial is compared."""

    FAILURE = "failure"
    THROUGHPUT_BELOW = "throughput below"
    MEMORY_ABOVE = "memory above"


@dataclass(frozen=True)
class Question:
    """What makes a trial count as a failure."""

    measure: Measure = Measure.FAILURE
    threshold: float = 0.0
    """Tokens a second, or bytes; without meaning for FAILURE."""
    any_failure: bool = False
    """Every failure counts, whatever its signature."""
    signature: str | None = None
    """Only failures whose signature (as text) contains this count; None: the one that the bad end shows most often."""
    hang: str = "bad"
    """What a trial that hangs or runs into its time limit says: ``bad``, ``good`` or ``skip``."""


@dataclass(frozen=True)
class Budget:
    """What the whole bisection may cost, confirmation included. None: no limit."""

    trials: int | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Specification:
    """A bisection as it was asked for. Equal specifications and equal outcomes give equal findings."""

    good: Snapshot
    bad: Snapshot
    difference: Difference
    """Of the snapshots: distributions, Python, variables. Conditions are compared by the bisection itself."""
    condition_good: Condition
    condition_bad: Condition
    """How trials run on each side: what differs (``cache``, ``threads``, the reproducer's options) is a factor."""
    reproducer: ReproducerChoice
    question: Question = Question()
    confidence: float = 0.95
    budget: Budget = Budget()
    seed: int = 0
    find_fix: bool = False
    """``bad`` is the older side that fails and ``good`` the newer one that does not: the version that repaired it."""
    along: str | None = None
    """A distribution: no search over factors, only along its versions."""
    index: IndexChoice = field(default_factory=IndexChoice)
    as_of: str | None = None
    """As for a matrix: a date, or ``release``; what no snapshot pins is resolved as of then."""
    limits: Limits = field(default_factory=Limits)
    pass_env: tuple[str, ...] = ()
    at_once: int = 1
    """Trials side by side."""
    batch: int | None = None
    """Trials a batch; None: chosen by information per second."""
    confirm: int | None = None
    """Most confirming trials of each arm; None: by the failure rate that the search has seen."""
    commits: tuple[tuple[str, str], ...] = ()
    """Distribution and its source repository, a local clone or a git URL, where the commit is to be found too."""
    prereleases: bool = False
    """Whether pre-releases are candidates along versions."""
    without: tuple[str, ...] = ()
    """Distributions that no environment gets, although the snapshots have them: what this host cannot install."""
    base: str | None = None
    """Of a gate: the Python of an environment on which both sides stand, each with what differs laid over it."""
    prior_from_reading: bool = False
    """Whether versions that changed files of the failure's traceback weigh more in the search along versions."""
    parallel: int | None = 1
    """Batches that a search asks for at a time; None: as many as suit the executor. A log has the number, since its
    answers are those of so many."""


class Stage(StrEnum):
    """The parts of a bisection, in the order in which they can come."""

    ENDS = "ends"
    FACTORS = "factors"
    SPLIT = "split"
    VERSIONS = "versions"
    COMMITS = "commits"
    CONFIRM = "confirm"


@dataclass(frozen=True)
class Observation:
    """One batch of trials in one mixed environment, or why there could be none."""

    stage: Stage
    batch: int
    """Number of the batch within the bisection, from 0."""
    point: Levels
    cell_key: str
    environment: str
    """Address; empty when there is none."""
    failures: int = 0
    passes: int = 0
    other: int = 0
    """Trials that count for neither side: another signature, skipped by the reproducer."""
    skipped: str = ""
    """Why this point cannot be tested at all; empty when it could."""
    signatures: tuple[tuple[str, int], ...] = ()
    """Signature as text and in how many trials it was seen, in any thread, the question's own included."""
    build_seconds: float | None = None
    """None when nothing was built."""
    trial_seconds: float | None = None
    """Mean of one trial."""
    trials: tuple[str, ...] = ()
    """Ids in the store."""
    off_pin: bool = False
    """The mix overrides an exact pin between distributions."""
    built_in: float | None = None
    """Seconds that the environment took to build, whenever and for whatever that was; None where it is not known."""

    @property
    def counted(self) -> int:
        """Trials that count for one side or the other."""
        return self.failures + self.passes


class Answer(StrEnum):
    """The kind of a finding."""

    CULPRIT = "culprit"
    PAIR = "pair"
    """Two factors that only fail together."""
    RANGE = "range"
    """Versions that cannot be told apart, since those between cannot be tested."""
    NONE = "none"
    """Nothing that differs and can be changed here flips it; see what is held."""
    NOT_REPRODUCED = "not reproduced"
    """The bad end does not fail."""
    GOOD_FAILS = "good fails"
    """The good end fails as well."""
    INCONCLUSIVE = "inconclusive"
    """The budget ended first."""
    MISFIT = "misfit"
    """No single change, or pair, explains what was seen: it broke, was repaired, broke again."""
    NOTHING = "nothing to compare"
    """The two sides do not differ in anything that can be changed here."""


@dataclass(frozen=True)
class Arm:
    """Confirming trials of one environment, none of which the search has seen."""

    label: str
    """For people: ``good end with torch at bad``."""
    point: Levels
    fails: bool
    """Whether it should fail, if the finding is right."""
    rate: Interval
    environment: str


@dataclass(frozen=True)
class Confirmation:
    """Fresh trials with only the culprit flipped, interleaved. The only rates that a finding reports."""

    good: Interval
    """With the culprit at its good level, the rest as in :attr:`background`."""
    bad: Interval
    background: str
    """``bad`` or ``good``: where the rest was held."""
    p_value: float
    """One-sided, exact: a difference at least as large by chance alone, in both directions together."""
    arms: tuple[Arm, ...]
    """All of them, the other direction included."""
    confirmed: bool
    other: tuple[Interval, Interval] | None = None
    """The good and the bad rate with the rest at the other side, where both could be tested; ``p_value`` is of both
    directions together then."""


@dataclass(frozen=True)
class Eliminated:
    """A factor that was cleared, by what."""

    factor: str
    probability: float
    """Left of it."""
    evidence: str
    """In words: ``12 of 30 fail with it at its good level``."""


@dataclass(frozen=True)
class VersionRange:
    """Along a distribution: the last version that is good and the first that is bad."""

    distribution: str
    last_good: str
    first_bad: str
    candidates: tuple[str, ...]
    """Versions any of which may be the first bad one; one alone when all between could be tested."""
    background: str
    """``bad`` or ``good``: where everything else was held."""
    probability: float


@dataclass(frozen=True)
class ReadVersion:
    """What reading says of one version on a line."""

    version: str
    changed: tuple[str, ...] = ()
    """Of the traceback's files, those that are not as in the version before it, or that only one of the two has."""
    unread: str = ""
    """Why it could not be compared with the version before it; empty when it was."""


@dataclass(frozen=True)
class Reading:
    """Where along a line of versions the files of the failure's traceback changed."""

    distribution: str
    files: tuple[str, ...]
    """Of the distribution, that the traceback goes through: ``torch/_dynamo/eval_frame.py``."""
    versions: tuple[ReadVersion, ...]
    """From the one after the good end to the bad end: those that can be to blame."""


@dataclass(frozen=True)
class CommitRange:
    """As :class:`VersionRange`, along a repository's history (first parents)."""

    distribution: str
    repository: str
    last_good: str
    first_bad: str
    candidates: tuple[str, ...]
    subject: str
    """First line of the first bad commit's message."""
    probability: float


@dataclass(frozen=True)
class Link:
    """Something to read about the culprit."""

    label: str
    url: str


@dataclass(frozen=True)
class Finding:
    """The end of a bisection, or what is known so far."""

    id: str
    answer: Answer
    sentence: str
    probability: float
    """Of the answer, given the model; 0 when there is none."""
    factors: tuple[Factor, ...] = ()
    """Culprits: one, or two that only fail together."""
    suspects: tuple[tuple[str, float], ...] = ()
    """Every hypothesis of the last stage with its probability, the likeliest first; ``none of these`` among them."""
    versions: VersionRange | None = None
    commits: CommitRange | None = None
    signature: str | None = None
    confirmation: Confirmation | None = None
    eliminated: tuple[Eliminated, ...] = ()
    held: tuple[Held, ...] = ()
    """Differs, and cannot be changed here: not cleared."""
    skipped: tuple[tuple[str, str], ...] = ()
    """Point and why it could not be tested."""
    other_signatures: tuple[tuple[str, int], ...] = ()
    locks: tuple[str, str] | None = None
    """Good side and bad side of the smallest difference that still fails."""
    variables: tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]] = ((), ())
    """Environment variables of the two sides of that difference."""
    conditions: tuple[Condition, Condition] | None = None
    commands: tuple[str, str] | None = None
    """What reproduces the good side and the bad side, from the project's folder."""
    links: tuple[Link, ...] = ()
    notes: tuple[str, ...] = ()
    observations: tuple[Observation, ...] = ()
    trials: int = 0
    builds: int = 0
    seconds: float = 0.0
    second_versions: VersionRange | None = None
    """Of a pair, those of the other one, with the first one at the first bad version of :attr:`versions`."""
    perhaps_with: tuple[Factor, ...] = ()
    """The culprit is needed for certain, and perhaps one of these too: no mix that can be tested tells. They were at
    their bad level throughout."""
    tried: str = ""
    """How many of the versions, or commits, were tried, and what is assumed of the others, where there are any."""
    readings: tuple[Reading, ...] = ()
    """Of each line of versions that was read beforehand, where that was asked for."""


@dataclass(frozen=True)
class Unresolvable:
    """A mix that has no environment, known before anything is built."""

    point: Levels
    reason: str


@dataclass(frozen=True)
class Plan:
    """What a bisection would do, for ``--dry-run``: everything is resolved, nothing built or run."""

    factors: tuple[Factor, ...]
    held: tuple[Held, ...]
    mixes: int
    """Mixed environments that were resolved: both ends and every factor flipped alone, from either end."""
    unresolvable: tuple[Unresolvable, ...]
    trials: float
    """Mean of the search over factors, by simulation with a failure rate of 0.3 at the bad end."""
    trials_95: float
    """95th percentile of the same."""
    environments: float
    seconds: float | None
    """Expected, by what trials of this reproducer and builds took here; None where the store does not tell."""
    download_bytes: int | None
    versions: tuple[tuple[str, int], ...] = ()
    """Distribution and how many of its released versions lie between the two sides."""
    notes: tuple[str, ...] = ()
