"""From windows to collisions: what a thread met right before its call failed, and whose it was. Pure.

A thread is named as culprit only for a window of its own that was open when the victim read what decided its call, or
for what it left behind.
What no such window explains is UNKNOWN, whatever the message looks like.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from bisect_env.explanation.annotations import taken_for
from bisect_env.explanation.failures import FX_ERROR, MAIN, Fell, failures_of, shown
from bisect_env.explanation.indirect import SLACK, Fault, fails, indirect
from bisect_env.explanation.records import (
    Action,
    Collision,
    Consequence,
    Event,
    Mechanism,
    State,
    Window,
    WitnessLog,
)
from bisect_env.explanation.seen import Seen
from bisect_env.explanation.waiting import AUTOGRAD, cycle, waits
from bisect_env.explanation.windows import Stuck, is_global
from bisect_env.trials.records import Failure, Outcome, TrialRecord
from bisect_env.trials.signature import headline_of

REPORTED_WITHIN = 5.0
"""Seconds after which what a thread obeyed is no longer taken for the cause of its failure."""
RAISED = "raised"
"""How the witness calls it where obeying made the call fail."""


def collisions_of(log: WitnessLog, windows: tuple[Window, ...], trial: TrialRecord) -> tuple[Collision, ...]:
    """What happened in a trial: its earliest failure's collision first, or the hang's; then the eager calls'."""
    seen = Seen.of(log, windows)
    found: list[Collision] = []
    used: set[int] = set()
    fallen = failures_of(log, trial)
    # The last one first: what it came from no earlier one did.
    for fell in reversed(fallen):
        met = _met(seen, fell)
        found.insert(0, _failed(seen, fell, met, used))
        used.update(id(event) for event in (met, found[0].met, found[0].obeyed) if event is not None)
    if any(fell.raised is not None for fell in fallen):
        # The first exception that a program did not catch may be one that it does not mind.
        found.sort(key=lambda each: each.mechanism is Mechanism.UNKNOWN)
    if trial.outcome is Outcome.HANG:
        found.append(_hung(seen, trial))
    eager = list(_eager(seen, used, any(count for path in trial.paths for _, count in path.signs)))
    return tuple(_counted(found) + sorted(_counted(eager), key=lambda each: -each.count))


def raised(event: Event) -> bool:
    """Whether what was obeyed made the call fail."""
    return event.value.startswith(RAISED)


def is_backward(window: Window | None) -> bool:
    """Whether a compile is that of a backward on its first use."""
    return window is not None and "backward" in window.opened.value.lower()


def _met(seen: Seen, fell: Fell) -> Event | None:
    """What the failing thread obeyed right before; what autograd's threads did for it where it did nothing itself.

    Where the witness has seen the exception, or a traceback was printed, what was obeyed at that very line of code,
    however long before the process ended.
    """
    failure = fell.failure
    until, since = failure.t + SLACK, failure.t - REPORTED_WITHIN
    obeyed = [
        event
        for event in seen.log.events
        if event.action is Action.OBEYED and raised(event) and event.t <= until and _fits(event, fell)
    ]
    own = [event for event in obeyed if event.thread == failure.thread]
    if fell.raised is not None:
        # An exception of a pool's thread is raised again, and ends another one.
        line = [event for event in obeyed if event.stack and event.stack[:1] == fell.raised.stack[:1]]
        found = [event for event in line if event.thread == failure.thread] or line or own
    elif not fell.when:
        told = own if failure.thread else obeyed
        found = [event for event in told if shown(event.stack, failure.traceback)] or told
    else:
        recent = [event for event in obeyed if event.t >= since]
        others = [event for event in recent if not _is_worker(event.thread)]
        found = [event for event in recent if event.thread == failure.thread] or others
    return found[-1] if found else None


def _fits(event: Event, fell: Fell) -> bool:
    """Whether a failure can be what obeying led to. Of a program that ended itself and said nothing, any can."""
    if fell.silent:
        return True
    if event.state is State.TRACING:
        return FX_ERROR in fell.text or "fx" in fell.failure.message.lower()
    if event.state is State.RECOMPILE_LIMIT:
        return "recompile" in f"{fell.failure.signature.type} {fell.text}".lower()
    return fell.when or shown(event.stack, fell.failure.traceback)


def _is_worker(thread: str) -> bool:
    return thread[:1] == "w" and thread[1:].isdigit()


def _failed(seen: Seen, fell: Fell, met: Event | None, spent: Collection[int]) -> Collision:
    failure = fell.failure
    victim = failure.thread
    if met is not None and (not victim or (fell.raised is not None and not met.thread.startswith(AUTOGRAD))):
        victim = met.thread
    failure = replace(failure, thread=victim or MAIN)
    said = fell.silent and met is not None
    message = fell.why if said else f"{failure.signature.type}: {_said(failure)}"
    base = Collision(
        Mechanism.UNKNOWN, Consequence.FAILED, failure.thread, met, "", None, at=failure.t, message=message
    )
    if met is not None:
        return _explained(seen, base, met)
    for found in indirect(Fault(seen, base, failure, spent)):
        if found.mechanism is not Mechanism.UNKNOWN or fell.raised is None:
            return found
    if fell.raised is not None:
        return replace(base, met=fell.raised)
    last = [event for event in seen.log.events if event.thread == failure.thread and event.t <= failure.t]
    if not fell.when:
        # Some call of the process failed so, whether or not that is what ended it.
        last = [event for event in seen.log.events if event.action is Action.OBEYED and raised(event)] or last
    return replace(base, met=last[-1] if last else None)


