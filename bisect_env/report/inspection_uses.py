"""Who sets a name and who reads it, and who shares it, for a report of an inspection."""

from __future__ import annotations

from collections.abc import Sequence

from bisect_env.inspection.inspected import Place
from bisect_env.inspection.records import NotFound, Scope, Use, Uses
from bisect_env.report.grid import Column
from bisect_env.report.inspection_columns import by_place, listed
from bisect_env.report.pieces import Grid, Part, Points, Section, Words
from bisect_env.words import counted

SCOPES = {
    Scope.PROCESS: "shared by the whole process",
    Scope.THREAD: "shared by a thread of its own",
    Scope.CONTEXT: "shared by a context of its own (a new thread starts from the default)",
    Scope.ABSENT: "not there",
    Scope.UNKNOWN: "the source does not tell who shares it",
}
"""Who shares the value."""
SETS, READS = "sets", "reads"


def used(places: Sequence[Place], within: Sequence[str]) -> list[Section]:
    """A section for each name that was looked for: the asked one, and what stands in its place where it is not.

    Args:
        places: in order.
        within: packages that were looked through; none: all.
    """
    every = [uses for place in places for uses in (place.uses, place.instead) if uses is not None]
    names = dict.fromkeys(_name(uses) for uses in every if not isinstance(uses.found, NotFound))
    return [_of(name, [uses for uses in every if _name(uses) == name], within) for name in names]


def _name(uses: Uses) -> str:
    return uses.found.asked


def _of(name: str, every: Sequence[Uses], within: Sequence[str]) -> Section:
    labels = [uses.label for uses in every]
    scopes = [SCOPES[uses.scope] for uses in every]
    shared = f"{scopes[0][0].upper()}{scopes[0][1:]}." if len(set(scopes)) == 1 else ""
    parts: list[Part] = [Words(shared)] if shared else []
    rows = _rows(every)
    if len(every) > 1 and rows:
        texts = [[_cell(verbs, at) for at in range(len(every))] for verbs in rows.values()]
        parts.append(Grid((Column("function", tuple(rows)), *by_place(labels, texts))))
        if not shared:
            parts.append(Points(tuple(f"{label}: {scope}" for label, scope in zip(labels, scopes, strict=True))))
    lines = tuple(_lines(every))
    parts.append(Points(lines))
    if lines and len(every) > 1:
        parts.append(Words("The number of a line is the one it has in the last place that has it."))
    looked = ", ".join(f"{uses.files} in {uses.label}" for uses in every)
    of = f" (of {', '.join(within)} alone)" if within else ""
    parts.append(Words(f"Used in {counted(len(rows), 'place')}. Files looked through{of}: {looked}."))
    return Section(f"Who sets and who reads {name}", tuple(parts))


def _rows(every: Sequence[Uses]) -> dict[str, list[set[str]]]:
    """By function: what it does with the name in each place."""
    rows: dict[str, list[set[str]]] = {}
    for at, uses in enumerate(every):
        for verb, found in ((SETS, uses.stores), (READS, uses.reads)):
            for use in found:
                rows.setdefault(use.function, [set() for _ in every])[at].add(verb)
    return dict(sorted(rows.items(), key=lambda item: not any(SETS in verbs for verbs in item[1])))


def _cell(verbs: Sequence[set[str]], at: int) -> str:
    return ", ".join(verb for verb in (SETS, READS) if verb in verbs[at]) or "-"


def _lines(every: Sequence[Uses]) -> list[str]:
    """Each line that stores or reads, once for all places that have it."""
    found: dict[tuple[str, str, str], list[tuple[str, Use]]] = {}
    for uses in every:
        for verb, lines in ((SETS, uses.stores), (READS, uses.reads)):
            for use in lines:
                found.setdefault((verb, use.function, use.text.strip()), []).append((uses.label, use))
    told = []
    for (verb, function, said), items in sorted(found.items(), key=lambda item: item[0][0] != SETS):
        labels = list(dict.fromkeys(label for label, _ in items))
        some = listed(labels, [uses.label for uses in every])
        only = f"  (in {some})" if some else ""
        use = items[-1][1]
        through = f", through {use.through}" if use.through else ""
        told.append(f"{verb}: {function}, {use.path}:{use.line}{through}: {said}{only}")
    return told
