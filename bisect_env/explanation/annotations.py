"""An annotation that one thread wrote and another one took onto what it traced: from what was obeyed to both. Pure.

FX keeps annotations in one dictionary for the process. What stands in it while a node is made goes onto that node, and
inductor obeys it when it lowers the node: later, and for a backward in autograd's thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from bisect_env.explanation.records import Action, Collision, Event, Mechanism, State, Window
from bisect_env.explanation.seen import Seen


def taken_for(seen: Seen, base: Collision, obeyed: Event) -> Collision:
    """The collision behind what a thread obeyed: the reader took it, another thread had written it.

    Where no thread was seen to take it, or none but the taker to write it, nobody is named.
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


def put_back(seen: Seen, key: str, window: Window, read: Event) -> Event | None:
    """Who put an annotation back that had ended before it was read: the last time."""
    if window.end is None or read.t <= window.end:
        return None
    return _last(
        event
        for event in seen.log.events
        if event.state is State.ANNOTATION
        and event.action is Action.SET
        and window.start <= event.t <= read.t
        and key in _keys(event.value.partition(", with ")[2])
    )


def _written(events: Sequence[Event], key: str, read: Event, threads: Iterable[str]) -> Window | None:
    """The last annotation with this key that a thread of no part in it had opened before."""
    opened = _last(
        event
        for event in events
        if event.action is Action.ENTER
        and event.t <= read.t
        and event.thread not in threads
        and key in _keys(event.value.partition(" ")[2])
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
