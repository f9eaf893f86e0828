"""What the threads of a witnessed process do: a queue of events a thread, without locks, and short stacks.

Every thread appends to a queue of its own; the writer's thread alone takes from them. One monotonic clock for all.
"""

from __future__ import annotations

import _thread
import itertools
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import CodeType, TracebackType
from typing import Any

from witness_annotations import Annotations

FRAMES = 12
"""Of a stack, the innermost."""
STACKS = 20_000
"""Different stacks kept; an event beyond has none."""
QUEUED = 50_000
"""Events of a thread waiting for the writer, at most; the oldest go."""
PATIENCE = 1.0
"""Seconds that a thread waits at most until what it did is written."""
AT_ONCE = 200
"""Times that one does: a program that fails over and over is not slowed down for ever."""

clock = time.perf_counter
_HERE = str(Path(__file__).parent)

Stack = tuple[int, tuple[tuple[CodeType, int], ...]]
"""Its number, and of each frame the code and the offset in it."""
Event = tuple[float, str, str, str, str, Stack]
"""Time of the clock, thread, state, action, value, stack."""
NO_STACK: Stack = (0, ())

SEEN_BY = "__bisect_env_seen_by__"
"""The attribute of an exception that says which threads it came by, and when first."""
_ATTRIBUTES = vars(BaseException)["__dict__"]
"""Of an exception, whatever its class makes of that name."""


def attributes_of(error: BaseException) -> dict[str, Any]:
    """Those that are written into it; they go where it goes, and keep nothing alive."""
    attributes: dict[str, Any] = _ATTRIBUTES.__get__(error)
    return attributes


class Lane:
    """One thread. Only this thread writes to it; the writer's takes events from ``queue``, and adds where it stands."""

    def __init__(self, name: str, thread: threading.Thread) -> None:
        self._name, self._thread = name, thread
        self.ident = threading.get_ident()
        self.queue: deque[Event] = deque(maxlen=QUEUED)
        self.lost = 0
        """Events that the queue had no room for."""
        self.counts: dict[tuple[str, str], int] = {}
        """State and action of what is only counted."""
        self.last: dict[str, Any] = {}
        """By state, the value that this thread read last."""
        self.met: dict[str, tuple[int, int]] = {}
        """By state, the store and the stack's number of the last event of reading it as set."""
        self.held: dict[str, Event] = {}
        """By state, a read that was only counted: it becomes an event when the thread obeys it."""
        self.mine: dict[str, bool] = {}
        """States that this thread has set."""
        self.depth = 0
        """Traces and compiles that are open in this thread."""
        self.spans: list[tuple[str, str, Any, bool]] = []
        """What is entered and not left: which function, what was told, the exception being handled, whether told."""
        self.annotations = Annotations()
        self.replaced = 0
        """Annotations written when this thread was last told to have replaced what another one was inside of."""
        self.waits: float | None = None
        """Since when it waits for a lock."""
        self.stood = 0.0
        """Seconds of this wait after which it was told last where all threads stand."""
        self.given: set[tuple[str, str]] = set()
        """Names and values of the configuration that this thread has set."""
        self.config: dict[str, Any] | None = None
        """Values of the configuration as this thread saw them last; None before its first compiled call."""

    @property
    def name(self) -> str:
        """As the reproducer names it; workers of the controls change it on the way."""
        return self._name or self._thread.name

    @property
    def lives(self) -> bool:
        """Whether its thread has not ended, as far as Python knows."""
        return self.is_foreign or self._thread.is_alive()

    @property
    def is_foreign(self) -> bool:
        """Whether no Python code started its thread: autograd's are such."""
        return isinstance(self._thread, threading._DummyThread)

    def saw(self, error: BaseException, t: float) -> None:
        """An exception comes by, maybe on its way to another thread: pools raise it again in the one that asks.

        Autograd's threads are left out: theirs is raised in the thread that they work for, and is that one's.
        """
        if not self.is_foreign:
            attributes_of(error).setdefault(SEEN_BY, {}).setdefault(self.name, t)

    def raiser(self, errors: Iterable[BaseException]) -> tuple[str, float]:
        """Of an exception that ends this thread: itself and now, or the thread that it came by first, and when.

        Args:
            errors: the one that it began with first, and what was raised from each.
        """
        seen = next((seen for error in errors if (seen := attributes_of(error).get(SEEN_BY))), None)
        return (self.name, clock()) if not seen or self.name in seen else next(iter(seen.items()))

    def count(self, state: str, action: str) -> None:
        """One more that is no event."""
        key = (state, action)
        self.counts[key] = self.counts.get(key, 0) + 1


