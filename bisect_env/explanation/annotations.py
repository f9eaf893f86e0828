"""An annotation that one thread wrote and another one took onto what it traced: from what was obeyed to both. Pure.

FX keeps annotations in one dictionary for the process. What stands in it while a node is made goes onto that node, and
inductor obeys it when it lowers the node: later, and for a backward in autograd's thread.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from bisect_env.explanation.records import Action, Collision, Event, Mechanism, State, Window
from bisect_env.explanation.seen import Seen
from bisect_env.explanation.windows import holds


def taken_for(seen: Seen, base: Collision, obeyed: Event) -> Collision:
    """The collision behind what a thread obeyed: who traced the node took it, another thread had written it.

    Of one that had ended already and stayed, the culprit is the thread that put it back. Where no thread was seen to
    take it, or it may have been that thread's own, nobody is named.
    """
    key, _, target = obeyed.value.partition(": ")
    reads = _taken(seen, base.victim, obeyed, key)
    # Of several the one under which the very operation was traced, where its stack says so.
    own = [event for event in reads if any(target and target in frame.function for frame in event.stack)]
    for read in reversed(own or reads):
        window = _written(seen.log.events, key, read, (base.victim, obeyed.thread))
        if window is not None:
            return replace(
                base,
                mechanism=Mechanism.ANNOTATION,
                met=read,
                obeyed=obeyed,
                culprit=window.thread,
                window=window,
            )
    return replace(base, met=obeyed)


def _taken(seen: Seen, victim: str, obeyed: Event, key: str) -> list[Event]:
    """Where the key was taken onto the graph whose node was lowered.

    Threads share compiled graphs: the one whose call failed need not be the one that traced it. The number of the
    compile tells who did; where there is none, it is looked for in the failing thread.
    """
    reads = [
        event
        for event in seen.log.events
        if event.state is State.ANNOTATION
        and event.action is Action.READ
        and event.t <= obeyed.t
        and key in _keys(event.value)
    ]
    lowering = seen.own(State.COMPILE, obeyed.thread, obeyed.t)
    number = _number(lowering)
    if lowering is not None and number:
        same = [
            window
            for window in seen.windows
            if window.state is State.COMPILE and _number(window) == number and window.start <= lowering.start
        ]
        return [each for each in reads if any(w.thread == each.thread and holds(w, each.t) for w in same)]
    return [event for event in reads if event.thread in (victim, obeyed.thread)]


def _number(compile_: Window | None) -> str:
    """``0/2``, that of a forward and of its backward; empty where it has none."""
    last = "" if compile_ is None else compile_.opened.value.rpartition(" ")[2]
    return last if "/" in last else ""


@dataclass(frozen=True)
class Left:
    """An annotation that stays although it has ended: a second one met it, and put it back when the first was over."""

    wrote: Event
    """Where the first one began."""
    met: Event
    """Where the second one began, while that one was open: it saved what it met."""
    put_back: Event
    """Where the second one ended."""


def left_behind(events: Iterable[Event], key: str, t: float) -> Left | None:
    """Whether an annotation with this key is there at a time with none of its kind open; as ``annotate`` does it.

    Each saves what it meets when it begins, other keys included, and puts that back when it ends.
    """
    custom: dict[str, Event] | None = None
    left: Left | None = None
    saved: defaultdict[str, list[tuple[Event, dict[str, Event] | None]]] = defaultdict(list)
    for event in events:
        if event.t > t or event.state is not State.ANNOTATION or not annotated(event):
            continue
        if event.action is Action.ENTER:
            saved[event.thread].append((event, custom))
            custom = {**(custom or {}), **dict.fromkeys(annotated(event), event)}
        elif event.action is Action.LEAVE and saved[event.thread]:
            began, custom = saved[event.thread].pop()
            there = (custom or {}).get(key)
            if there is None:
                left = None
            elif left is None and not any(each is there for each, _ in saved[there.thread]):
                left = Left(there, began, event)  # those that meet it from here on hand it on
    return None if any(key in annotated(each) for open_ in saved.values() for each, _ in open_) else left


def annotated(event: Event) -> list[str]:
    """The keys of an annotation that is entered or left."""
    name, _, rest = event.value.partition(" ")
    return _keys(rest.partition(", raised ")[0]) if name == "annotate" else []


def _written(events: Sequence[Event], key: str, read: Event, apart: Sequence[str]) -> Window | None:
    """The annotation with this key that was there, of a thread that is not ``apart``: open, left behind, or over.

    One that is over without having been seen to stay counts only where those threads, and the one that took it, never
    wrote the key themselves: it may be theirs.
    """
    began = [e for e in events if e.action is Action.ENTER and e.t <= read.t and key in annotated(e)]
    ends = {id(each): _end(events, each) for each in began}
    involved = {*apart, read.thread}
    others = [event for event in began if event.thread not in involved]
    open_ = [event for event in others if (end := ends[id(event)]) is None or end.t > read.t]
    left = left_behind(events, key, read.t)
    stayed = [e for e in (left.met, left.wrote) if e.thread not in apart and key in annotated(e)] if left else []
    known = open_[-1:] or sorted(stayed, key=lambda event: event.thread == read.thread)
    if not known and left is None and not any(event.thread in involved for event in began):
        known = others[-1:]
    if not known:
        return None
    closed = ends[id(known[0])] if id(known[0]) in ends else _end(events, known[0])
    return Window(State.ANNOTATION, known[0].thread, known[0].t, None if closed is None else closed.t, known[0], closed)


def _end(events: Sequence[Event], opened: Event) -> Event | None:
    """Where an annotation ended: those that the thread began inside of it end first."""
    inside = 0
    for event in events:
        if event.thread != opened.thread or event.t < opened.t or event is opened or not annotated(event):
            continue
        if event.action is Action.ENTER:
            inside += 1
        elif event.action is Action.LEAVE and inside:
            inside -= 1
        elif event.action is Action.LEAVE:
            return event
    return None


def _keys(text: str) -> list[str]:
    return text.split(", ") if text else []
