"""The events file of a trial, read into typed facts. Anything malformed is ignored and counted, never an error."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from bisect_env.trials.records import Failure, PathCount, Round, StepTime, Utilisation
from bisect_env.trials.signature import signature_of
from bisect_env.trials.traces import MESSAGE_LIMIT, TRACEBACK_LIMIT, cut


@dataclass
class Facts:
    """What a reproducer said. Built by :func:`read` and not changed afterwards."""

    times: list[float] = field(default_factory=list)
    """Unix time of every event understood, in the file's order."""
    ignored: int = 0
    """Lines that are no event, unknown events, and events with values of the wrong kind."""
    ready: float | None = None
    done: bool = False
    import_failure: Failure | None = None
    failures: list[Failure] = field(default_factory=list)
    paths: list[PathCount] = field(default_factory=list)
    steps: list[StepTime] = field(default_factory=list)
    peak_bytes: int | None = None
    predicted_bytes: dict[str, int] = field(default_factory=dict)
    losses: dict[str, tuple[float, ...]] = field(default_factory=dict)
    numbers: list[tuple[str, float, float]] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    devices: tuple[str, ...] = ()
    exposures: int | None = None
    cache_hits: int | None = None
    cache_misses: int | None = None
    windows: int = 0
    open_windows: dict[str, list[str]] = field(default_factory=dict)
    """Threads that began a compile and have not ended it, and what they compile."""
    notes: list[tuple[str, str]] = field(default_factory=list)
    resets: int = 0
    """Resets of the compiled state before the first failure, or in all."""
    phase: str = ""
    """Part of the work that the earliest failure fell in."""
    rounds: list[Round] = field(default_factory=list)
    waiting: int | None = None
    """Round that it last said to wait for."""
    utilisation: list[Utilisation] = field(default_factory=list)

    def longest_silence(self, end: float) -> float:
        """Seconds between two events, or between the last one and ``end`` (unix time), from ``ready`` on; 0 without.

        Events of several threads are written in nearly their order; they are sorted first.
        """
        if self.ready is None:
            return 0.0
        times = sorted(t for t in self.times if t >= self.ready)
        times.append(max(end, times[-1]))
        return max(later - earlier for earlier, later in itertools.pairwise(times))


def read(text: str) -> Facts:
    """The facts in an events file's content."""
    facts = Facts()
    lines = text.split("\n")
    # The last piece is empty when the file ends whole; otherwise it is torn, or the writer lost only the line's end.
    torn = lines.pop()
    for line in lines:
        if line.strip() and not _take(facts, line):
            facts.ignored += 1
    if torn.strip():
        _take(facts, torn)
    facts.failures.sort(key=lambda failure: failure.t)
    return facts


def _take(facts: Facts, line: str) -> bool:
    try:
        event = json.loads(line)
        name, t = event["event"], _finite(event["t"])
        taker = _TAKERS.get(name)
        if taker is None:
            return False
        taker(facts, event, t)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        return False
    facts.times.append(t)
    return True


def _finite(value: Any) -> float:
    number = _real(value)
    if not math.isfinite(number):
        raise ValueError(value)
    return number


