"""The records of a trial: what was asked, and everything that was seen."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from bisect_env.matrix.cells import Condition, Limits


class Side(StrEnum):
    """Which comparison a trial serves."""

    THREADS = "threads"
    """The threads of the condition, at the same time."""
    SERIAL = "serial"
    """Control: all threads' work, in turn, in one worker thread."""
    SOLO = "solo"
    """Control: one thread's work, in one worker thread."""
    PROFILE = "profile"
    """As THREADS, under the profiler; read for the attention path only, never counted."""
    WARMUP = "warmup"
    """As SERIAL; fills a compile cache, never counted."""
    ROUNDS = "rounds"
    """As THREADS, but read for throughput only: it times rounds in turn with other cells' processes."""
    WITNESS = "witness"
    """As THREADS, with a witness in its process; read for what its threads did, never counted."""

    @property
    def told(self) -> str:
        """What the reproducer is told: under a witness it does what it always does."""
        return Side.THREADS.value if self is Side.WITNESS else self.value


class Outcome(StrEnum):
    """What one trial showed."""

    CLEAN = "clean"
    FAILED = "failed"
    HANG = "hang"
    OOM = "oom"
    WRONG = "wrong"
    IMPORT_FAILED = "import-failed"
    SKIPPED = "skipped"
    """The reproducer said that it cannot run here (exit 125)."""
    INFRA = "infra"
    """Says nothing about the cell; retried, never counted."""


@dataclass(frozen=True)
class Signature:
    """The normalised identity of a failure. Two failures with equal signatures are the same fault."""

    type: str
    """Exception type, ``SIGSEGV`` and the like, or ``exit N`` for a command without the protocol."""
    template: str
    """Message with its volatile parts (addresses, paths, numbers that move, shapes) replaced."""
    module: str
    """Library module it was raised in, ``torch._dynamo.eval_frame``; empty when unknown."""

    def __str__(self) -> str:
        return f"{self.type}: {self.template}" if self.template else self.type


@dataclass(frozen=True)
class Failure:
    """One thread's failure."""

    thread: str
    signature: Signature
    message: str
    """As raised, cut to a few kilobytes."""
    where: str
    """Function and line, shown and never compared."""
    traceback: str
    t: float
    """Unix time."""


@dataclass(frozen=True)
class PathCount:
    """How one thread's attention ran after that thread's first completed call of a shape.

    ``signs`` maps the name of an independent sign (``math_attention``, ``library_choice``, ``kernels``, ``memory``,
    ``counters``) to the number of calls it saw unfused; a sign that was not available is absent, not 0.
    """

    thread: str
    calls: int
    signs: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class StepTime:
    """Warm work of one thread: ``tokens`` in ``seconds`` that ended at ``t`` (unix time)."""

    thread: str
    tokens: int
    seconds: float
    t: float
    warm: bool


@dataclass(frozen=True)
class Round:
    """One timed round of a ROUNDS trial: all threads began and ended it together, devices synchronised."""

    index: int
    """From 0; the same number in the processes that took turns with this one."""
    tokens: int
    """Of all threads."""
    seconds: float
    t: float
    """Unix time of its end."""


@dataclass(frozen=True)
class Utilisation:
    """Counted operations against what the device can do."""

    what: str
    """``attention`` (forward and backward of one layer, alone on the device) or ``step`` (a timed round's work)."""
    operations: float
    """Floating-point operations, counted from the sparse mask: 2 a multiply-add."""
    seconds: float
    ceiling: float
    """Operations a second of a large matrix product in the same process, on random data of the same type."""

    @property
    def share(self) -> float:
        """Share of the ceiling."""
        return self.operations / self.seconds / self.ceiling


@dataclass(frozen=True)
class Device:
    """A GPU as leased for a trial."""

    uuid: str
    name: str
    index: int
    memory_bytes: int
    driver: str


@dataclass(frozen=True)
class Reproducer:
    """A reproducer ready to run.

    ``command`` is the argument list; its first word ``python`` stands for the environment's interpreter. A shipped
    reproducer runs where it lies, a user's files are copied into the trial's folder.
    """

    name: str
    command: tuple[str, ...]
    files: tuple[Path, ...]
    content_hash: str
    protocol: bool
    fail_pattern: str | None = None
    skip_pattern: str | None = None


