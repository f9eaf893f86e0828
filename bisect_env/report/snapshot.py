"""A snapshot as text: what is known of an environment, and what is not."""

from __future__ import annotations

from bisect_env.report.grid import Column
from bisect_env.report.pieces import Facts, Grid, Points, Section, Words
from bisect_env.report.pieces import text as drawn
from bisect_env.snapshots.records import Distribution, Snapshot

_UNKNOWN = "not known"


def text(snapshot: Snapshot, width: int) -> str:
    """All of it, at so many characters a line; what could not be read and what is not covered comes last."""
    unread = tuple(f"{f'line {each.line}: ' if each.line else ''}{each.text}: {each.why}" for each in snapshot.unread)
    return drawn(
        [
            Section("", (Words(_heading(snapshot)), Facts(_facts(snapshot)))),
            Section("Distributions", (_distributions(snapshot.distributions),)),
            Section("Requirements that are no exact version", (Points(snapshot.ranges),)),
            Section("Environment variables", (Facts(snapshot.variables or ()),)),
            Section("Could not be read", (Points(unread),)),
            Section("Not covered", (Points(snapshot.missing),)),
        ],
        width,
    )


def _heading(snapshot: Snapshot) -> str:
    count = len(snapshot.distributions)
    plural = "" if count == 1 else "s"
    missed = len(snapshot.unread)
    unread = f"; {missed} {'line' if missed == 1 else 'lines'} could not be read" if missed else ""
    partial = ", of more that are not listed" if snapshot.partial else ""
    return f"{snapshot.origin}: {snapshot.form}, {count} distribution{plural}{partial}{unread}"


def _facts(snapshot: Snapshot) -> tuple[tuple[str, str], ...]:
    gpus = {model: snapshot.gpus.count(model) for model in snapshot.gpus}
    cache = snapshot.cache
    return (
        ("Python", snapshot.python or _UNKNOWN),
        ("platform", snapshot.platform or _UNKNOWN),
        ("torch's variant", snapshot.cuda or _UNKNOWN),
        ("driver", snapshot.driver or _UNKNOWN),
        ("GPUs", ", ".join(f"{count} x {model}" for model, count in gpus.items()) or _UNKNOWN),
        ("variables", _UNKNOWN if snapshot.variables is None else f"{len(snapshot.variables)} that matter are set"),
        (
            "compile cache",
            _UNKNOWN if cache is None else f"{cache.entries} entries, {cache.bytes / 1e6:.1f} MB in {cache.path}",
        ),
    )


def _distributions(found: tuple[Distribution, ...]) -> Grid:
    return Grid(
        (
            Column("name", tuple(each.name for each in found)),
            Column("version", tuple(each.version or "?" for each in found)),
            Column("by", tuple(each.manager if each.manager != "pip" else "" for each in found)),
            Column("source", tuple(each.source for each in found)),
            Column("note", tuple(each.note for each in found)),
        )
    )