def _real(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(value)
    return float(value)


def _measured(value: Any) -> float:
    # Strict JSON has no NaN, and writers put null or a string in its place. It must stay a number that never passes.
    return math.nan if value is None or isinstance(value, str) else _real(value)


def _count(value: Any) -> int:
    number = _finite(value)
    if number < 0 or not number.is_integer():
        raise ValueError(value)
    return int(value)


def _positive(value: Any) -> float:
    number = _finite(value)
    if number <= 0:
        raise ValueError(value)
    return number


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _pairs(value: Any) -> Iterable[tuple[str, Any]]:
    if not isinstance(value, dict):
        raise TypeError(value)
    return value.items()


def _failure(event: dict[str, Any], t: float, thread: str) -> Failure:
    kind, message = _text(event["type"]), _text(event.get("message", ""))
    signature = signature_of(kind, message, _text(event.get("module") or ""))
    traceback = cut(_text(event.get("traceback") or ""), TRACEBACK_LIMIT)
    return Failure(thread, signature, cut(message, MESSAGE_LIMIT), _text(event.get("where") or ""), traceback, t)


def _nothing(facts: Facts, event: dict[str, Any], t: float) -> None:
    """`start` and `alive`: their time is all they say."""


def _import_failed(facts: Facts, event: dict[str, Any], t: float) -> None:
    facts.import_failure = _failure(event, t, "main")


def _ready(facts: Facts, event: dict[str, Any], t: float) -> None:
    versions = {name: str(value) for name, value in _pairs(event.get("versions") or {}) if value is not None}
    devices = event.get("devices") or []
    if not isinstance(devices, list):
        raise TypeError(devices)
    facts.ready, facts.versions, facts.devices = t, versions, tuple(str(device) for device in devices)


def _window(facts: Facts, event: dict[str, Any], t: float) -> None:
    thread, phase, what = _text(event["thread"]), event["phase"], _text(event.get("what") or "compile")
    if phase == "begin":
        facts.windows += 1
        facts.open_windows.setdefault(thread, []).append(what)
    elif phase == "end":
        # An end without a beginning is a compile that began before the reproducer could see it.
        if facts.open_windows.get(thread):
            facts.open_windows[thread].pop()
        if not facts.open_windows.get(thread):
            facts.open_windows.pop(thread, None)
    else:
        raise ValueError(phase)


def _step(facts: Facts, event: dict[str, Any], t: float) -> None:
    seconds, warm = _finite(event["seconds"]), event["warm"]
    if not isinstance(warm, bool) or seconds < 0:
        raise TypeError(event)
    facts.steps.append(StepTime(_text(event["thread"]), _count(event["tokens"]), seconds, t, warm))


def _path(facts: Facts, event: dict[str, Any], t: float) -> None:
    signs = tuple((_text(name), _count(seen)) for name, seen in _pairs(event["signs"]))
    facts.paths.append(PathCount(_text(event["thread"]), _count(event["calls"]), signs))


def _failed(facts: Facts, event: dict[str, Any], t: float) -> None:
    failure, phase = _failure(event, t, _text(event["thread"])), _text(event.get("phase") or "")
    if all(t < other.t for other in facts.failures):
        facts.phase = phase
    facts.failures.append(failure)


def _repeat(facts: Facts, event: dict[str, Any], t: float) -> None:
    _count(event["index"])
    resets = _count(event["resets"])
    # Threads are joined before a repeat begins, so that the file's order tells what a failure came after.
    if not facts.failures:
        facts.resets = resets


def _round(facts: Facts, event: dict[str, Any], t: float) -> None:
    facts.rounds.append(Round(_count(event["index"]), _count(event["tokens"]), _positive(event["seconds"]), t))


def _waiting(facts: Facts, event: dict[str, Any], t: float) -> None:
    facts.waiting = _count(event["round"])


def _utilised(facts: Facts, event: dict[str, Any], t: float) -> None:
    operations, seconds, ceiling = (_positive(event[key]) for key in ("operations", "seconds", "ceiling"))
    facts.utilisation.append(Utilisation(_text(event["what"]), operations, seconds, ceiling))


def _memory(facts: Facts, event: dict[str, Any], t: float) -> None:
    peak = _count(event["peak_bytes"])
    predicted = {_text(name): int(_finite(size)) for name, size in _pairs(event.get("predicted") or {})}
    facts.peak_bytes = max(facts.peak_bytes or 0, peak)
    facts.predicted_bytes.update(predicted)


def _numbers(facts: Facts, event: dict[str, Any], t: float) -> None:
    facts.numbers.append((_text(event["what"]), _measured(event["error"]), _measured(event["tolerance"])))


def _losses(facts: Facts, event: dict[str, Any], t: float) -> None:
    if not isinstance(event["values"], list):
        raise TypeError(event)
    facts.losses[_text(event["thread"])] = tuple(_measured(value) for value in event["values"])


def _exposures(facts: Facts, event: dict[str, Any], t: float) -> None:
    facts.exposures = _count(event["count"])


def _cache(facts: Facts, event: dict[str, Any], t: float) -> None:
    facts.cache_hits, facts.cache_misses = _count(event["hits"]), _count(event["misses"])


def _note(facts: Facts, event: dict[str, Any], t: float) -> None:
    value = event["value"]
    facts.notes.append((_text(event["key"]), value if isinstance(value, str) else json.dumps(value)))


def _done(facts: Facts, event: dict[str, Any], t: float) -> None:
    facts.done = True


_TAKERS = {
    "start": _nothing,
    "alive": _nothing,
    "import_failed": _import_failed,
    "ready": _ready,
    "window": _window,
    "step": _step,
    "path": _path,
    "failure": _failed,
    "repeat": _repeat,
    "round": _round,
    "waiting": _waiting,
    "utilisation": _utilised,
    "memory": _memory,
    "numbers": _numbers,
    "losses": _losses,
    "exposures": _exposures,
    "cache": _cache,
    "note": _note,
    "done": _done,
}
