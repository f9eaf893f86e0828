"""Durations, budgets and thresholds of a command line: ``90s``, ``1h30m``, ``200 trials, 2h``, ``memory>60GB``.

Every function raises :class:`bisect_env.matrix.problems.Unfit` for what it cannot read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from bisect_env.bisection.records import Budget, Measure, Question
from bisect_env.matrix.problems import Unfit, one_of, shown

_SECONDS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:min|[smhd])\s*)+")
_TRIALS = re.compile(r"(\d+)\s*trials?")
_UNITS = {"": 1, "b": 1} | {
    f"{prefix}{end}".lower(): factor**power
    for power, prefix in enumerate("kMGT", start=1)
    for end, factor in (("", 1000), ("B", 1000), ("i", 1024), ("iB", 1024))
}
_THRESHOLD = re.compile(r"(throughput|memory)\s*([<>])\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)(?:/s)?")
QUESTIONS = "failure, 'throughput<20000' (tokens a second) or 'memory>60GB' (peak of the device)"
HANGS = ("bad", "good", "skip")


def duration(text: str) -> float:
    """Seconds: ``90s``, ``20m``, ``1h30m``."""
    written = text.strip().lower()
    if not _DURATION.fullmatch(written):
        raise Unfit(f"{shown(text)} is no duration", "a number with its unit: 90s, 20m, 2h, 1h30m")
    return sum(float(number) * _SECONDS[unit] for number, unit in re.findall(r"(\d+(?:\.\d+)?)(min|[smhd])", written))


def budget(texts: Iterable[str]) -> Budget:
    """The limits that were given, each once: ``200 trials``, ``2h``, or both, with a comma or one after the other."""
    trials: int | None = None
    seconds: float | None = None
    for part in (part.strip() for text in texts for part in text.split(",")):
        counted = _TRIALS.fullmatch(part.lower())
        if (trials if counted else seconds) is not None:
            raise Unfit(f"{shown(part)} after another limit of that kind", "one number of trials and one duration")
        if counted:
            trials = int(counted[1])
        elif part.isdecimal():
            raise Unfit(f"{shown(part)}: trials or time?", f"'{part} trials', {part}m or {part}h")
        else:
            try:
                seconds = duration(part)
            except Unfit:
                raise Unfit(f"{shown(part)} is no budget", "'200 trials', 2h, or '200 trials, 2h'") from None
    if trials == 0 or seconds == 0:
        raise Unfit("a budget of nothing", "at least one trial; --dry-run shows the plan and runs nothing")
    return Budget(trials, seconds)


def question(text: str, any_failure: bool, signature: str | None, hang: str) -> Question:
    """What makes a trial count as a failure."""
    if text.strip() == Measure.FAILURE.value:
        return Question(any_failure=any_failure, signature=signature, hang=hang)
    found = _THRESHOLD.fullmatch(text.strip())
    if found is None or found[4].lower() not in _UNITS:
        raise Unfit(f"{shown(text)} is no question", QUESTIONS)
    kind, sign, number, unit = found.groups()
    if (kind, sign) not in (("throughput", "<"), ("memory", ">")):
        better = "lower throughput, or more memory, is what counts as worse"
        raise Unfit(f"{shown(text)}: {better}", QUESTIONS)
    threshold = float(number) * _UNITS[unit.lower()]
    if threshold == 0:
        raise Unfit(f"{shown(text)}: nothing is below, or everything above, that", QUESTIONS)
    measure = Measure.THROUGHPUT_BELOW if kind == "throughput" else Measure.MEMORY_ABOVE
    return Question(measure, threshold, any_failure, signature, hang)


def timeout(text: str) -> tuple[float | None, str]:
    """How long a trial may take, None where that is not said, and what it says when it takes longer.

    ``10m`` (then it is bad), ``10m:good``, ``good``.
    """
    written, colon, meaning = text.rpartition(":")
    if not colon:
        written, meaning = ("", text) if text in HANGS else (text, HANGS[0])
    if meaning not in HANGS:
        raise Unfit(f"{shown(text)}: a trial that takes too long is {shown(meaning)}", one_of(HANGS, meaning))
    return (duration(written) if written else None), meaning


def assignment(text: str, example: str) -> tuple[str, str]:
    """``KEY=VALUE``, split at the first sign."""
    key, sign, value = text.partition("=")
    if not sign or not key.strip():
        raise Unfit(f"{shown(text)} has no '='" if not sign else f"{shown(text)} has no name", example)
    return key.strip(), value