def _said(failure: Failure) -> str:
    """What a failure says, on one line."""
    line = headline_of(failure.message) or failure.signature.template or "no message"
    return line.removeprefix(f"{failure.signature.type}: ")


def _explained(seen: Seen, base: Collision, met: Event) -> Collision:
    """The collision of what a thread obeyed."""
    # A thread that reads for another one (autograd's for the worker whose backward it runs) is not the culprit either.
    reader = met.thread
    window: Window | None
    if met.state is State.TRACING and is_global(seen.log, State.TRACING):
        stuck = seen.stuck_at(State.TRACING, met.t)
        if stuck is not None:
            window = _window_of(seen, stuck)
            return replace(base, mechanism=Mechanism.STUCK_FLAG, culprit=window.thread, window=window)
        if seen.own(State.TRACE, reader, met.t) is not None:
            return base
        # Who traces, and not who has put the flag back meanwhile.
        trace = seen.foreign(State.TRACE, reader, met.t)
        if trace is not None:
            window = seen.own(State.TRACING, trace.thread, met.t) or trace
        else:
            window = seen.foreign(State.TRACING, reader, met.t)
        if window is not None:
            compile_ = seen.own(State.COMPILE, window.thread, met.t)
            mechanism = Mechanism.FOREIGN_BACKWARD if is_backward(compile_) else Mechanism.FOREIGN_TRACE
            return replace(base, mechanism=mechanism, culprit=window.thread, window=window)
    if met.state is State.COMPILING and is_global(seen.log, State.COMPILING):
        if seen.own(State.COMPILE, reader, met.t) is not None:
            return base
        window = seen.foreign(State.COMPILING, reader, met.t) or seen.foreign(State.COMPILE, reader, met.t)
        if window is not None:
            return replace(base, mechanism=Mechanism.FOREIGN_COMPILE, culprit=window.thread, window=window)
    if met.state is State.RECOMPILE_LIMIT:
        return replace(base, mechanism=Mechanism.RECOMPILE_LIMIT)
    if met.state is State.ANNOTATION:
        return taken_for(seen, base, met)
    return base


def _window_of(seen: Seen, stuck: Stuck) -> Window:
    """From the moment that the thread put the flag back from which it stuck, until it was cleared for good."""
    first = stuck.first.put_back
    ends = (e for e in seen.log.events if e.state is stuck.state and e.action is Action.CLEAR and e.t == stuck.until)
    return Window(stuck.state, first.thread, first.t, stuck.until, first, next(ends, None))


def _hung(seen: Seen, trial: TrialRecord) -> Collision:
    waiting = waits(seen.log, seen.windows, trial.stacks)
    circle = cycle(waiting)
    at = trial.started + trial.seconds
    if circle:
        one = next((each for each in circle if each.why == "the compile lock"), circle[0])
        return Collision(
            Mechanism.LOCK_CYCLE, Consequence.HUNG, one.thread, one.since, one.on, one.window, at, trial.message
        )
    last = seen.log.events[-1] if seen.log.events else None
    met = waiting[0].since if waiting else last
    return Collision(Mechanism.UNKNOWN, Consequence.HUNG, met.thread if met else "", met, "", None, at, trial.message)


def _eager(seen: Seen, used: set[int], dense: bool) -> Iterator[Collision]:
    """Calls that took the eager path: by what they obeyed, and unfused ones that nothing obeyed explains.

    These only where the trial itself found calls unfused that should not be (``dense``): a program may well call the
    eager attention on purpose.
    """
    due: set[str] = set()
    limited: dict[str, Event] = {}
    for event in seen.log.events:
        base = Collision(Mechanism.UNKNOWN, Consequence.EAGER, event.thread, event, "", None, event.t)
        if event.state is State.RECOMPILE_LIMIT:
            if event.action is Action.OBEYED:
                limited.setdefault(event.thread, event)
                yield replace(base, mechanism=Mechanism.RECOMPILE_LIMIT)
        elif event.action is Action.OBEYED and not raised(event) and id(event) not in used:
            explained = _explained(seen, base, event)
            if event.state is not State.ANNOTATION:
                due.add(event.thread)
            elif fails(seen.own(State.COMPILE, event.thread, event.t)):
                continue  # what it was lowered for never ran
            elif explained.mechanism is Mechanism.UNKNOWN:
                continue  # an annotation of its own: it was meant to run so
            yield explained
        elif event.state is State.UNFUSED:
            # The dense call that an obeyed read led to is the same call, and one while it traces is no call at all.
            if any(seen.own(state, event.thread, event.t) for state in (State.TRACE, State.COMPILE)):
                continue
            if event.thread in due:
                due.remove(event.thread)
                continue
            hit = limited.get(event.thread)
            if hit is not None:
                yield replace(base, mechanism=Mechanism.RECOMPILE_LIMIT, met=hit, at=event.t)
            elif dense:
                yield base


def _counted(found: Sequence[Collision]) -> list[Collision]:
    """Equal ones once, with their number, in the order of the first of each."""
    kept: dict[tuple[object, ...], Collision] = {}
    for each in found:
        met = None if each.met is None else (each.met.state, each.met.action)
        key = each.mechanism, each.consequence, each.victim, each.culprit, met
        kept[key] = replace(kept[key], count=kept[key].count + each.count) if key in kept else each
    return list(kept.values())
