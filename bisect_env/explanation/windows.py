"""From events to windows: when a thread had a flag set, a trace or a compile open, or the lock held. Pure.

A process-global flag has one value for all threads, and several threads may have set it: each that did has a window of
its own, and the first that clears it ends them all. Torch saves the flag's old value and puts that back, so that a
thread which began while another one was tracing puts back *True* when that other one is long done. From then on the
flag is stuck.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from packaging.version import InvalidVersion, Version

from bisect_env.explanation.records import Action, Event, State, Window, WitnessLog

FLAGS: Mapping[State, State] = {State.TRACING: State.TRACE, State.COMPILING: State.COMPILE}
"""Each flag, and what is open while it is rightly set."""
OPENS = {Action.ENTER: Action.LEAVE, Action.ACQUIRE: Action.RELEASE}
AT_ONCE = 0.001
"""Seconds within which a thread's trace begins when it is for this trace that the thread has set the flag."""
OWN_FLAG_FROM = Version("2.14.dev0")
"""Torch from which the tracing flag is a thread's own (pull request 168999)."""
OWN_WORDS = ("thread-local", "thread local", "a thread's own", "per thread")
"""In how a flag was found: it is not the process's."""


@dataclass(frozen=True)
class Stuck:
    """A process-global flag that stays set although nothing that sets it is open in any thread."""

    state: State
    put_back: Event
    """The last time it was set, which is the one that sticks."""
    saved: Event | None
    """Where the same thread met it set by another one, and so saved *True* to put it back later."""
    saved_from: str
    """The thread that had set it then; empty where ``saved`` is None."""
    since: float
    """Unix time from which nothing was open any more."""
    until: float | None
    """None: it was never cleared."""
    origin: Stuck | None = None
    """Where what was saved was itself a stuck flag: the first one, from which it was handed on."""
    handed_on: int = 0
    """How often it was cleared and put back since its origin."""

    @property
    def first(self) -> Stuck:
        """Its origin, or itself."""
        return self.origin or self

    def holds(self, t: float) -> bool:
        """Whether the flag was stuck at a time."""
        return self.since <= t and (self.until is None or t <= self.until)


def is_global(log: WitnessLog, state: State) -> bool:
    """Whether a flag is one for all threads: as the witness found it, else as is known of this torch."""
    found = [f"{watched.where} {watched.how}".lower() for watched in log.watched if watched.state is state]
    if any(word in text for text in found for word in OWN_WORDS):
        return False
    if any("process-global" in text for text in found):
        return True
    try:
        return state is not State.TRACING or Version(log.torch) < OWN_FLAG_FROM
    except InvalidVersion:
        return True


def windows_of(log: WitnessLog) -> tuple[Window, ...]:
    """All windows, by their start. Those of one thread and one state never overlap: the outermost counts."""
    found = [*_brackets(log)]
    for state in FLAGS:
        found += _flag(log, state)
    return tuple(
        sorted(found, key=lambda each: (each.start, each.thread, each.state, inf if each.end is None else each.end))
    )


def holds(window: Window, t: float) -> bool:
    """Whether a window was open at a time, its ends included."""
    return window.start <= t and (window.end is None or t <= window.end)


def overlap(one: Window, other: Window) -> bool:
    """Whether two windows were open at the same time."""
    first, second = sorted((one, other), key=lambda window: window.start)
    return first.end is None or second.start <= first.end


def stuck_flags(log: WitnessLog, windows: tuple[Window, ...]) -> tuple[Stuck, ...]:
    """Every time that a process-global flag stayed set with nothing open, by time."""
    found: list[Stuck] = []
    for state in FLAGS:
        if is_global(log, state):
            for each in _stuck(log, windows, state):
                found.append(_with_origin(each, found))
    return tuple(found)


def _with_origin(stuck: Stuck, earlier: Sequence[Stuck]) -> Stuck:
    """With the origin of the stuck flag that was saved, where it was one."""
    saved = stuck.saved
    if saved is None:
        return stuck
    met = next((each for each in reversed(earlier) if each.state is stuck.state and each.holds(saved.t)), None)
    return stuck if met is None else replace(stuck, origin=met.first, handed_on=met.handed_on + 1)


