"""A snapshot as text: what is known of an environment, and what is not."""

from __future__ import annotations

from bisect_env.report.grid import Column
from bisect_env.report.pieces import Facts, Grid, Points, Section, Words
from bisect_env.report.pieces import text as drawn
from bisect_env.snapshots.records import Distribution, Library, Snapshot
from bisect_env.words import counted

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
            Section("Libraries that the process has loaded", (_libraries(snapshot.libraries or ()),)),
            Section("Could not be read", (Points(unread),)),
            Section("Not covered", (Points(snapshot.missing),)),
        ],
        width,
    )


def _heading(snapshot: Snapshot) -> str:
    count = len(snapshot.distributions)
    missed = len(snapshot.unread)
    unread = f"; {counted(missed, 'line')} could not be read" if missed else ""
    partial = ", of more that are not listed" if snapshot.partial else ""
    return f"{snapshot.origin}: {snapshot.form}, {counted(count, 'distribution')}{partial}{unread}"


def _facts(snapshot: Snapshot) -> tuple[tuple[str, str], ...]:
    gpus = {model: snapshot.gpus.count(model) for model in snapshot.gpus}
    cache, variables, libraries = snapshot.cache, snapshot.variables, snapshot.libraries
    told = (
        ("Python", "python", snapshot.python),
        ("platform", "platform", snapshot.platform),
        ("torch's variant", "torch", snapshot.cuda),
        ("driver", "driver", snapshot.driver),
        ("GPUs", "gpus", ", ".join(f"{count} x {model}" for model, count in gpus.items())),
        ("variables", "variables", None if variables is None else f"{len(variables)} that matter are set"),
        (
            "compile cache",
            "cache",
            None if cache is None else f"{cache.entries} entries, {cache.bytes / 1e6:.1f} MB in {cache.path}",
        ),
        ("environment", "venv", snapshot.venv),
        ("libraries", "libraries", None if libraries is None else f"{len(libraries)} of torch and CUDA are loaded"),
        ("distributions", "distributions", str(len(snapshot.distributions))),
    )
    # A file tells none of it: what it has is said above, and "where" would be the same word in every line.
    return tuple((name, _told(value, part, snapshot)) for name, part, value in told if snapshot.seen or _of_any(part))


def _of_any(part: str) -> bool:
    return part not in ("venv", "libraries", "distributions")


def _told(value: str | None, part: str, snapshot: Snapshot) -> str:
    return f"{value or _UNKNOWN}{f'  ({snapshot.where(part)})' if value and snapshot.seen else ''}"


def _libraries(found: tuple[Library, ...]) -> Grid:
    return Grid(
        (
            Column("name", tuple(each.name for each in found)),
            Column("path", tuple(each.path for each in found)),
        )
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
