"""An inspection as a whole: what is asked, of which places, and what was found. Pure over the sources."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bisect_env.inspection.names import resolve
from bisect_env.inspection.reach import scan
from bisect_env.inspection.records import Call, Change, Found, NotFound, Scan, Sources, Surface, Uses
from bisect_env.inspection.surface import surface
from bisect_env.inspection.uses import uses


@dataclass(frozen=True)
class Asked:
    """What an inspection is to tell of a name."""

    name: str
    """Dotted: ``torch.nn.attention.flex_attention``."""
    surface: bool = True
    match: str | None = None
    """Of the surface only names that this regular expression is found in."""
    patterns: tuple[str, ...] = ()
    """Regular expressions, searched for in what the name reaches."""
    depth: int = 6
    """Most steps of a scan."""
    uses: bool = False
    distribution: str = ""
    """All of which is looked through for uses."""
    within: tuple[str, ...] = ()
    """Packages and modules that are looked through instead."""


@dataclass(frozen=True)
class Place:
    """What was found in one place; None where it was not asked for."""

    label: str
    found: Found | NotFound
    surface: Surface | None = None
    scan: Scan | None = None
    uses: Uses | None = None
    instead: Uses | None = None
    """Of the name most like it, where it is in other places and not in this one."""


@dataclass(frozen=True)
class Traced:
    """A script that was run to see which calls it makes."""

    script: str
    calls: tuple[Call, ...]
    """Distinct ones."""
    more: int
    """Distinct calls that no room was left for."""
    seconds: float
    status: int | None
    """Exit status of the script, negative for a signal; None when it was ended at the time limit."""


@dataclass(frozen=True)
class Cost:
    """What an inspection read."""

    wheels: int
    """On an index."""
    installed: int
    """Environments, and wheels that are here."""
    bytes: int
    """That came over the network."""
    seconds: float


@dataclass(frozen=True)
class Inspection:
    """What was found in all places, in the order that they were given."""

    asked: Asked
    places: tuple[Place, ...]
    changes: tuple[Change, ...]
    """Of the surface from place to place; empty for one place."""
    cost: Cost
    difference: str | None = None
    """Unified diff between two places; empty when they do not differ, None when it was not asked for."""
    traced: Traced | None = None
    notes: tuple[str, ...] = ()


def look(sources: Sources, asked: Asked, observed: Sequence[Call] = ()) -> Place:
    """One place.

    Args:
        sources: of the place.
        asked: what is to be told.
        observed: calls of a traced run, which a scan follows besides those in the text.

    Raises:
        InfrastructureError: something that is there cannot be read.
    """
    found = resolve(sources, asked.name)
    if isinstance(found, NotFound):
        return Place(sources.label, found, Surface(sources.label, found) if asked.surface else None)
    return Place(
        sources.label,
        found,
        surface(sources, asked.name, asked.match) if asked.surface else None,
        scan(sources, asked.name, asked.patterns, asked.depth, observed) if asked.patterns else None,
        uses(sources, asked.name, asked.distribution, _within(sources, asked)) if asked.uses else None,
    )


def _within(sources: Sources, asked: Asked) -> tuple[str, ...] | None:
    """The modules that are looked through for uses; None: all of the distribution."""
    return tuple(dict.fromkeys(_below(sources, asked.within))) if asked.within else None


def _below(sources: Sources, names: Sequence[str]) -> Iterator[str]:
    for name in names:
        yield name
        yield from _below(sources, [f"{name}.{part}" for part in sources.submodules(name)])


def stand_in(sources: Sources, place: Place, asked: Asked) -> Place:
    """A place that has not the name, with the uses of the name of the same module that is most like it.

    A flag that became a thread's own usually has a new name that begins as the old one did.
    """
    found = place.found
    if not isinstance(found, NotFound) or not asked.uses or not found.nearest or not found.known:
        return place
    nearest = found.nearest[0]
    return (
        replace(place, instead=uses(sources, nearest, asked.distribution, _within(sources, asked)))
        if _beside(nearest, found)
        else place
    )


def _beside(nearest: str, found: NotFound) -> bool:
    return nearest.rpartition(".")[0] == found.known == found.asked.rpartition(".")[0]
