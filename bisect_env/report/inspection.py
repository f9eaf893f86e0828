"""What an inspection found, as sections for a terminal and for Markdown. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bisect_env.engine.disk import size
from bisect_env.inspection.inspected import Cost, Inspection, Place, Traced
from bisect_env.inspection.records import Found, NotFound
from bisect_env.report.inspection_columns import listed
from bisect_env.report.inspection_scan import scanned
from bisect_env.report.inspection_surface import offered
from bisect_env.report.inspection_uses import used
from bisect_env.report.pieces import Part, Points, Section, Verbatim, Words, markdown, text
from bisect_env.words import counted

NEAREST = 3
"""Names that are suggested for one that is not there."""
SAME = "No difference."


def describe(inspection: Inspection, width: int, unresolved: bool = False) -> str:
    """For a terminal of so many columns; with ``unresolved``, every call that a scan could not follow is listed."""
    return text(_sections(inspection, unresolved), width)


def as_markdown(inspection: Inspection, unresolved: bool = False) -> str:
    """For an issue or a file."""
    return markdown(_sections(inspection, unresolved))


def missing(found: NotFound) -> str:
    """Why there is no such name, and what is there instead."""
    nearest = f"; nearest: {', '.join(found.nearest[:NEAREST])}" if found.nearest else ""
    if found.why:
        return f"{found.asked} is not in the text, and {found.known} has names from elsewhere ({found.why}){nearest}"
    known = f"{found.known} is there, and has no such name" if found.known else "nothing of it is there"
    return f"no {found.asked}: {known}{nearest}"


def where(found: Found) -> str:
    """``function, torch/fx/graph.py, line 12``, and what it was re-exported through."""
    defined = f"{found.module}.{found.qualname}".rstrip(".")
    place = f"{found.path}, line {found.line}" if found.path and found.line else found.path or "nothing to read"
    own = "" if defined == found.asked else f" {defined}"
    also = f", and again in line {', '.join(map(str, found.others))}" if found.others else ""
    via = f", through {', '.join(found.via[1:])}" if len(found.via) > 1 else ""
    unknown = f", which this Python does not parse ({found.error})" if found.error else ""
    return f"{found.kind}{own}, {place}{unknown}{also}{via}"


def _sections(inspection: Inspection, unresolved: bool) -> list[Section]:
    sections = [Section("", (Words(inspection.asked.name), Points(tuple(_places(inspection.places)))))]
    sections += offered(inspection)
    sections += scanned(inspection.places, unresolved)
    sections += used(inspection.places, inspection.asked.within)
    if inspection.difference is not None:
        before, after = (place.label for place in inspection.places)
        body: Part = Verbatim("", inspection.difference, "diff") if inspection.difference else Words(SAME)
        sections.append(Section(f"Difference from {before} to {after}", (body,)))
    notes = [*([_traced(inspection.traced)] if inspection.traced else []), *inspection.notes, cost(inspection.cost)]
    sections.append(Section("What was read", (Points(tuple(notes)),)))
    return sections


def _places(places: Sequence[Place]) -> Iterable[str]:
    """Where the name is; places that say the same in one line."""
    if len(places) == 1:
        (place,) = places
        return [f"{place.label}: {missing(place.found) if isinstance(place.found, NotFound) else where(place.found)}"]
    said: dict[str, list[str]] = {}
    for place in places:
        words = missing(place.found) if isinstance(place.found, NotFound) else where(place.found)
        said.setdefault(words, []).append(place.label)
    every = [place.label for place in places]
    return [f"{listed(labels, every) or 'everywhere'}: {words}" for words, labels in said.items()]


def cost(spent: Cost) -> str:
    """``8 wheels on the index, 14 MB, 6.1 s; nothing was installed.``"""
    read = []
    if spent.installed:
        read.append(f"{counted(spent.installed, 'place')} on this machine")
    if spent.wheels:
        fetched = size(spent.bytes) if spent.bytes else "all kept from an earlier reading"
        read.append(f"{counted(spent.wheels, 'wheel')} on the index, {fetched}")
    return f"{', '.join([*read, f'{spent.seconds:.1f} s'])}; nothing was installed."


def _traced(traced: Traced) -> str:
    ended = "was ended at the time limit" if traced.status is None else f"ended with status {traced.status}"
    more = f"; {traced.more} more were not kept" if traced.more else ""
    calls = f"{len(traced.calls)} distinct calls were observed{more}"
    return f"{traced.script} {ended} after {traced.seconds:.1f} s: {calls}. What it did not call is not among them."
