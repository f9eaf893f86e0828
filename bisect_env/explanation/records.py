"""What a witnessed trial shows: events, windows of shared state, collisions, hypotheses."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """A piece of process-global compile state, or a place that depends on it."""

    TRACING = "fx-tracing"
    """The flag that FX is tracing: process-global up to torch 2.13, a thread's own from 2.14."""
    COMPILING = "compiling"
    """The flag behind ``torch.compiler.is_compiling()``."""
    TRACE = "trace"
    """A run of ``Tracer.trace``: enter and leave."""
    COMPILE = "compile"
    """A compile by dynamo, forward or lazy backward: enter and leave; the value says which."""
    LOCK = "compile-lock"
    """Dynamo's lock: wait, acquire, release."""
    CONFIG = "dynamo-config"
    """A value of dynamo's configuration as a thread sees it: ``recompile_limit=8``."""
    RECOMPILE_LIMIT = "recompile-limit"
    """A thread hit it: the call runs eagerly from then on."""
    ANNOTATION = "fx-annotation"
    """FX traceback annotations: enter and leave of the functions that change them; read: a thread took one onto what it
    traced that it had not written; obeyed: inductor ran such a node eagerly for it."""
    PATCHER = "fx-patcher"
    """What a trace patches for its time, on one stack for all threads: enter and leave."""
    METRICS = "compile-metrics"
    """What dynamo counts of a compile, in one place for all threads up to torch 2.9: enter and leave."""
    KERNEL = "kernel-load"
    """Inductor loads, tunes or unloads a kernel, or launches one that is not loaded."""
    BACKWARD = "backward"
    """Autograd runs a compiled function's backward, in whatever thread."""
    UNFUSED = "unfused-attention"
    """A call of the eager, dense attention."""
    STANDING = "standing"
    """Where a thread stood while another one waited long for the compile lock."""
    UNCAUGHT = "uncaught-exception"
    """An exception that ended a thread: its type and first line, and behind `` <- `` those of what it came from."""


class Action(StrEnum):
    """What a thread did with it."""

    SET = "set"
    CLEAR = "clear"
    READ = "read"
    """Read as set, or with a value that differs from the thread's last one; other reads are only counted."""
    OBEYED = "obeyed"
    """What was read decided: the call raised, or took another path. The value says which."""
    ENTER = "enter"
    LEAVE = "leave"
    WAIT = "wait"
    ACQUIRE = "acquire"
    RELEASE = "release"
    CALL = "call"
    SEEN = "seen"
    """From outside, by the witness's own thread."""
    RAISED = "raised"
    """Of an exception that nothing caught, with the stack from where it was raised (of its cause, where it has one)."""


@dataclass(frozen=True)
class Frame:
    """One frame of a short stack, the innermost first."""

    path: str
    """``torch/_dynamo/eval_frame.py``; the last parts of the path for files outside libraries."""
    line: int
    function: str


@dataclass(frozen=True)
class Event:
    """One thing that a thread did."""

    t: float
    """Unix time, from one monotonic clock for all threads."""
    thread: str
    state: State
    action: Action
    value: str = ""
    stack: tuple[Frame, ...] = ()


@dataclass(frozen=True)
class Watched:
    """A piece of state as it was found in the torch at hand."""

    state: State
    where: str
    """``torch/fx/_symbolic_trace.py: _is_fx_tracing_flag``."""
    how: str
    """How it is watched, in a few words."""


@dataclass(frozen=True)
class Unknown:
    """A piece of state that could not be watched."""

    state: State
    why: str


@dataclass(frozen=True)
class WitnessLog:
    """All that one process's witness wrote."""

    torch: str
    python: str
    started: float
    """Unix time."""
    threads: tuple[str, ...]
    """In the order of their first event."""
    watched: tuple[Watched, ...]
    unknown: tuple[Unknown, ...]
    events: tuple[Event, ...]
    """By time."""
    counts: tuple[tuple[str, State, Action, int], ...] = ()
    """Per thread: things that happened and are not in ``events``."""
    dropped: int = 0
    """Events that no room was left for."""
    complete: bool = True
    """False when the process ended without closing it: what was flushed last may be missing."""


