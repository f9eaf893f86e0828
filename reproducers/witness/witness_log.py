"""Writes a witness's log: one JSON object a line, bounded, flushed often enough for a process that is killed.

Of each thread the first events and the last ones stay. The file grows by whole lines in one write; once it holds many
lines too many it is written anew beside itself and moved into place.
"""

from __future__ import annotations

import _thread
import atexit
import dis
import json
import os
import platform
import sys
import threading
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import CodeType
from typing import Any

from witness_lanes import PATIENCE, Lane, Lanes, Stack, clock
from witness_standing import look
from witness_targets import STANDING

FIRST, LAST = 2_000, 10_000
"""Events of a thread that are kept."""
INTERVAL = 0.3
"""Seconds between two flushes."""
_LIBRARIES = ("site-packages", "dist-packages")


class Log:
    """The file. All of it but ``say`` runs in the writer's thread, and once more when the process ends."""

    def __init__(self, path: str, lanes: Lanes) -> None:
        # One that a process before this one left, of the same trial, stays.
        self._path = f"{path}-{os.getpid()}" if Path(path).exists() else path
        self._lanes, self._lock, self._ended = lanes, threading.Lock(), False
        self._clock, self._unix = clock(), time.time()
        self._said: list[str] = []
        self._told = 0
        self._first: dict[int, int] = {}
        self._last: dict[int, deque[str]] = {}
        self._head: list[str] = []
        self._beyond = self._removed = self._dropped = 0
        self._counted: dict[tuple[str, str, str], int] = {}
        self._stacks: dict[int, str] = {}
        self.say(witness=1, python=platform.python_version(), pid=os.getpid(), started=self._unix)
        self._descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_TRUNC, 0o644)
        self._flush()

    def say(self, **words: Any) -> None:
        """Add a line that is always kept; from any thread."""
        self._said.append(json.dumps(words))

    def begin(self) -> None:
        """Flush from now on, in a thread that nothing waits for.

        `threading` does not know it: a program that joins every thread of ``threading.enumerate()`` would never end.
        """
        self.say(watched=STANDING, where="all threads", how="their stacks while one waits long for the compile lock")
        atexit.register(self.end)
        os.register_at_fork(after_in_child=self._forked)
        _thread.start_new_thread(self._run, ())

    def _forked(self) -> None:
        # The writer may have held the lock while the process forked, and is not there to give it back.
        self._lanes.alive, self._ended, self._lock = False, True, threading.Lock()

    def _run(self) -> None:
        self._lanes.apart()
        while not self._ended:
            self._lanes.wake.acquire(timeout=INTERVAL)
            waiting = [self._lanes.waiting.popleft() for _ in range(len(self._lanes.waiting))]
            look(self._lanes)
            with self._lock:
                if not self._ended:
                    self._flush_or_stop()
            for done in waiting:
                done.release()

    def end(self) -> None:
        """Write what is left and the last line."""
        # Not for ever: a handler of a signal that came while this thread wrote may end the process.
        if not self._lock.acquire(timeout=PATIENCE):
            return
        try:
            if not self._ended:
                self._ended = True
                self._said.append(json.dumps({"end": self._time(clock())}))
                self._flush_or_stop()
                self._lanes.alive = False
        finally:
            self._lock.release()

    def _flush_or_stop(self) -> None:
        try:
            self._flush()
        except OSError as error:
            # A full disk, say: the trial goes on as it would without a witness.
            self._lanes.alive, self._ended = False, True
            with suppress(OSError, ValueError, AttributeError):
                print(f"witness: its log ends early: {error}", file=sys.stderr)

    def _time(self, t: float) -> float:
        return round(self._unix + t - self._clock, 7)

    def _flush(self) -> None:
        lines = self._said[self._told :]
        self._told += len(lines)
        for number, lane in enumerate(list(self._lanes.all)):
            self._take(number, lane, lines)
        lines += self._sums()
        if lines:
            _write(self._descriptor, lines)
        if self._beyond > 2 * LAST:
            self._compact()

    def _take(self, number: int, lane: Lane, lines: list[str]) -> None:
        while True:
            try:
                t, thread, state, action, value, stack = lane.queue.popleft()
            except IndexError:
                return
            if stack[0] not in self._stacks and stack[0]:
                self._stacks[stack[0]] = json.dumps({"stack": stack[0], "frames": _frames(stack)})
                lines.append(self._stacks[stack[0]])
            line = json.dumps({"e": [self._time(t), thread, state, action, value, stack[0]]})
            lines.append(line)
            if self._first.setdefault(number, 0) < FIRST:
                self._first[number] += 1
                self._head.append(line)
            else:
                kept = self._last.setdefault(number, deque(maxlen=LAST))
                self._beyond += len(kept) == LAST
                kept.append(line)

    def _sums(self) -> list[str]:
        """The lines of sums that changed; of several of one kind the last one holds."""
        sums: dict[tuple[str, str, str], int] = {}
        for lane in list(self._lanes.all):
            for (state, action), count in list(lane.counts.items()):
                key = (lane.name, state, action)
                sums[key] = sums.get(key, 0) + count
        changed = {key: count for key, count in sums.items() if self._counted.get(key) != count}
        self._counted.update(changed)
        lines = [json.dumps({"count": [*key, count]}) for key, count in changed.items()]
        dropped = self._removed + sum(lane.lost for lane in list(self._lanes.all))
        if dropped != self._dropped:
            self._dropped = dropped
            lines.append(json.dumps({"dropped": dropped}))
        return lines

    def _compact(self) -> None:
        """Write the file anew, with what is to be kept."""
        tails = [line for lines in self._last.values() for line in lines]
        self._removed, self._beyond = self._removed + self._beyond, 0
        self._counted, self._dropped = {}, 0  # all of them again
        lines = [*self._said, *self._stacks.values(), *self._head, *tails, *self._sums()]
        aside = f"{self._path}~"
        descriptor = os.open(aside, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_TRUNC, 0o644)
        _write(descriptor, lines)
        Path(aside).replace(self._path)
        os.close(self._descriptor)
        self._descriptor = descriptor


def _write(descriptor: int, lines: Sequence[str]) -> None:
    data = memoryview(("\n".join(lines) + "\n").encode(errors="backslashreplace"))
    while data:
        data = data[os.write(descriptor, data) :]


def _frames(stack: Stack) -> list[list[Any]]:
    return [[_short(code.co_filename), _line(code, offset), code.co_name] for code, offset in stack[1]]


def _line(code: CodeType, offset: int) -> int:
    starts = [(start, line) for start, line in dis.findlinestarts(code) if line is not None]
    place = bisect_right([start for start, _ in starts], offset)
    return starts[place - 1][1] if place else code.co_firstlineno


def _short(path: str) -> str:
    parts = path.replace("\\", "/").split("/")
    for place in range(len(parts) - 1, -1, -1):
        if parts[place] in _LIBRARIES:
            return "/".join(parts[place + 1 :])
    return "/".join(parts[-2:])
