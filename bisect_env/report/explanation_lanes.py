"""What a picture of a witnessed trial shows: a lane for each thread, windows as bars, what was read as marks.

Text and HTML draw the same lanes; neither knows of the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from bisect_env.explanation.records import Account, Action, Collision, Event, State, Window
from bisect_env.explanation.windows import FLAGS
from bisect_env.report.explanation_words import begin

AROUND = 0.3
"""Of the time between the window's opening and the collision: shown before the one and after the other."""
CLOSE = 3.0
"""What came of it, and the window's closing, are shown where they come within so many times that time after it."""
ALONE = 0.02
"""Of the whole trial: shown before what no window explains."""
LEAST = 200e-6
"""Seconds that a picture shows at least."""


class Kind(StrEnum):
    """What a row of a lane shows. The names are short: they stand beside the row."""

    BACKWARD = "backward"
    WAIT = "waits"
    LOCK = "lock"
    COMPILE = "compile"
    COMPILING = "compiling"
    TRACE = "trace"
    TRACING = "flag"
    ANNOTATION = "annotates"
    PATCHER = "patches"
    METRICS = "metrics"
    KERNEL = "kernel"
    UNFUSED = "unfused"
    LEFT = "left"
    OTHER = "other"


MEANING = {
    Kind.BACKWARD: "runs a compiled backward",
    Kind.WAIT: "waits for the compile lock",
    Kind.LOCK: "holds the compile lock",
    Kind.COMPILE: "compiles",
    Kind.COMPILING: "is_compiling() is true",
    Kind.TRACE: "traces",
    Kind.TRACING: "has the FX tracing flag set",
    Kind.ANNOTATION: "has FX annotations open",
    Kind.PATCHER: "has a trace's patches on",
    Kind.METRICS: "counts metrics of a compile",
    Kind.KERNEL: "loads or tunes a kernel",
    Kind.UNFUSED: "runs unfused attention",
    Kind.LEFT: "what it left behind is there",
    Kind.OTHER: "has another piece of state set",
}
KINDS = {
    State.BACKWARD: Kind.BACKWARD,
    State.LOCK: Kind.LOCK,
    State.COMPILE: Kind.COMPILE,
    State.COMPILING: Kind.COMPILING,
    State.TRACE: Kind.TRACE,
    State.TRACING: Kind.TRACING,
    State.ANNOTATION: Kind.ANNOTATION,
    State.PATCHER: Kind.PATCHER,
    State.METRICS: Kind.METRICS,
    State.KERNEL: Kind.KERNEL,
    State.UNFUSED: Kind.UNFUSED,
}


class Sign(StrEnum):
    """What a mark stands for."""

    FAILED = "the call failed"
    EAGER = "the call ran eagerly"
    HUNG = "the thread stood still"
    OBEYED = "obeyed what was read"
    CALL = "called"
    READ = "read"


@dataclass(frozen=True)
class Bar:
    """One stretch of time in one row."""

    start: float
    end: float | None
    """Unix times. None: never ended."""
    value: str = ""
    culprit: bool = False
    """It is the window that the collision is about."""
    count: int = 1
    """Windows that it stands for."""


@dataclass(frozen=True)
class Row:
    """All bars of one kind in one thread."""

    kind: Kind
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class Mark:
    """One moment."""

    t: float
    sign: Sign
    text: str
    """Which state, with the value."""
    count: int = 1
    hit: bool = False
    """It is what the collision is about: what the victim met, or what came of it."""


@dataclass(frozen=True)
class Lane:
    """One thread."""

    thread: str
    rows: tuple[Row, ...]
    marks: tuple[Mark, ...]


@dataclass(frozen=True)
class Span:
    """A stretch of time, in Unix times."""

    start: float
    end: float

    def meets(self, start: float, end: float | None) -> bool:
        """Whether something lies in it, be it in part."""
        return start <= self.end and (end is None or end >= self.start)


def whole(account: Account) -> Span:
    """From the first to the last thing that is known."""
    known = [event.t for event in account.log.events] if account.log is not None else []
    known += [each for window in account.windows for each in (window.start, window.end) if each is not None]
    known += [collision.at for collision in account.collisions]
    start = min(known, default=begin(account))
    return Span(start, max([start + LEAST, *known]))