class Lanes:
    """All threads of the process."""

    def __init__(self) -> None:
        self.all: list[Lane] = []
        self._here, self._stacks = threading.local(), dict[tuple[int, ...], Stack]()
        self._numbers, self._foreign = itertools.count(1), itertools.count(1)
        self._by_ident: dict[int, Lane] = {}
        self.alive = True
        """False in a forked child, where nobody would write anything, and once the log is closed."""
        self.wake = _thread.allocate_lock()
        """Given back to have the writer write at once."""
        self.wake.acquire()
        self.waiting: deque[_thread.LockType] = deque()
        """Of threads that wait until it has; each is given back then."""
        self._at_once = AT_ONCE
        self.annotated = 0
        """Annotations that all threads wrote so far."""
        self.annotating: set[Lane] = set()
        """Threads that are inside of one."""

    def here(self) -> Lane:
        """The calling thread's lane."""
        try:
            lane: Lane = self._here.lane
        except AttributeError:
            lane = self._here.lane = self._begun()
        return lane

    def apart(self) -> None:
        """The calling thread is none of the program's: what its garbage collection does is told of nobody."""
        self._here.lane = Lane("the witness", threading.main_thread())

    def _begun(self) -> Lane:
        thread = threading.current_thread()
        name = "main" if thread is threading.main_thread() else ""
        if isinstance(thread, threading._DummyThread):
            known = self._by_ident.get(threading.get_ident())
            if known is not None:
                return known
            number = next(self._foreign)
            name = "autograd" if number == 1 else f"autograd {number}"
        lane = Lane(name, thread)
        if isinstance(thread, threading._DummyThread):
            self._by_ident[threading.get_ident()] = lane
        self.all.append(lane)
        return lane

    def event(self, lane: Lane, t: float, state: str, action: str, value: str = "") -> None:
        """Keep one event of the calling thread, with the stack it came from."""
        if self.alive:
            self.keep(lane, (t, lane.name, state, action, value, self.stack()))

    def keep(self, lane: Lane, event: Event) -> None:
        """Keep an event that was made before."""
        lane.lost += len(lane.queue) == QUEUED
        lane.queue.append(event)

    def written(self) -> None:
        """Wait until what the threads did so far is written: the process may be about to die.

        The writer's thread writes it. The calling one may be inside of a compiled function, where dynamo looks at every
        frame that runs.
        """
        if not self.alive or not self._at_once:
            return
        self._at_once -= 1
        done = _thread.allocate_lock()
        done.acquire()
        self.waiting.append(done)
        with suppress(RuntimeError):  # somebody else has just given it back
            self.wake.release()
        done.acquire(timeout=PATIENCE)

    def stack_of(self, trace: TracebackType | None) -> Stack:
        """Where an exception was raised."""
        frames: deque[tuple[CodeType, int]] = deque(maxlen=FRAMES)
        while trace is not None:
            code = trace.tb_frame.f_code
            if not code.co_filename.startswith(_HERE):
                frames.appendleft((code, trace.tb_lasti))
            trace = trace.tb_next
        return self._known([*frames])

    def stack(self) -> Stack:
        """The calling thread's, without the witness's own frames."""
        return self.stack_from(sys._getframe(1))

    def stack_from(self, frame: Any) -> Stack:
        """From a frame outwards, without the witness's own frames."""
        frames: list[tuple[CodeType, int]] = []
        while frame is not None and len(frames) < FRAMES:
            code = frame.f_code
            if not code.co_filename.startswith(_HERE):
                frames.append((code, frame.f_lasti))
            frame = frame.f_back
        return self._known(frames)

    def _known(self, frames: list[tuple[CodeType, int]]) -> Stack:
        key = tuple([word for code, offset in frames for word in (id(code), offset)])
        known = self._stacks.get(key)
        if known is None:
            if len(self._stacks) >= STACKS:
                return NO_STACK
            # The code objects are kept, so that their ids stay theirs.
            known = self._stacks.setdefault(key, (next(self._numbers), tuple(frames)))
        return known
