"""Failures that no read of a flag leads to. Pure.

Where they are raised says what to look for, the log whether it was so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from bisect_env.explanation.annotations import taken_for
from bisect_env.explanation.records import Action, Collision, Event, Mechanism, State, Window
from bisect_env.explanation.seen import Seen
from bisect_env.explanation.waiting import AUTOGRAD
from bisect_env.trials.records import Failure

SLACK = 0.25
"""Seconds that a failure may be reported before what caused it, by clocks that are not the same one."""


def indirect(seen: Seen, base: Collision, failure: Failure) -> Iterator[Collision]:
    """What each kind makes of a failure that looks like its own: explained, or as far as it could be followed."""
    text = f"{failure.signature.module} {failure.where} {failure.message} {failure.traceback}"
    for parts, explain in _KINDS:
        if any(part in text for part in parts):
            yield explain(seen, base, failure)


def _works_for(event: Event, failure: Failure) -> bool:
    """Whether the failing thread did it, or autograd's, whose exceptions are raised again in the thread that called."""
    return event.thread == failure.thread or event.thread.startswith(AUTOGRAD)


def _fell_back(seen: Seen, base: Collision, failure: Failure) -> Collision:
    """A node that inductor ran eagerly for an annotation, and that cannot be run so.

    Its message names the node, where all of it is known.
    """
    text = f"{failure.message}\n{failure.traceback}\n"
    named = "target: " in text
    obeyed = [
        event
        for event in seen.log.events
        if event.state is State.ANNOTATION
        and event.action is Action.OBEYED
        and event.t <= failure.t + SLACK
        and _works_for(event, failure)
        and (f"target: {event.value.partition(': ')[2]}\n" in text or not named)
    ]
    return taken_for(seen, base, obeyed[-1]) if obeyed else base


def _patched(seen: Seen, base: Collision, failure: Failure) -> Collision:
    """A trace whose patches were on the stack when another thread's trace, begun before or after it, took them off."""
    ended = [
        window
        for window in seen.windows
        if window.state is State.PATCHER
        and window.closed is not None
        and window.closed.t <= failure.t + SLACK
        and "raised" in window.closed.value
        and _works_for(window.closed, failure)
    ]
    if not ended or ended[-1].closed is None:
        return base
    mine, met = ended[-1], ended[-1].closed
    others = [
        window
        for window in seen.windows
        if window.state is State.PATCHER
        and window.thread != mine.thread
        and window.start <= met.t
        and window.end is not None
        and mine.start <= window.end <= met.t
    ]
    if not others:
        return replace(base, met=met)
    window = max(others, key=lambda each: each.end or 0.0)
    return replace(base, mechanism=Mechanism.PATCHER, met=met, culprit=window.thread, window=window)


def _recompiled(seen: Seen, base: Collision, failure: Failure) -> Collision:
    hits = [e for e in seen.log.events if e.state is State.RECOMPILE_LIMIT and e.thread == failure.thread]
    before = [event for event in hits if event.t <= failure.t + SLACK]
    return replace(base, mechanism=Mechanism.RECOMPILE_LIMIT, met=before[-1]) if before else base


def _launched(seen: Seen, base: Collision, failure: Failure) -> Collision:
    """A kernel that was launched, or tuned, while another thread loaded it, tuned it too, or had unloaded it."""
    events = [event for event in seen.log.events if event.state is State.KERNEL and event.t <= failure.t + SLACK]
    mine = [event for event in events if _works_for(event, failure)]
    if not mine:
        return base
    launched = [event for event in mine if event.action is Action.CALL and event.value.endswith("not loaded")]
    met = (launched or mine)[-1]
    window = _unloaded(events, met) or _beside(seen, met)
    if window is None:
        return replace(base, met=met)
    return replace(base, mechanism=Mechanism.KERNEL, met=met, culprit=window.thread, window=window)


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
    """Where another thread loaded or tuned it meanwhile: the same object where it is known, else any at that moment."""
    own = seen.own(State.KERNEL, met.thread, met.t)
    since = met.t if own is None else own.start
    same = [
        window
        for window in seen.windows
        if window.state is State.KERNEL
        and window.thread != met.thread
        and window.start <= met.t
        and (window.end is None or window.end >= since)
        and _object(window.opened) == _object(met)
    ]
    return same[-1] if same and _object(met) else seen.foreign(State.KERNEL, met.thread, met.t)


def _object(event: Event) -> str:
    """``triton_poi_fused_mul_1 #3f2a``: which object an event is about; empty where it has no number."""
    words = event.value.replace(",", " ").split()
    place = next((place for place, word in enumerate(words) if word.startswith("#")), 0)
    return " ".join(words[place - 1 : place + 1]) if place else ""


def _annotated(seen: Seen, base: Collision, failure: Failure) -> Collision:
    """Annotations that another thread replaced, or was about to, while this one's were open."""
    events = [event for event in seen.log.events if event.state is State.ANNOTATION and event.t <= failure.t + SLACK]
    mine = [event for event in events if event.thread == failure.thread]
    if not mine:
        return base
    met = mine[-1]
    entered = max((event.t for event in mine if event.action is Action.ENTER), default=met.t)
    others = [e for e in events if e.thread != failure.thread and e.action is Action.SET and entered <= e.t <= met.t]
    if others:
        window: Window | None = Window(State.ANNOTATION, others[-1].thread, others[-1].t, None, others[-1], None)
    else:
        window = seen.foreign(State.ANNOTATION, failure.thread, met.t)
    if window is None:
        return replace(base, met=met)
    return replace(base, mechanism=Mechanism.ANNOTATION, met=met, culprit=window.thread, window=window)


_KINDS: Sequence[tuple[tuple[str, ...], Callable[[Seen, Collision, Failure], Collision]]] = (
    (("recompile_limit", "FailOnRecompileLimitHit"), _recompiled),
    (
        ("load_kernel() must be called", "static_triton_launcher", "static_cuda_launcher", "Autotuned launcher config"),
        _launched,
    ),
    (("CURRENT_PATCHER", "in _new_patcher"), _patched),
    (("LoweringException", "_inductor/graph.py"), _fell_back),
    (("fx/traceback.py", "torch.fx.traceback"), _annotated),
)
"""Words of a failure, and what they say to look for."""
