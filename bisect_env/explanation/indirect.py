"""Failures that no read of a flag leads to. Pure.

Where they are raised says what to look for, the log whether it was so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from bisect_env.explanation.annotations import taken_for
from bisect_env.explanation.records import Action, Collision, Event, Mechanism, State, Window
from bisect_env.explanation.seen import Seen
from bisect_env.explanation.waiting import AUTOGRAD
from bisect_env.explanation.windows import overlap
from bisect_env.trials.records import Failure

SLACK = 0.25
"""Seconds that a failure may be reported before what caused it, by clocks that are not the same one."""
_BACKWARD = "run_backward"
"""In the traceback of a call that asked autograd for a backward."""


@dataclass(frozen=True)
class Fault:
    """A failure to be followed."""

    seen: Seen
    base: Collision
    """What is known of it."""
    failure: Failure
    spent: Collection[int]
    """``id`` of the events that later failures of the trial came from."""

    def events(self, state: State) -> list[Event]:
        """Of a state, those that may come before the failure."""
        return [e for e in self.seen.log.events if e.state is state and e.t <= self.failure.t + SLACK]

    def its_own(self, events: Sequence[Event]) -> list[Event]:
        """Those of the failing thread; of autograd's too where it may have done the work.

        Autograd's exceptions are raised again in the thread that asked for the backward.
        """
        own = [event for event in events if event.thread == self.failure.thread]
        if own and _BACKWARD not in self.failure.traceback:
            return own
        return [event for event in events if self.works(event)]

    def works(self, event: Event) -> bool:
        """Whether the failing thread did it, or autograd's."""
        return event.thread == self.failure.thread or event.thread.startswith(AUTOGRAD)

    def last(self, events: Sequence[Event]) -> Event:
        """The last one before the failure that no later failure came from.

        Where there is none the clocks are not one, and it may come a little later.
        """
        free = [event for event in events if id(event) not in self.spent] or events
        return ([event for event in free if event.t <= self.failure.t] or free)[-1]


def indirect(fault: Fault) -> Iterator[Collision]:
    """What each kind makes of a failure that looks like its own: explained, or as far as it could be followed."""
    failure = fault.failure
    text = f"{failure.signature.module} {failure.where} {failure.message} {failure.traceback}"
    for parts, explain in _KINDS:
        if any(part in text for part in parts):
            yield explain(fault)


def _fell_back(fault: Fault) -> Collision:
    """A node that inductor ran eagerly for an annotation, and that cannot be run so.

    Its message names the node, where all of it is known. Else it is the last one of a compile that raised.
    """
    text = f"{fault.failure.message}\n{fault.failure.traceback}\n"
    named = "target: " in text
    fitting = [
        event
        for event in fault.events(State.ANNOTATION)
        if event.action is Action.OBEYED and (f"target: {event.value.partition(': ')[2]}\n" in text or not named)
    ]
    obeyed = fault.its_own(fitting)
    obeyed = [event for event in obeyed if _raised_behind(fault.seen, event, obeyed)] or obeyed
    return taken_for(fault.seen, fault.base, fault.last(obeyed)) if obeyed else fault.base


def _raised_behind(seen: Seen, event: Event, obeyed: Sequence[Event]) -> bool:
    """Whether the compile that obeyed it raised, with nothing else obeyed in between."""
    window = seen.own(State.COMPILE, event.thread, event.t)
    after = [each for each in obeyed if each.thread == event.thread and each.t > event.t]
    return fails(window) and not any(window is seen.own(State.COMPILE, each.thread, each.t) for each in after)


def fails(window: Window | None) -> bool:
    """Whether what a window is of ended with an exception."""
    return window is not None and window.closed is not None and ", raised " in window.closed.value


def _patched(fault: Fault) -> Collision:
    """A trace whose patches were on the stack when another thread's trace, begun before or after it, took them off."""
    seen, base = fault.seen, fault.base
    ended = [
        window
        for window in seen.windows
        if window.state is State.PATCHER
        and window.closed is not None
        and window.closed.t <= fault.failure.t + SLACK
        and fails(window)
        and fault.works(window.closed)
    ]
    if not ended or ended[-1].closed is None:
        return base
    mine, met = ended[-1], ended[-1].closed
    window = _ended_beside(seen, State.PATCHER, mine.thread, mine.start, met.t)
    if window is None:
        return replace(base, met=met)
    return replace(base, mechanism=Mechanism.PATCHER, met=met, culprit=window.thread, window=window)


def _metered(fault: Fault) -> Collision:
    """A compile whose metrics went where those of another thread's went at that time.

    Dynamo empties the place only when a thread enters it in which no other one is, and takes each value once. From
    torch 2.11 on each thread has a place of its own: it has to be the same object.
    """
    seen, base = fault.seen, fault.base
    began = [
        window
        for window in seen.windows
        if window.state is State.METRICS and window.start <= fault.failure.t + SLACK and fault.works(window.opened)
    ]
    mine = [window for window in began if fails(window)] or began
    if not mine:
        return base
    met = fault.last(fault.its_own([window.opened for window in mine]))
    own = next(window for window in mine if window.opened is met)
    beside = [
        window
        for window in seen.windows
        if window.state is State.METRICS
        and window.thread not in (met.thread, fault.failure.thread)
        and _object(window.opened) == _object(met)
        and overlap(window, own)
    ]
    # Rather who was there before it: only then did it find the place not emptied.
    window = next((each for each in reversed(beside) if each.start <= met.t), None)
    if window is None and beside and own.closed is not None:
        window, met = beside[0], own.closed
    if window is None:
        return replace(base, met=met)
    return replace(base, mechanism=Mechanism.METRICS, met=met, culprit=window.thread, window=window)