def _brackets(log: WitnessLog) -> Iterator[Window]:
    """Windows of what is entered and left, or acquired and released, the same one nested in itself counting once.

    In a log that lacks events, one that is opened anew counts as ended unseen: taken for nested it would never end.
    """
    opened: dict[tuple[State, str], tuple[Event, int]] = {}
    for event in log.events:
        key = event.state, event.thread
        if event.state in FLAGS:
            continue
        if event.action in OPENS:
            first, depth = (event, 0) if log.dropped else opened.get(key, (event, 0))
            opened[key] = first, depth + 1
        elif event.action in OPENS.values() and key in opened:
            first, depth = opened.pop(key)
            if depth > 1:
                opened[key] = first, depth - 1
            else:
                yield Window(event.state, event.thread, first.t, event.t, first, event)
    for (state, thread), (first, _) in opened.items():
        yield Window(state, thread, first.t, None, first, None)


def _flag(log: WitnessLog, state: State) -> Iterator[Window]:
    everybodys = is_global(log, state)
    opened: dict[str, Window] = {}
    for event in log.events:
        if event.state is not state:
            continue
        if event.action is Action.SET:
            opened.setdefault(event.thread, Window(state, event.thread, event.t, None, event, None))
        elif event.action is Action.CLEAR:
            for thread in list(opened) if everybodys else [event.thread]:
                if thread in opened:
                    yield replace(opened.pop(thread), end=event.t, closed=event)
    yield from opened.values()


def _stuck(log: WitnessLog, windows: tuple[Window, ...], state: State) -> Iterator[Stuck]:
    """Between a flag's SET that nobody cleared and the time it is cleared, once nothing is open.

    In a log that lacks events, what was open may be missing. There only a SET counts that was made where others put the
    old value back: by the line of code at which the flag is cleared.
    """
    brackets = [window for window in windows if window.state is FLAGS[state]]
    if not brackets:
        return  # Nothing told when one was open, so that nothing tells that none was.
    events = [event for event in log.events if event.state is state and event.action in (Action.SET, Action.CLEAR)]
    busy, begun = _busy(brackets), defaultdict[str, list[float]](list)
    for window in brackets:
        begun[window.thread].append(window.start)
    restoring = {_line(event) for event in events if event.action is Action.CLEAR} - {None}
    in_force: Event | None = None
    saved: dict[str, tuple[Event | None, str]] = {}
    found: Stuck | None = None
    for event, following in zip(events, [*events[1:], None], strict=False):
        foreign = in_force is not None and in_force.thread != event.thread
        if event.action is Action.CLEAR:
            # To clear it for a while, and put back what was met, is a way to keep it set too.
            if in_force is not None and (foreign or found is not None):
                saved[event.thread] = event, in_force.thread
            if found is not None:
                yield replace(found, until=event.t)
            in_force, found = None, None
            continue
        if found is None and (not log.dropped or _line(event) in restoring):
            since = _nothing_open(busy, begun[event.thread], event.t)
            if since < (inf if following is None else following.t):
                found = Stuck(state, event, *saved.get(event.thread, (None, "")), since, None)
        if in_force is not None and foreign:
            saved[event.thread] = event, in_force.thread
        in_force = event
    if found is not None:
        yield found


def _line(event: Event) -> tuple[str, int] | None:
    """The line of code that made an event; None without a stack."""
    return (event.stack[0].path, event.stack[0].line) if event.stack else None


def _nothing_open(busy: Sequence[tuple[float, float]], begun: Sequence[float], t: float) -> float:
    """The first moment from a SET on at which no bracket is open; infinity when there is none.

    Args:
        busy: times in which some bracket is open, by their start, apart from each other.
        begun: when the thread's own brackets began, in order: one that begins at once is what the flag is set for.
        t: when it was set.
    """
    own = bisect_left(begun, t)
    at = begun[own] if own < len(begun) and begun[own] <= t + AT_ONCE else t
    place = bisect_right(busy, (at, inf)) - 1
    return busy[place][1] if place >= 0 and at <= busy[place][1] else t


def _busy(brackets: Sequence[Window]) -> list[tuple[float, float]]:
    """The brackets' times, those that meet or overlap joined."""
    joined: list[tuple[float, float]] = []
    for window in sorted(brackets, key=lambda window: window.start):
        end = inf if window.end is None else window.end
        if joined and window.start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], end)
        else:
            joined.append((window.start, end))
    return joined
