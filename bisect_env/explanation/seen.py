"""A log with what was made of it, to be asked what was open in which thread at a moment. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from bisect_env.explanation.noted import Noted
from bisect_env.explanation.records import State, Window, WitnessLog
from bisect_env.explanation.windows import Stuck, holds, stuck_flags


@dataclass(frozen=True)
class Seen:
    """A trial's log with what was made of it."""

    log: WitnessLog
    windows: tuple[Window, ...]
    stuck: tuple[Stuck, ...]

    @classmethod
    def of(cls, log: WitnessLog, windows: tuple[Window, ...]) -> Seen:
        """With the times that a flag was stuck."""
        return cls(log, windows, stuck_flags(log, windows))

    def foreign(self, state: State, thread: str, t: float) -> Window | None:
        """The window of another thread that was open at a time: of several the one that opened last."""
        others = (name for name in self._threads.get(state, ()) if name != thread)
        found = [window for name in others if (window := self.own(state, name, t)) is not None]
        return max(found, key=lambda window: window.start, default=None)

    def own(self, state: State, thread: str, t: float) -> Window | None:
        """The thread's own window that was open at a time."""
        windows = self._by_lane.get((state, thread), ())
        place = bisect_right(windows, t, key=lambda window: window.start) - 1
        return windows[place] if place >= 0 and holds(windows[place], t) else None

    @cached_property
    def noted(self) -> Noted:
        """FX annotations."""
        return Noted(self.log.events)

    @cached_property
    def compiles(self) -> Mapping[str, Sequence[Window]]:
        """The compiles of each number, forward and backward, in whatever threads."""
        found: defaultdict[str, list[Window]] = defaultdict(list)
        for window in self.windows:
            if window.state is State.COMPILE:
                found[number_of(window)].append(window)
        return found

    @cached_property
    def _by_lane(self) -> Mapping[tuple[State, str], Sequence[Window]]:
        """Each thread's windows of a state, by their start; none of them overlap, so that one can be looked up."""
        lanes: defaultdict[tuple[State, str], list[Window]] = defaultdict(list)
        for window in self.windows:
            lanes[window.state, window.thread].append(window)
        return lanes

    @cached_property
    def _threads(self) -> Mapping[State, Sequence[str]]:
        """The threads that have windows of a state."""
        threads: defaultdict[State, list[str]] = defaultdict(list)
        for state, thread in self._by_lane:
            threads[state].append(thread)
        return threads

    def stuck_at(self, state: State, t: float) -> Stuck | None:
        """The flag's sticking that a time falls into."""
        return next((each for each in self.stuck if each.state is state and each.holds(t)), None)


def number_of(compile_: Window | None) -> str:
    """``0/2``, that of a forward and of its backward; empty where it has none."""
    last = "" if compile_ is None else compile_.opened.value.rpartition(" ")[2]
    return last if "/" in last else ""
