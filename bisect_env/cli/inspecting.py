"""An inspection from what the command line asks to what was found: what may be asked, and all places read."""

from __future__ import annotations

import queue
import re
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from bisect_env.errors import BadInput
from bisect_env.inspection.compare import across
from bisect_env.inspection.differences import difference
from bisect_env.inspection.inspected import Asked, Cost, Inspection, Place, Traced, look, stand_in
from bisect_env.inspection.records import Found, Held, NotFound, Sources
from bisect_env.inspection.traffic import Traffic
from bisect_env.matrix.problems import shown
from bisect_env.report.inspection import missing
from bisect_env.snapshots.sources import environment_of
from bisect_env.words import counted

Item = TypeVar("Item")
Result = TypeVar("Result")

IDENTIFIERS = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


@dataclass(frozen=True)
class Wanted:
    """What the command line wants besides what each place is asked."""

    asked: Asked
    diff: bool
    script: Path | None
    arguments: tuple[str, ...]


def check(wanted: Wanted) -> None:
    """Refuse what cannot be asked, before anything is read.

    Raises:
        BadInput: the name is no dotted name, or a pattern is no regular expression.
    """
    asked = wanted.asked
    if not IDENTIFIERS.fullmatch(asked.name):
        example = "a dotted name, for example torch.nn.attention.flex_attention.flex_attention"
        raise BadInput("NAME", "", f"{shown(asked.name)} is no name of a module or of what is in one", example)
    for option, pattern in [("--match", asked.match), *(("--scan", pattern) for pattern in asked.patterns)]:
        try:
            re.compile(pattern or "")
        except re.error as error:
            found = f"{shown(pattern)} is no regular expression: {error}"
            raise BadInput(option, "", found, "one as Python has them; \\. for a dot, \\( for a bracket") from None
    if wanted.script is None and wanted.arguments:
        words = " ".join(wanted.arguments)
        raise BadInput(
            "ARGS", "", f"{shown(words)}, and no --trace", "one NAME; arguments are for the script of --trace"
        )
    if wanted.script is not None and not asked.patterns:
        raise BadInput("--trace", "", "nothing to scan for: a trace shows more calls to follow", "--scan REGEX as well")


def interpreter(words: Sequence[str], places: int) -> Path:
    """The interpreter that runs the script of ``--trace``.

    Args:
        words: that name the places.
        places: how many they are.

    Raises:
        BadInput: there is not one place, or it is no environment.
    """
    if places != 1 or len(words) != 1:
        raise BadInput("--trace", "", f"{counted(places, 'place')}: a script runs in one", "--in ENVIRONMENT, once")
    python = environment_of(words[0])
    if python is None:
        found = f"{shown(words[0])} is nothing that a script can be run in"
        raise BadInput("--trace", "", found, "--in with the folder of an environment, or its bin/python")
    return python


def inspect(
    sources: Sequence[Sources], wanted: Wanted, traffic: Traffic, traced: Traced | None, began: float
) -> Inspection:
    """Read all places.

    Args:
        sources: the places, opened.
        wanted: what is to be told.
        traffic: of opening them; it grows as they are read.
        traced: the script's calls, where one was run.
        began: when opening them began, as of ``time.monotonic()``.

    Raises:
        BadInput: no place has such a name, or a difference is asked of other than two.
        InfrastructureError: something that is there cannot be read.
    """
    asked = wanted.asked
    if wanted.diff and len(sources) != 2:
        raise BadInput("--diff", "", f"{counted(len(sources), 'place')}", "two: --in A --in B")
    for package in asked.within:
        if all(each.holds(package) is Held.ABSENT for each in sources):
            raise BadInput("--within", "", f"{package} is in none of the places", "a package, such as torch.fx")
    observed = traced.calls if traced is not None else ()
    places = at_once(lambda each: look(each, asked, observed), sources)
    if not any(isinstance(place.found, Found) for place in places):
        raise _nowhere(asked.name, places)
    pairs = zip(sources, places, strict=True)
    places = at_once(lambda pair: stand_in(*pair, asked), pairs)
    surfaces = [place.surface for place in places if place.surface is not None]
    return Inspection(
        asked,
        places,
        across(surfaces) if len(surfaces) > 1 else (),
        Cost(traffic.versions, len(sources) - traffic.versions, traffic.bytes, time.monotonic() - began),
        difference(sources[0], sources[1], asked.name) if wanted.diff else None,
        traced,
    )


def at_once(one: Callable[[Item], Result], items: Iterable[Item]) -> tuple[Result, ...]:
    """``one`` of each item, in order: reading a remote place is mostly waiting. The first error is passed on at once.

    The threads are left to themselves then, and on Ctrl-C: a scan of thousands of functions is not waited for, and
    nothing that they do has to be brought to an end.
    """
    listed = list(items)
    done: queue.SimpleQueue[tuple[int, Result | BaseException]] = queue.SimpleQueue()

    def run(number: int) -> None:
        try:
            done.put((number, one(listed[number])))
        except BaseException as error:  # noqa: BLE001 - raised again by whoever waits
            done.put((number, error))

    for number in range(len(listed)):
        threading.Thread(target=run, args=(number,), daemon=True).start()
    results: dict[int, Result] = {}
    while len(results) < len(listed):
        number, result = done.get()
        if isinstance(result, BaseException):
            raise result
        results[number] = result
    return tuple(results[number] for number in range(len(listed)))


def _nowhere(name: str, places: Sequence[Place]) -> BadInput:
    """The name is in none of the places: what each has instead, once where they say the same."""
    said: dict[str, list[str]] = {}
    for place in places:
        if isinstance(place.found, NotFound):
            said.setdefault(missing(place.found), []).append(place.label)
    found = "\n    ".join(f"{words} (in {', '.join(labels)})" for words, labels in said.items())
    unknown = [place.found for place in places if isinstance(place.found, NotFound)]
    beside = next((each.known for each in unknown if each.known), "")
    look = f"{beside} --match REGEX, to look for it there" if beside else "the whole of its name, from the package on"
    near = "one of the nearest names, or " if any(each.nearest for each in unknown) else ""
    return BadInput("NAME", "", found, f"{near}{look}")
