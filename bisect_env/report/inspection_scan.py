"""What a scan reached and hit, for a report of an inspection: a null result says how far it looked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from bisect_env.inspection.inspected import Place
from bisect_env.inspection.records import Hit, Scan, Unresolved
from bisect_env.report.inspection_columns import listed
from bisect_env.report.pieces import Part, Points, Section, Verbatim, Words
from bisect_env.words import counted


def scanned(places: Sequence[Place], unresolved: bool) -> list[Section]:
    """How far each scan reached, and what it hit; ``unresolved``: list the calls that could not be followed."""
    scans = [place.scan for place in places if place.scan is not None]
    if not scans:
        return []
    title = f"Scan for {', '.join(scans[0].patterns)}"
    reaches = tuple(f"{scan.label}: {reach(scan)}" for scan in scans)
    sections = [Section(title, (Points(reaches), *_hits(scans)))]
    for scan in scans if unresolved else ():
        lines = "\n".join(map(_unresolved, scan.unresolved))
        counted = Counter(item.why for item in scan.unresolved)
        why = ", ".join(f"{number} {reason}" for reason, number in counted.most_common())
        sections.append(Section(f"Not resolved in {scan.label}", (Words(why), Verbatim("", lines)) if lines else ()))
    return sections


def reach(scan: Scan) -> str:
    """``0 hits in 214 functions reachable in 6 steps; 9 calls could not be resolved (list with --unresolved)``."""
    steps = f"reachable in {counted(scan.depth, 'step')}" if scan.depth else "by itself"
    said = f"{counted(len(scan.hits), 'hit')} in {counted(scan.functions, 'function')} {steps}"
    if scan.unresolved:
        said += f"; {counted(len(scan.unresolved), 'call')} could not be resolved (list with --unresolved)"
    if scan.beyond:
        said += f"; {counted(scan.beyond, 'function')} called at the last step not read (--depth {scan.depth + 1})"
    return said


def _hits(scans: Sequence[Scan]) -> Iterator[Part]:
    """The lines that were hit, by the way to their function, the shortest first.

    What is the same in several places, but for the numbers of the lines, is told once, with those of the last place.
    """
    ways: dict[tuple[str, ...], dict[str, list[tuple[str, Hit]]]] = {}
    for scan in scans:
        for hit in scan.hits:
            lines = ways.setdefault(tuple(step.name for step in hit.way), {})
            lines.setdefault(hit.text.strip(), []).append((scan.label, hit))
    for names in sorted(ways, key=len):
        hits = ways[names]
        _, last = list(hits.values())[-1][-1]
        yield Verbatim(_label(names), "\n".join([*_way(last), *_lines(hits, [scan.label for scan in scans])]))


def _label(names: tuple[str, ...]) -> str:
    away = f", {counted(len(names) - 1, 'step')} away" if len(names) > 1 else ""
    return f"{names[-1]}{away}:"


def _way(hit: Hit) -> Iterator[str]:
    """Each step with the line where it calls the next one."""
    for step in hit.way[:-1]:
        seen = ", which hands it over" if step.passed else ", as the run did" if step.observed else ""
        yield f"by {step.name}, {step.path}:{step.line}{seen}"


def _lines(hits: dict[str, list[tuple[str, Hit]]], every: Sequence[str]) -> Iterator[str]:
    for said, items in hits.items():
        labels = list(dict.fromkeys(label for label, _ in items))
        some = listed(labels, every)
        only = f"  (in {some})" if some else ""
        for line, path in sorted({(hit.line, hit.path) for label, hit in items if label == labels[-1]}):
            yield f"{path}:{line}: {said}{only}"


def _unresolved(item: Unresolved) -> str:
    return f"{item.path}:{item.line}: {item.call}  in {item.caller}: {item.why}"