@dataclass(frozen=True)
class Window:
    """A time in which one thread had a state set, a trace or a compile open, or the lock held."""

    state: State
    thread: str
    start: float
    end: float | None
    """None: never closed."""
    opened: Event
    closed: Event | None


class Mechanism(StrEnum):
    """What a collision is."""

    FOREIGN_TRACE = "another thread's trace"
    """A call was taken for one under FX tracing, since another thread traced."""
    FOREIGN_BACKWARD = "another thread's lazy backward"
    """The same, and the trace was that of a backward compiled on its first use."""
    STUCK_FLAG = "a tracing flag that stays set"
    """No trace is open any more, and the flag is still set: every later call is taken for one under tracing."""
    FOREIGN_COMPILE = "another thread's compile"
    """``is_compiling()`` was true in a thread that compiled nothing: it took the path meant for compiling."""
    LOCK_CYCLE = "threads waiting for each other"
    RECOMPILE_LIMIT = "a recompile limit"
    """Of the process, or the thread's own where its configuration is."""
    ANNOTATION = "another thread's annotations"
    PATCHER = "another thread's patches"
    """Torch ended a trace while that of another thread, begun later, had not: it took the other one's patches back."""
    METRICS = "another thread's metrics"
    """What dynamo counts of two threads' compiles went into one place, which takes each value once."""
    KERNEL = "a kernel that another thread was loading, tuning or unloading"
    UNKNOWN = "none of the known ones"


class Consequence(StrEnum):
    """What came of it."""

    FAILED = "the call failed"
    EAGER = "the call ran eagerly"
    HUNG = "the threads stood still"


@dataclass(frozen=True)
class Collision:
    """Thread A left something set, thread B met it."""

    mechanism: Mechanism
    consequence: Consequence
    victim: str
    """Thread."""
    met: Event | None
    """What the victim read or did, or a thread that did it for it: autograd's, or the one whose graph it called."""
    culprit: str
    """Thread; empty when none could be named."""
    window: Window | None
    """Of the culprit, open when the victim met it, or what it had left behind."""
    at: float
    """Unix time of the consequence."""
    message: str = ""
    """The failure's first line."""
    count: int = 1
    """Calls that went the same way in this trial."""
    obeyed: Event | None = None
    """Where what was met decided only later, and maybe in another thread: that moment."""


class Standing(StrEnum):
    """Of a hypothesis."""

    KEPT = "kept"
    ELIMINATED = "eliminated"
    UNDECIDED = "undecided"
    """Tested, and the evidence goes both ways or is too little."""
    UNTESTED = "untested"
    """The torch at hand has no such state, or nothing would have shown it."""


@dataclass(frozen=True)
class Hypothesis:
    """One possible explanation and what became of it."""

    name: str
    statement: str
    standing: Standing
    evidence: tuple[str, ...]
    """Sentences with counts; a null result says how much was looked at."""


@dataclass(frozen=True)
class Account:
    """One witnessed trial explained."""

    trial: str
    """Id."""
    outcome: str
    log: WitnessLog | None
    """None: the witness did not start."""
    windows: tuple[Window, ...]
    collisions: tuple[Collision, ...]
    """The first is the one that explains the outcome."""
    sentences: tuple[str, ...]
    """The account in words: thread A set X at t1 from ..., thread B read it at t2 in ..., the call failed."""


@dataclass(frozen=True)
class Explanation:
    """Why a cell fails."""

    cell: str
    environment: str
    """Address."""
    accounts: tuple[Account, ...]
    hypotheses: tuple[Hypothesis, ...]
    failed: int
    """Witnessed trials that failed, hung, or ran dense."""
    plain_failed: int
    plain: int
    """Trials of the same condition without a witness, from the store."""
    vanished: str = ""
    """A sentence, when the failure is rarer under the witness than chance explains."""
    cost: str = ""
    """A sentence: what the witness cost here."""
    notes: tuple[str, ...] = ()
