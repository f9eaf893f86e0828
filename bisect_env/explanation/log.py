"""Reads a witness's log: one JSON object a line, as docs/architecture.md describes them. Pure.

A torn last line, a line of something else and a line with values of the wrong kind are left out, never an error: the
process may have been killed, and a command of the user's own may have written to the same file.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any

from bisect_env.explanation.records import Action, Event, Frame, State, Unknown, Watched, WitnessLog


@dataclass
class _Reading:
    """What has been read so far."""

    begun: bool = False
    torch: str = ""
    python: str = ""
    started: float = 0.0
    watched: list[Watched] = field(default_factory=list)
    unknown: list[Unknown] = field(default_factory=list)
    stacks: dict[int, tuple[Frame, ...]] = field(default_factory=dict)
    events: list[tuple[Event, int]] = field(default_factory=list)
    counts: dict[tuple[str, State, Action], int] = field(default_factory=dict)
    dropped: int = 0
    thinned: int = 0
    complete: bool = False


def read_log(text: str) -> WitnessLog | None:
    """The log in ``text``; None when no witness wrote it, so that nothing is known of the process.

    Stacks are put in place of their numbers, whatever the order of the lines. Of several counts of one kind the last
    one holds. Events that the runner left out to keep the record small are among those ``dropped``.
    """
    reading = _Reading()
    for line in text.split("\n"):
        try:
            words = json.loads(line)
            if isinstance(words, dict):
                _take(reading, words)
        except (ValueError, KeyError, TypeError, IndexError, RecursionError, OverflowError):
            continue
    if not reading.begun:
        return None
    placed = sorted(reading.events, key=lambda pair: pair[0].t)
    events = tuple(
        Event(event.t, event.thread, event.state, event.action, event.value, reading.stacks.get(number, ()))
        for event, number in placed
    )
    named = [event.thread for event in events] + [thread for thread, _, _ in reading.counts]
    return WitnessLog(
        torch=reading.torch,
        python=reading.python,
        started=reading.started,
        threads=tuple(dict.fromkeys(named)),
        watched=tuple(dict.fromkeys(reading.watched)),
        unknown=tuple(dict.fromkeys(reading.unknown)),
        events=events,
        counts=tuple((*key, count) for key, count in reading.counts.items()),
        dropped=reading.dropped + reading.thinned,
        complete=reading.complete,
    )


def _take(reading: _Reading, words: dict[str, Any]) -> None:
    if "e" in words:
        t, thread, state, action, value, stack = words["e"]
        event = Event(_time(t), _text(thread), State(state), Action(action), _text(value))
        reading.events.append((event, _whole(stack)))
    elif "stack" in words:
        frames = tuple(Frame(_text(path), _whole(line), _text(name)) for path, line, name in words["frames"])
        reading.stacks[_whole(words["stack"])] = frames
    elif "count" in words:
        thread, state, action, count = words["count"]
        reading.counts[_text(thread), State(state), Action(action)] = _whole(count)
    elif "watched" in words:
        reading.watched.append(Watched(State(words["watched"]), _text(words["where"]), _text(words["how"])))
    elif "unknown" in words:
        reading.unknown.append(Unknown(State(words["unknown"]), _text(words["why"])))
    elif "dropped" in words:
        reading.dropped = _whole(words["dropped"])
    elif "thinned" in words:
        reading.thinned = _whole(words["thinned"])
    elif "torch" in words:
        reading.torch = _text(words["torch"])
    elif "end" in words:
        _time(words["end"])
        reading.complete = True
    elif words.get("witness") == 1:
        reading.python, reading.started = _text(words["python"]), _time(words["started"])
        reading.begun = True


def _time(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError(value)
    return float(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise TypeError(value)
    return value
