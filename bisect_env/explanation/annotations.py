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


def taken_for(seen: Seen, base: Collision, obeyed: Event) -> Collision:
    """The collision behind what a thread obeyed: the reader took it, another thread had written it.

    Of one that had ended already and stayed, the culprit is the thread that put it back. Where no thread was seen to
    take it, or none but the taker to write it, nobody is named.
    """
    key, _, target = obeyed.value.partition(": ")
    events = [event for event in seen.log.events if event.state is State.ANNOTATION and event.t <= obeyed.t]
    threads = {base.victim, obeyed.thread}
    reads = [e for e in events if e.action is Action.READ and e.thread in threads and key in _keys(e.value)]
    # Of several the one under which the very operation was traced, where its stack says so.
    own = [event for event in reads if any(target and target in frame.function for frame in event.stack)]
    for read in reversed(own or reads):
        window = _written(events, key, read, threads)
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

    Each saves what it meets when it begins, and puts that back when it ends.
    """
    there: Event | None = None
    left: Left | None = None
    saved: defaultdict[str, list[tuple[Event, Event | None]]] = defaultdict(list)
    for event in events:
        if event.t > t or event.state is not State.ANNOTATION or key not in annotated(event):
            continue
        if event.action is Action.ENTER:
            saved[event.thread].append((event, there))
            there = event
        elif event.action is Action.LEAVE and saved[event.thread]:
            began, there = saved[event.thread].pop()
            if there is None:
                left = None
            elif left is None and not any(each is there for each, _ in saved[there.thread]):
                left = Left(there, began, event)  # those that meet it from here on hand it on
    if there is None or any(saved.values()):
        return None
    return left


def annotated(event: Event) -> list[str]:
    """The keys of an annotation that is entered or left."""
    name, _, rest = event.value.partition(" ")
    return _keys(rest.partition(", raised ")[0]) if name == "annotate" else []


def _written(events: Sequence[Event], key: str, read: Event, threads: Iterable[str]) -> Window | None:
    """The annotation with this key that was there, of a thread of no part in it: open, left behind, or the last one."""
    left = left_behind(events, key, read.t)
    known = (left.met, left.wrote) if left is not None else ()
    opened = next((event for event in known if event.thread not in threads), None) or _last(
        event
        for event in events
        if event.action is Action.ENTER
        and event.t <= read.t
        and event.thread not in threads
        and key in annotated(event)
    )
    if opened is None:
        return None
    closed = next((each for each in events if _closes(each, opened)), None)
    return Window(State.ANNOTATION, opened.thread, opened.t, None if closed is None else closed.t, opened, closed)


def _closes(event: Event, opened: Event) -> bool:
    return (
        event.action is Action.LEAVE
        and event.thread == opened.thread
        and event.t >= opened.t
        and event.value.startswith(opened.value)
    )


def _last(events: Iterable[Event]) -> Event | None:
    found = None
    for found in events:  # noqa: B007 - the last one is meant
        pass
    return found


def _keys(text: str) -> list[str]:
    return text.split(", ") if text else []
