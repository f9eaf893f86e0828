"""A witness's log on its way into the record: read as the process left it, and made smaller without losing the point.

The lines are those of docs/architecture.md; which mean what, only as far as that is needed to leave some out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LIMIT = 1_000_000
"""Characters of a log in a record."""
_BEGINNING = 0.3
"""Share of the room for what came first; the rest is for what is near a failure."""
_DECISIVE = ("obeyed", "wait", "raised")
_FAILED = "raised"
"""Action of an exception that ended a thread, and value of what was obeyed and made a call fail."""
_MOMENTS = 20
"""Of these, so many are moments that what happened round them is kept: of a command only the end is known."""
_CHANGES = ("set", "clear", "enter", "leave", "acquire", "release")


def written(path: Path) -> str:
    """The log of the process that wrote most: a command may start several, each with a file beside the first one's."""
    files = [file for file in path.parent.glob(f"{path.name}*") if file.is_file() and not file.name.endswith("~")]
    largest = max(files, key=lambda file: file.stat().st_size, default=None)
    return largest.read_text(errors="replace") if largest else ""


@dataclass(frozen=True)
class _Event:
    place: int
    """Number of its line."""
    text: str
    t: float
    thread: str
    state: str
    action: str
    stack: int
    failed: bool


def thinned(text: str, near: Sequence[float], limit: int = LIMIT) -> str:
    """The log within some ``limit`` characters, with a line that says how many events were left out.

    Kept are all lines that are no events (of the counts the last of each), the first events, those at which a thread
    obeyed or waited, the last change of each state by each thread before each failure (a flag that stays set may have
    been set long ago), and of the others the nearest to a failure, or to the end where nothing failed. Stacks stay
    with the events that have them.

    Args:
        text: the log.
        near: when something failed, unix seconds; what the log itself tells of failures is added.
        limit: characters.
    """
    if len(text) <= limit:
        return text
    events: list[_Event] = []
    stacks: dict[int, tuple[int, str]] = {}
    kept: dict[int, str] = {}
    sums: dict[str, int] = {}
    for place, line in enumerate(text.split("\n")):
        words = _words(line)
        event = _event(place, line, words.get("e"))
        if event is not None:
            events.append(event)
        elif isinstance(words.get("stack"), int):
            stacks[words["stack"]] = place, line
        elif words:
            kept.pop(sums.get(_sum(words), place), None)
            kept[place] = line
            if _sum(words):
                sums[_sum(words)] = place
    events.sort(key=lambda event: event.t)
    room = limit - sum(len(line) + 1 for line in kept.values())
    beginning = int(room * _BEGINNING)
    room -= beginning - _keep(events, beginning, kept, stacks)
    failed = [event.t for event in events if event.failed]
    moments = [*near, *failed[:_MOMENTS]] or [event.t for event in events[-1:]]
    important = _last_changes(events, moments)

    def rank(event: _Event) -> tuple[bool, float]:
        distance = min(abs(event.t - moment) for moment in moments)
        return event.place not in important and event.action not in _DECISIVE, distance

    _keep(sorted(events, key=rank), room, kept, stacks)
    left = sum(event.place not in kept for event in events)
    return "\n".join([*(line for _, line in sorted(kept.items())), json.dumps({"thinned": left})]) + "\n"


def _keep(events: Iterable[_Event], room: int, kept: dict[int, str], stacks: dict[int, tuple[int, str]]) -> int:
    """Keep events, with their stacks, until the room is used up; what is left of it."""
    for event in events:
        if event.place in kept:
            continue
        place, stack = stacks.get(event.stack, (event.place, ""))
        cost = len(event.text) + 1 + (len(stack) + 1 if place not in kept else 0)
        if cost > room:
            break
        room -= cost
        if stack:
            kept[place] = stack
        kept[event.place] = event.text
    return room


def _last_changes(events: Sequence[_Event], moments: Sequence[float]) -> set[int]:
    """The lines of each thread's last opening and last closing of each state before each moment."""
    found: set[int] = set()
    last: dict[tuple[str, str, str], int] = {}
    waiting = sorted(moments)
    for event in events:
        while waiting and event.t > waiting[0]:
            found.update(last.values())
            waiting.pop(0)
        if event.action in _CHANGES:
            last[event.thread, event.state, event.action] = event.place
    return found | set(last.values()) if waiting else found


def _sum(words: dict[str, Any]) -> str:
    """What a line is a sum of; the last line of each holds. Empty for other lines."""
    if isinstance(words.get("count"), list):
        return repr(words["count"][:-1])
    return "dropped" if "dropped" in words else ""


def _words(line: str) -> dict[str, Any]:
    try:
        words = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return words if isinstance(words, dict) else {}


def _event(place: int, line: str, words: Any) -> _Event | None:
    try:
        t, thread, state, action, value, stack = words
        failed = _FAILED in (action, value)
        return _Event(place, line, float(t), str(thread), str(state), str(action), int(stack), failed)
    except (TypeError, ValueError, OverflowError):
        return None
