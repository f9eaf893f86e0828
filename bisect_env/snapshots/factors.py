"""The factors in which two snapshots differ: what a bisection can put to its good or bad level, each alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from packaging.version import InvalidVersion, Version

from bisect_env.snapshots import grouping, loaded, surroundings
from bisect_env.snapshots.changes import Change as Change
from bisect_env.snapshots.changes import compare
from bisect_env.snapshots.records import Distribution, Snapshot, Target, this_host

Pins = Callable[[Distribution], Sequence[str] | None]
"""``Requires-Dist`` lines of a distribution, which tell what it pins; None: not known."""
Missing = Callable[[Distribution], str]
"""Why this host cannot have a distribution in this version or from this source; empty: it can, or it is not known."""


class Kind(StrEnum):
    """What a factor is made of."""

    DISTRIBUTION = "distribution"
    """One distribution, or several that move together."""
    PYTHON = "python"
    VARIABLE = "variable"
    CACHE = "cache"
    CONDITION = "condition"
    """How trials run: threads, the reproducer's own options. Of no snapshot, but of what a bisection is asked."""


NOT_THERE = {
    Kind.DISTRIBUTION: "not installed",
    Kind.PYTHON: "not known",
    Kind.VARIABLE: "not set",
    Kind.CACHE: "absent",
    Kind.CONDITION: "not set",
}
"""How a level is written that a side does not have."""


def shown(level: str | None, kind: Kind) -> str:
    """A level for people: what is not there says so, and an empty value is one."""
    return NOT_THERE[kind] if level is None else level or '""'


@dataclass(frozen=True)
class Factor:
    """One thing that differs, with its two levels."""

    name: str
    """Unique within a difference."""
    kind: Kind
    good: str | None
    """The level for people; None: absent, not set."""
    bad: str | None
    members: tuple[Change, ...]
    """What moves together: the distribution that gives the name first."""


@dataclass(frozen=True)
class Held:
    """Something that differs and cannot be changed on this host: not cleared by any result."""

    name: str
    good: str | None
    bad: str | None
    why: str
    available: str = ""
    """The level that this host can have, for all environments: ``good`` or ``bad``; empty: neither, or its own."""


@dataclass(frozen=True)
class Follower:
    """A distribution of one side only that several factors require: it is there while one of them is at that side."""

    change: Change
    factors: tuple[str, ...]


@dataclass(frozen=True)
class Difference:
    """How two snapshots differ. Every changed distribution is in one factor, held, a follower, or in a note."""

    factors: tuple[Factor, ...]
    """By kind, then name."""
    held: tuple[Held, ...] = ()
    notes: tuple[str, ...] = ()
    """Sentences: what could not be compared, and what the forms do not cover."""
    followers: tuple[Follower, ...] = ()


def unknown_pins(distribution: Distribution) -> None:
    """:data:`Pins` where no metadata is at hand: torch's family moves together by name, everything else alone."""
    return


def all_here(distribution: Distribution) -> str:
    """:data:`Missing` where everything can be had, as far as is known."""
    return ""


def difference(
    good: Snapshot,
    bad: Snapshot,
    pins: Pins = unknown_pins,
    missing: Missing = all_here,
    host: Target | None = None,
) -> Difference:
    """The factors in which two snapshots differ, and what differs besides.

    Args:
        good: as read.
        bad: as read.
        pins: asked of each changed distribution, on each side.
        missing: asked of each changed distribution that has a version or a source, on each side.
        host: whose markers decide which requirements hold; this one when left out. A snapshot's own Python goes first.
    """
    compared = compare(good, bad)
    host = host or this_host()
    known = [grouping.active(_requires(compared.changes, side, pins), _environment(side, host)) for side in (good, bad)]
    groups = grouping.grouped(compared.changes, known[0], known[1])
    by_name = {change.name: change for change in compared.changes}
    factors, held, cleared = [], list[Held](), set[str]()
    for names in groups.groups:
        members = tuple(by_name[name] for name in names)
        absent = _held(members, missing, good, bad)
        held += absent
        if not absent:
            factors.append(of_members(members, variants=compared.variants))
            cleared.add(names[0])
    followers = []
    for name, leads in groups.followers:
        change = by_name[name]
        free = tuple(lead for lead in leads if lead in cleared)
        absent = _held((change,), missing, good, bad)
        if free and not absent:
            followers.append(Follower(change, free))
        else:
            held += absent or [Held(name, change.good, change.bad, f"comes with {', '.join(leads)}, which is held")]
    more, machine, notes = _surroundings(good, bad)
    notes += [_of_unknown_pins(compared.changes, pins, good, bad)]
    return Difference(
        tuple(sorted([*factors, *more], key=lambda factor: (list(Kind).index(factor.kind), factor.name))),
        tuple(sorted([*held, *machine], key=lambda each: each.name)),
        (*compared.notes, *(note for note in notes if note), *_coverage(good, bad)),
        tuple(followers),
    )


