"""Threads that wait for each other: who waits for the lock, who holds it, and what the holder waits for. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bisect_env.explanation.records import Action, Event, State, Window, WitnessLog
from bisect_env.explanation.windows import holds

_IN_AUTOGRAD = re.compile(r"_engine_run_backward|run_backward")
INNERMOST = 3
"""Frames of a stack in which a thread that waits for autograd has the call of it."""
AUTOGRAD = "autograd"
"""How the witness calls threads that Python did not start."""
_THREAD = re.compile(r"^(?:Current thread|Thread) .*$", re.MULTILINE)


@dataclass(frozen=True)
class Waiting:
    """One thread that never went on."""

    thread: str
    on: str
    """The thread that has what it waits for."""
    since: Event
    """Its wait, or of a thread that waits for autograd the last thing that it did."""
    window: Window
    """Of the other thread: the lock held, or the backward that it is in."""
    why: str
    """``the compile lock`` or ``autograd's thread``."""


def waits(log: WitnessLog, windows: Sequence[Window], stacks: str) -> tuple[Waiting, ...]:
    """The waits that nothing ended, each thread's own.

    The lock's come from the log. That its holder waits for autograd's thread is told by where it stood, as the witness
    saw it from outside; else by the stacks of the threads before the kill, in which more threads than the one whose
    backward runs must be inside autograd.
    """
    held = [window for window in windows if window.state is State.LOCK and window.end is None]
    found = [
        Waiting(event.thread, window.thread, event, window, "the compile lock")
        for event in _unanswered(log)
        for window in held
        if window.thread != event.thread and holds(window, event.t)
    ]
    stood = {event.thread: event for event in log.events if event.state is State.STANDING}
    last = {event.thread: event for event in log.events}
    for blocked in list(found):
        if not blocked.thread.startswith(AUTOGRAD):
            continue  # a worker's backward is waited for by nobody but itself
        seen = stood.get(blocked.on)
        if seen is not None and seen.t < blocked.since.t:
            seen = None  # it stood there in an earlier wait
        if seen is not None:
            # Of the holder itself, and of nobody else who may be in autograd too.
            if not any(_IN_AUTOGRAD.fullmatch(frame.function) for frame in seen.stack[:INNERMOST]):
                continue
        elif _inside_autograd(stacks) < 2:
            continue
        backward = [
            window
            for window in windows
            if window.state is State.BACKWARD and window.thread == blocked.thread and window.end is None
        ]
        if not backward:
            # A thread's first backward alone is an event.
            wait = blocked.since
            backward = [Window(State.BACKWARD, blocked.thread, wait.t, None, wait, None)]
        if not any(each.thread == blocked.on for each in found):
            since = last[blocked.on] if seen is None else seen
            found.append(Waiting(blocked.on, blocked.thread, since, backward[-1], "autograd's thread"))
    return tuple(found)


def cycle(waiting: Sequence[Waiting]) -> tuple[Waiting, ...]:
    """Waits that close a circle, in its order; empty when there is none."""
    by_thread: Mapping[str, Waiting] = {each.thread: each for each in waiting}
    for start in by_thread:
        path: list[str] = []
        at = start
        while at in by_thread and at not in path:
            path.append(at)
            at = by_thread[at].on
        if at in path:
            return tuple(by_thread[thread] for thread in path[path.index(at) :])
    return ()


def _unanswered(log: WitnessLog) -> list[Event]:
    """Each thread's wait for the lock behind which it never got it."""
    last: dict[str, Event] = {}
    for event in log.events:
        if event.state is not State.LOCK:
            continue
        if event.action is Action.WAIT:
            last.setdefault(event.thread, event)
        elif event.action is Action.ACQUIRE:
            last.pop(event.thread, None)
    return sorted(last.values(), key=lambda event: event.t)


def _inside_autograd(stacks: str) -> int:
    """Threads whose stack, as faulthandler or py-spy prints it, is inside autograd's engine."""
    return sum(bool(_IN_AUTOGRAD.search(part)) for part in _THREAD.split(stacks))
