"""An annotation that one thread wrote and another one took onto what it traced: from what was obeyed to both. Pure.

FX keeps annotations in one dictionary for the process. What stands in it while a node is made goes onto that node, and
inductor obeys it when it lowers the node: later, and for a backward in autograd's thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bisect_env.explanation.noted import annotated
from bisect_env.explanation.records import Collision, Event, Mechanism, State, Window
from bisect_env.explanation.seen import Seen, number_of
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
        window = _written(seen, key, read, (base.victim, obeyed.thread))
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
    reads = [event for event in seen.noted.reads.get(key, ()) if event.t <= obeyed.t]
    lowering = seen.own(State.COMPILE, obeyed.thread, obeyed.t)
    number = number_of(lowering)
    if lowering is not None and number:
        same = [window for window in seen.compiles[number] if window.start <= lowering.start]
        return [each for each in reads if any(w.thread == each.thread and holds(w, each.t) for w in same)]
    return [event for event in reads if event.thread in (victim, obeyed.thread)]


def _written(seen: Seen, key: str, read: Event, apart: Sequence[str]) -> Window | None:
    """The annotation with this key that was there, of a thread that is not ``apart``: open, left behind, or over.

    One that is over without having been seen to stay counts only where those threads, and the one that took it, never
    wrote the key themselves: it may be theirs.
    """
    noted, involved = seen.noted, {*apart, read.thread}
    left = noted.left_behind(key, read.t)
    known = [event for event in noted.open(key, read.t) if event.thread not in involved][-1:]
    if left is not None:
        # Rather another thread than the one that took it.
        both = sorted((left.met, left.wrote), key=lambda event: event.thread == read.thread)
        known = [event for event in both if event.thread not in apart and key in annotated(event)]
    elif not known:
        written = noted.written(key, read.t)
        if not any(event.thread in involved for event in written):
            known = [*written[-1:]]
    if not known:
        return None
    closed = noted.end(known[0])
    return Window(State.ANNOTATION, known[0].thread, known[0].t, None if closed is None else closed.t, known[0], closed)