def around(account: Account, collision: Collision) -> Span:
    """From a little before the culprit's window opened to a little after what came of it."""
    window, at, every = collision.window, instant(collision), whole(account)
    first = min(at, window.start) if window is not None else at - ALONE * (every.end - every.start)
    length = max(at - first, LEAST)
    # What comes much later (a hang is only found after a time) would press all the rest into one point.
    later = [collision.at, *([window.end] if window is not None and window.end is not None else [])]
    last = max([at, *(each for each in later if each <= at + CLOSE * length)])
    room = max(AROUND * (last - first), LEAST / 2)
    return Span(max(every.start, first - room), last + room)


def instant(collision: Collision) -> float:
    """Unix time at which the two threads met."""
    return collision.met.t if collision.met is not None else collision.at


def met_by(collision: Collision) -> str:
    """The thread that met it: the victim, or one that worked for it, as autograd's do."""
    return collision.met.thread if collision.met is not None else collision.victim


def lanes(account: Account, span: Span, collision: Collision | None) -> tuple[Lane, ...]:
    """Every thread that did something in that time.

    First the two of the collision, then in the order in which the trial's threads first did something.
    """
    bars = _bars(account, span, collision)
    marks = _marks(account, span, collision)
    first = [] if collision is None else [collision.culprit, met_by(collision), collision.victim]
    order = list(account.log.threads) if account.log is not None else []
    threads = dict.fromkeys([*first, *order, *bars, *marks])
    return tuple(
        Lane(
            thread,
            tuple(Row(kind, tuple(bars[thread][kind])) for kind in Kind if kind in bars.get(thread, {})),
            tuple(sorted(marks.get(thread, ()), key=lambda mark: mark.t)),
        )
        for thread in threads
        if thread in bars or thread in marks
    )


def _bars(account: Account, span: Span, collision: Collision | None) -> dict[str, dict[Kind, list[Bar]]]:
    found: dict[str, dict[Kind, list[Bar]]] = {}
    culprit = collision.window if collision is not None else None
    windows: Iterable[Window] = account.windows
    if culprit is not None and culprit not in account.windows:
        windows = (*account.windows, culprit)
    met = collision.met.t if collision is not None and collision.met is not None else None
    for window in windows:
        over = window == culprit and window.end is not None and met is not None and window.end < met
        kind = Kind.LEFT if window == culprit and _is_left(window) else KINDS.get(window.state, Kind.OTHER)
        drawn = [(kind, Bar(window.start, window.end, window.opened.value, window == culprit and not over))]
        if over and window.end is not None:
            drawn.append((Kind.LEFT, Bar(window.end, met, window.opened.value, culprit=True)))
        for each, bar in drawn:
            if span.meets(bar.start, bar.end):
                found.setdefault(window.thread, {}).setdefault(each, []).append(bar)
    for thread, bar in _waits(account.log.events if account.log is not None else ()):
        if span.meets(bar.start, bar.end):
            found.setdefault(thread, {}).setdefault(Kind.WAIT, []).append(bar)
    return found


def _is_left(window: Window) -> bool:
    """Whether it is what a moment left behind: a kernel unloaded, annotations replaced."""
    action = window.opened.action
    return action is Action.CALL or (action is Action.SET and window.state not in FLAGS)


def _waits(events: Iterable[Event]) -> list[tuple[str, Bar]]:
    """From each wait for the lock to the same thread's acquiring it."""
    begun: dict[str, Event] = {}
    found = []
    for event in events:
        if event.state is not State.LOCK:
            continue
        if event.action is Action.WAIT:
            begun.setdefault(event.thread, event)
        elif event.thread in begun:
            since = begun.pop(event.thread)
            found.append((event.thread, Bar(since.t, event.t, since.value)))
    return found + [(thread, Bar(event.t, None, event.value)) for thread, event in begun.items()]


_SIGNS = {Action.READ: Sign.READ, Action.OBEYED: Sign.OBEYED, Action.CALL: Sign.CALL}
_ENDS = {"FAILED": Sign.FAILED, "EAGER": Sign.EAGER, "HUNG": Sign.HUNG}


def _marks(account: Account, span: Span, collision: Collision | None) -> dict[str, list[Mark]]:
    found: dict[str, list[Mark]] = {}
    met = collision.met if collision is not None else None
    events = account.log.events if account.log is not None else ()
    for event in (*events, *([met] if met is not None and met not in events else [])):
        if event.action in _SIGNS and span.meets(event.t, event.t):
            text = f"{event.state} {event.value}".rstrip()
            found.setdefault(event.thread, []).append(Mark(event.t, _SIGNS[event.action], text, hit=event is met))
    for each in account.collisions:
        if span.meets(each.at, each.at):
            mark = Mark(each.at, _ENDS[each.consequence.name], each.mechanism, each.count, each is collision)
            found.setdefault(each.victim, []).append(mark)
    return found