def _recompiled(fault: Fault) -> Collision:
    hits = [event for event in fault.events(State.RECOMPILE_LIMIT) if event.thread == fault.failure.thread]
    return replace(fault.base, mechanism=Mechanism.RECOMPILE_LIMIT, met=hits[-1]) if hits else fault.base


def _launched(fault: Fault) -> Collision:
    """A kernel that was launched, or tuned, while another thread loaded it, tuned it too, or had unloaded it."""
    events = fault.events(State.KERNEL)
    launched = [event for event in events if event.action is Action.CALL and event.value.endswith("not loaded")]
    mine = fault.its_own(launched) or fault.its_own(events)
    if not mine:
        return fault.base
    met = fault.last(mine)
    window = _unloaded(events, met) or _beside(fault.seen, met)
    if window is None:
        return replace(fault.base, met=met)
    return replace(fault.base, mechanism=Mechanism.KERNEL, met=met, culprit=window.thread, window=window)


def _unloaded(events: Sequence[Event], met: Event) -> Window | None:
    """From the moment that another thread unloaded the very kernel that was launched; it stays so."""
    found = [
        event
        for event in events
        if event.value.endswith(" unloaded")
        and event.thread != met.thread
        and event.t <= met.t
        and _object(event) == _object(met)
    ]
    return Window(State.KERNEL, found[-1].thread, found[-1].t, None, found[-1], None) if found else None


def _beside(seen: Seen, met: Event) -> Window | None:
    """Where another thread loaded or tuned it meanwhile: the same object, else at that moment one of the same name.

    What tunes a kernel and what launches it are two objects. One of another name is another kernel.
    """
    own = seen.own(State.KERNEL, met.thread, met.t)
    since = met.t if own is None else own.start
    alike = [
        window
        for window in seen.windows
        if window.state is State.KERNEL
        and window.thread != met.thread
        and window.start <= met.t
        and (window.end is None or window.end >= since)
        and _name(window.opened) == _name(met)
    ]
    same = [window for window in alike if _object(met) and _object(window.opened) == _object(met)]
    return next(reversed(same or [window for window in alike if window.end is None or window.end >= met.t]), None)


def _object(event: Event) -> str:
    """``triton_poi_fused_mul_1 #3f2a``: which object an event is about; empty where it has no number."""
    words = event.value.replace(",", " ").split()
    place = next((place for place, word in enumerate(words) if word.startswith("#")), 0)
    return " ".join(words[place - 1 : place + 1]) if place else ""


def _name(event: Event) -> str:
    """``triton_poi_fused_mul_1``, or the file of kernels that is loaded."""
    words = event.value.partition(", raised ")[0].split()
    if not words:
        return ""
    return words[0] if event.action is Action.CALL else words[1] if len(words) > 1 else ""


def _annotated(fault: Fault) -> Collision:
    """Annotations that another thread replaced, or was about to, while this one's were open."""
    seen, base, victim = fault.seen, fault.base, fault.failure.thread
    events = fault.events(State.ANNOTATION)
    mine = [event for event in events if event.thread == victim]
    if not mine:
        return base
    raised = [event for event in mine if ", raised " in event.value]
    met = (raised or mine)[-1]
    entered = _entered(mine, met)
    others = [e for e in events if e.thread != victim and e.action is Action.SET and entered <= e.t <= met.t]
    replaced = [Window(State.ANNOTATION, event.thread, event.t, None, event, None) for event in others]
    # Rather one that took this thread's annotations away.
    window = (
        next((each for each in reversed(replaced) if each.opened.value.endswith("its custom")), None)
        or seen.foreign(State.ANNOTATION, victim, met.t)
        or _ended_beside(seen, State.ANNOTATION, victim, entered, met.t)
        or next(reversed(replaced), None)
    )
    if window is None:
        return replace(base, met=met)
    return replace(base, mechanism=Mechanism.ANNOTATION, met=met, culprit=window.thread, window=window)


def _entered(mine: Sequence[Event], met: Event) -> float:
    """When the thread entered what it was in at an event of its own, or left by it."""
    inner = 0
    for event in reversed(mine):
        if event.t > met.t or (event is met and event.action is Action.LEAVE):
            continue
        if event.action is Action.LEAVE:
            inner += 1
        elif event.action is Action.ENTER:
            if not inner:
                return event.t
            inner -= 1
    return met.t


def _ended_beside(seen: Seen, state: State, victim: str, start: float, end: float) -> Window | None:
    """What another thread ended meanwhile, the last one: its end puts back what it had met, or takes all of it away."""
    found = [
        window
        for window in seen.windows
        if window.state is state and window.thread != victim and window.end is not None and start <= window.end <= end
    ]
    return max(found, key=lambda window: window.end or 0.0, default=None)


_KINDS: Sequence[tuple[tuple[str, ...], Callable[[Fault], Collision]]] = (
    (("recompile_limit", "FailOnRecompileLimitHit"), _recompiled),
    (
        ("load_kernel() must be called", "static_triton_launcher", "static_cuda_launcher", "Autotuned launcher config"),
        _launched,
    ),
    (("_dynamo/metrics_context.py", "been set in the current context", "MetricsContext"), _metered),
    (("CURRENT_PATCHER", "in _new_patcher"), _patched),
    (("LoweringException", "_inductor/graph.py"), _fell_back),
    (("fx/traceback.py", "torch.fx.traceback"), _annotated),
)
"""Words of a failure, and what they say to look for."""
