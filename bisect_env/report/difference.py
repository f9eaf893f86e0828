"""How two snapshots differ, as text for people and as a structure for programs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import chain
from textwrap import wrap
from typing import Any

from bisect_env.report.grid import Column, draw
from bisect_env.snapshots.factors import Change, Difference, Factor, Held, shown
from bisect_env.snapshots.records import Snapshot

MOST = 3
"""Members of a group that the table names; all are in the list below it."""
SCHEMA = 1
"""Grows when a key is renamed, removed or changes its meaning; not when one is added."""
WIDTH = 118
"""Characters a line of the lists, as far as words allow."""


def text(good: Snapshot, bad: Snapshot, found: Difference) -> str:
    """The factors as a table, then what moves together, what is held, and the notes. Ends without a line feed."""
    parts = [_heading(good, bad, found)]
    if found.factors:
        parts.append(_table(found.factors))
    parts += _section(
        "Move together, since no environment can have them at different levels",
        [_group(factor) for factor in found.factors if len(factor.members) > 1],
    )
    parts += _section(
        "Come and go with what requires them",
        [f"{_change(each.change)}: with {', '.join(each.factors)}" for each in found.followers],
    )
    parts += _section("Held: differs, cannot be changed here, and is not cleared", _held(found.held))
    parts += _section("Notes", found.notes)
    return "\n\n".join(parts)


def structure(good: Snapshot, bad: Snapshot, found: Difference) -> dict[str, Any]:
    """The same for ``--json``: ``schema``, ``good`` and ``bad`` (origin, form), ``factors``, ``followers``, ``held``,
    ``notes``. A level that is absent, or a variable that is not set, is null.
    """
    return {
        "schema": SCHEMA,
        "good": {"origin": good.origin, "form": good.form},
        "bad": {"origin": bad.origin, "form": bad.form},
        "factors": [asdict(factor) for factor in found.factors],
        "followers": [asdict(follower) for follower in found.followers],
        "held": [asdict(held) for held in found.held],
        "notes": list(found.notes),
    }


def _heading(good: Snapshot, bad: Snapshot, found: Difference) -> str:
    count = len(found.factors)
    said = {0: "no factor that can be changed here", 1: "1 factor"}.get(count, f"{count} factors")
    return f"good: {good.origin} ({good.form})\nbad:  {bad.origin} ({bad.form})\n{said}"


def _table(factors: Sequence[Factor]) -> str:
    return draw(
        [
            Column("factor", tuple(factor.name for factor in factors)),
            Column("kind", tuple(factor.kind.value for factor in factors)),
            Column("good", tuple(shown(factor.good, factor.kind) for factor in factors)),
            Column("bad", tuple(shown(factor.bad, factor.kind) for factor in factors)),
            Column("with", tuple(_with(factor) for factor in factors)),
        ],
        "simple",
    )


def _with(factor: Factor) -> str:
    others = [member.name for member in factor.members if member.name != factor.name]
    more = f" and {len(others) - MOST} more" if len(others) > MOST else ""
    return ", ".join(others[:MOST]) + more


def _group(factor: Factor) -> str:
    return f"{factor.name}: " + ", ".join(_change(member) for member in factor.members)


def _change(change: Change) -> str:
    if change.good is None or change.bad is None:
        return f"{change.name} {change.good or change.bad} ({'bad' if change.good is None else 'good'} only)"
    return f"{change.name} {change.good} -> {change.bad}"


def _held(held: Iterable[Held]) -> list[str]:
    """Those held for one reason on one line."""
    by_reason: dict[str, list[str]] = {}
    for each in held:
        by_reason.setdefault(each.why, []).append(_change(Change(each.name, each.good, each.bad)))
    return [f"{', '.join(names)}: {why}" for why, names in by_reason.items()]


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return ["\n".join([f"{title}:", *chain.from_iterable(map(_wrapped, lines))])] if lines else []


def _wrapped(line: str) -> list[str]:
    """Names, paths and URLs are not cut."""
    indent, further = "  ", "    "
    return wrap(
        line, WIDTH, initial_indent=indent, subsequent_indent=further, break_long_words=False, break_on_hyphens=False
    )