def of_members(
    members: Sequence[Change], kind: Kind = Kind.DISTRIBUTION, variants: tuple[str, str] | None = None
) -> Factor:
    """The factor of changes that move together; its name and levels are those of the first.

    ``variants`` are torch's CUDA variants, which its levels then show as far as its versions do not.
    """
    first = members[0]
    good, bad = first.good, first.bad
    if variants is not None and first.name == "torch" and good is not None and bad is not None:
        good, bad = (
            level if level.endswith(f"+{variant}") else f"{level} ({variant})"
            for level, variant in zip((good, bad), variants, strict=True)
        )
    return Factor(first.name, kind, good, bad, tuple(members))


def _requires(changes: Iterable[Change], side: Snapshot, pins: Pins) -> Mapping[str, Sequence[str] | None]:
    return {each.name: pins(each) for each in _changed(changes, side)}


def _changed(changes: Iterable[Change], side: Snapshot) -> Iterable[Distribution]:
    """The changed distributions that a side has; of one name pip's, as is compared."""
    names = {change.name for change in changes}
    return {each.name: each for each in side.distributions if each.name in names}.values()


def _environment(side: Snapshot, host: Target) -> dict[str, str]:
    return (host if side.python is None else replace(host, python=side.python)).environment()


def _held(members: Sequence[Change], missing: Missing, good: Snapshot, bad: Snapshot) -> list[Held]:
    """All of a group, when one of its distributions cannot be had here at one of its levels; else nothing."""
    why: dict[str, str] = {}
    lacking: set[str] = set()
    for side, snapshot in (("good", good), ("bad", bad)):
        for each in _changed(members, snapshot):
            reason = _unusable(each) or missing(each)
            if reason:
                why.setdefault(each.name, reason)
                lacking.add(side)
    if not why:
        return []
    available = {frozenset({"good"}): "bad", frozenset({"bad"}): "good"}.get(frozenset(lacking), "")
    others = f"moves together with {', '.join(sorted(why))}, which is held"
    return [Held(each.name, each.good, each.bad, why.get(each.name, others), available) for each in members]


def _unusable(distribution: Distribution) -> str:
    if distribution.source:
        return ""
    if distribution.version is None:
        return f"its version is not told{f' ({distribution.note})' if distribution.note else ''}"
    try:
        Version(distribution.version)
    except InvalidVersion:
        return f"{distribution.version} is no version that an index could be asked for"
    return ""


def _surroundings(good: Snapshot, bad: Snapshot) -> tuple[list[Factor], list[Held], list[str]]:
    factors, held = [], []
    python = surroundings.python(good, bad)
    if python is not None:
        factors.append(of_members((python,), Kind.PYTHON))
    levels, allocated, places = surroundings.variables(good, bad)
    factors += [of_members((each,), Kind.VARIABLE) for each in levels]
    why = "which GPUs are used is each host's own matter"
    held += [Held(each.name, each.good, each.bad, why) for each in allocated]
    state, content = surroundings.cache(good, bad)
    if state is not None:
        factors.append(of_members((state,), Kind.CACHE))
    if content is not None:
        why = "a cache's content is not known from its size: supply the folders as caches of the two conditions"
        held.append(Held(content.name, content.good, content.bad, why))
    why = "trials run on this host's own"
    held += [Held(each.name, each.good, each.bad, why) for each in surroundings.machine(good, bad)]
    why = "what a process loads does not follow from its distributions alone: LD_LIBRARY_PATH, LD_PRELOAD, ld.so.conf"
    held += [Held(each.name, each.good, each.bad, why) for each in loaded.differing(good, bad)]
    return factors, held, list(places)


def _of_unknown_pins(changes: Sequence[Change], pins: Pins, good: Snapshot, bad: Snapshot) -> str:
    """Torch's requirements decide over most of a group, and where they are not known a rule does."""
    torch = [each for side in (good, bad) for each in _changed(changes, side) if each.name == "torch"]
    if all(pins(each) is not None for each in torch) or not any(
        grouping.in_family(change.name) and change.name != "torch" for change in changes
    ):
        return ""
    return "the requirements of torch are not known here, so its family was put together by name"


def _coverage(good: Snapshot, bad: Snapshot) -> list[str]:
    notes = []
    for side in (good, bad):
        notes += [f"{side.origin}: {sentence}" for sentence in side.missing]
        notes += [f"{side.origin}: {each} is no exact version; resolve it first" for each in side.ranges]
        notes += [f"{side.origin}, line {each.line}: not read: {each.text} ({each.why})" for each in side.unread]
    return list(dict.fromkeys(notes))