@dataclass(frozen=True)
class TrialSpec:
    """All that one trial needs."""

    id: str
    environment: str
    """Address of the environment."""
    python: Path
    """Interpreter in it."""
    pycache: Path
    """Folder for byte code (``PYTHONPYCACHEPREFIX``), so that the environment itself is never written to."""
    reproducer: Reproducer
    condition: Condition
    side: Side
    seed: int
    folder: Path
    """The trial's own folder, created by the runner: home, tmp, caches, events, output."""
    limits: Limits
    silence: float
    """Seconds without an event after which it hangs."""
    variables: tuple[tuple[str, str], ...] = ()
    pass_env: tuple[str, ...] = ()
    devices: tuple[Device, ...] = ()
    cores: tuple[int, ...] = ()
    """CPU cores it is bound to; empty: all that the parent has."""
    warm_cache: Path | None = None
    """Prepared compile cache, copied into the trial's folder before the start."""
    only_repeat: int | None = None
    """Do this repeat of the condition's ``repeats`` alone, without a reset before it; None: all of them."""
    turns: Path | None = None
    """Folder in which a ROUNDS trial is told to begin a round (``BISECT_ENV_TURNS``)."""
    at_once: int = 1
    """Trials that run side by side with this one, itself included, at most."""


@dataclass(frozen=True)
class TrialRecord:
    """One trial with its evidence: what the store keeps and what the verdicts read."""

    id: str
    environment: str
    reproducer: str
    """Content hash."""
    condition: Condition
    side: Side
    seed: int
    outcome: Outcome
    failures: tuple[Failure, ...] = ()
    """All threads', earliest first; the first is the primary one."""
    paths: tuple[PathCount, ...] = ()
    steps: tuple[StepTime, ...] = ()
    peak_bytes: int | None = None
    predicted_bytes: tuple[tuple[str, int], ...] = ()
    """Peak memory predicted for ``fused`` and for ``dense``, where the reproducer can."""
    losses: tuple[tuple[str, tuple[float, ...]], ...] = ()
    """Thread name and its losses, to compare sides run with the same seed."""
    numbers: tuple[tuple[str, float, float], ...] = ()
    """What was checked, its relative error, and the tolerance."""
    versions: tuple[tuple[str, str], ...] = ()
    """As imported: torch, torch.version.cuda, triton, transformers, driver, python."""
    exposures: int | None = None
    """Calls made while another thread was compiling."""
    cache_hits: int | None = None
    cache_misses: int | None = None
    windows: int = 0
    longest_silence: float = 0.0
    """Seconds between two events, or between the last one and the end."""
    started: float = 0.0
    seconds: float = 0.0
    exit_status: int | None = None
    """As the process left it; negative for a signal; None when it was killed for a hang."""
    message: str = ""
    """Why it hung, was skipped, or is infrastructure; empty for the others."""
    stacks: str = ""
    """Thread stacks and CPU times taken before a hung process was killed."""
    hang_kind: str = ""
    """``deadlock``, ``spin`` or ``slow compile``; empty when it did not hang."""
    output: str = ""
    """Captured standard output and error, the middle cut out when long."""
    devices: tuple[Device, ...] = ()
    host: tuple[tuple[str, str], ...] = ()
    """Host facts round the trial: load, clocks, throttling, temperature, ECC, other processes on the GPU."""
    environment_variables: tuple[tuple[str, str], ...] = ()
    """What the trial got."""
    withheld: tuple[str, ...] = ()
    """Names of the parent's variables that it did not get and that could have mattered."""
    cores: tuple[int, ...] = ()
    extra: tuple[tuple[str, str], ...] = field(default=())
    """Anything else the reproducer said, by name."""
    aborted: bool = False
    """True for an INFRA that trying again cannot change: the command asked to abort, or cannot be started."""

    rounds: tuple[Round, ...] = ()
    """Of a ROUNDS trial."""
    utilisation: tuple[Utilisation, ...] = ()
    resets: int = 0
    """Times the compiled state had been reset in the process when it ended or first failed."""
    phase: str = ""
    """Part of the work that the first failing thread was in, as the reproducer calls it."""
    only_repeat: int | None = None
    """As asked for: set in the fresh process that decides about a failure seen after a reset."""
    at_once: int = 1
    """Trials side by side at most; more than 1: its step times say nothing of throughput."""
    witness: str = ""
    """The witness's log of a WITNESS trial, thinned out when long; empty when the witness did not start."""

    @property
    def undecided(self) -> bool:
        """Whether it went wrong only after a reset inside the process: kept and never counted.

        The trial that does this repeat alone in a fresh process (``only_repeat``) decides, in the same place.
        """
        passed = (Outcome.CLEAN, Outcome.SKIPPED, Outcome.INFRA)
        return self.resets > 0 and self.only_repeat is None and self.outcome not in passed

    @property
    def tokens_per_second(self) -> float | None:
        """Warm tokens of all threads over the time from the first warm step's start to the last one's end."""
        warm = [step for step in self.steps if step.warm]
        if not warm:
            return None
        start = min(step.t - step.seconds for step in warm)
        elapsed = max(step.t for step in warm) - start
        return sum(step.tokens for step in warm) / elapsed if elapsed > 0 else None
