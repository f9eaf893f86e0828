"""What FX's one dictionary of annotations held at a time, as the log tells who wrote and who ended which. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bisect_env.explanation.records import Action, Event, State


@dataclass(frozen=True)
class Left:
    """An annotation that stays although it has ended: a second one met it, and put it back when the first was over."""

    wrote: Event
    """Where the first one began."""
    met: Event
    """Where the second one began, while that one was open: it saved what it met."""
    put_back: Event
    """Where the second one ended."""


class Noted:
    """The annotations of a log. Each key is gone through once, however often it is asked for."""

    def __init__(self, events: Iterable[Event]) -> None:
        of_annotations = [event for event in events if event.state is State.ANNOTATION]
        self.reads: Mapping[str, Sequence[Event]] = _by_key(of_annotations, Action.READ)
        """By key, where a thread took it."""
        self._annotates = [event for event in of_annotations if annotated(event)]
        self._ends = _ends(self._annotates)
        self._histories: dict[str, tuple[list[float], list[tuple[Left | None, tuple[Event, ...]]]]] = {}
        self._written: dict[str, list[Event]] = {}

    def left_behind(self, key: str, t: float) -> Left | None:
        """Whether an annotation with this key is there at a time with none of its kind open; as ``annotate`` does it.

        Each saves what it meets when it begins, other keys included, and puts that back when it ends.
        """
        left, open_ = self._at(key, t)
        return None if open_ else left

    def open(self, key: str, t: float) -> Sequence[Event]:
        """Where those with this key began that are open at a time."""
        return self._at(key, t)[1]

    def written(self, key: str, t: float) -> Sequence[Event]:
        """Where those with this key began until a time."""
        if key not in self._written:
            enters = (event for event in self._annotates if event.action is Action.ENTER)
            self._written[key] = [event for event in enters if key in annotated(event)]
        every = self._written[key]
        return every[: bisect_right(every, t, key=lambda event: event.t)]

    def end(self, began: Event) -> Event | None:
        """Where an annotation ended."""
        return self._ends.get(id(began))

    def _at(self, key: str, t: float) -> tuple[Left | None, tuple[Event, ...]]:
        if key not in self._histories:
            self._histories[key] = _history(self._annotates, key)
        times, states = self._histories[key]
        place = bisect_right(times, t) - 1
        return states[place] if place >= 0 else (None, ())


def annotated(event: Event) -> list[str]:
    """The keys of an annotation that is entered or left."""
    name, _, rest = event.value.partition(" ")
    return _keys(rest.partition(", raised ")[0]) if name == "annotate" else []


def _history(events: Sequence[Event], key: str) -> tuple[list[float], list[tuple[Left | None, tuple[Event, ...]]]]:
    """The times of the events, and after each what was left behind and which with the key were open."""
    custom: dict[str, Event] | None = None
    left: Left | None = None
    origins: dict[int, Left] = {}
    saved: defaultdict[str, list[tuple[Event, dict[str, Event] | None]]] = defaultdict(list)
    open_: dict[int, Event] = {}
    states: list[tuple[Left | None, tuple[Event, ...]]] = []
    for event in events:
        if event.action is Action.ENTER:
            saved[event.thread].append((event, custom))
            custom = {**(custom or {}), **dict.fromkeys(annotated(event), event)}
            if key in annotated(event):
                open_[id(event)] = event
        elif event.action is Action.LEAVE and saved[event.thread]:
            began, custom = saved[event.thread].pop()
            open_.pop(id(began), None)
            there = (custom or {}).get(key)
            if there is None:
                left = None
            elif id(there) not in open_:
                # Those that meet it from here on hand it on, also when it was gone meanwhile.
                origin = origins.setdefault(id(there), Left(there, began, event))
                left = left or origin
        states.append((left, tuple(open_.values())))
    return [event.t for event in events], states


def _ends(events: Sequence[Event]) -> dict[int, Event]:
    """Where annotations ended, by the ``id`` of where they began: those that a thread began last end first."""
    ends: dict[int, Event] = {}
    open_: defaultdict[str, list[Event]] = defaultdict(list)
    for event in events:
        if event.action is Action.ENTER:
            open_[event.thread].append(event)
        elif event.action is Action.LEAVE and open_[event.thread]:
            ends[id(open_[event.thread].pop())] = event
    return ends


def _by_key(events: Iterable[Event], action: Action) -> dict[str, list[Event]]:
    found: defaultdict[str, list[Event]] = defaultdict(list)
    for event in events:
        if event.action is action:
            for key in _keys(event.value):
                found[key].append(event)
    return found


def _keys(text: str) -> list[str]:
    return text.split(", ") if text else []
