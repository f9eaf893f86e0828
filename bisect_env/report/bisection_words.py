"""How a bisection's factors, mixed environments and figures are written in its report, its plan and its live view."""

from __future__ import annotations

from collections.abc import Sequence

from bisect_env.bisection.records import BAD, GOOD, Levels, Observation, Stage
from bisect_env.matrix.urls import names_secret
from bisect_env.report.rows import cut
from bisect_env.snapshots.factors import NOT_THERE, Factor, Held, Kind, shown
from bisect_env.snapshots.surroundings import ALLOCATION
from bisect_env.verdicts.records import percent
from bisect_env.words import counted

NAMED = 3
"""Factors of a mixed environment that are named; more are counted."""
HIDDEN, UNSET = "***", NOT_THERE[Kind.VARIABLE]
VERSION = 60
"""Most characters of a level."""


def probability(value: float) -> str:
    """As text, never as certain: ``97 %``, ``over 99 %``, ``below 1 %``."""
    if value >= 0.995:
        return "over 99 %"
    return percent(value) if value >= 0.01 else "below 1 %"


def level(text: str | None, kind: Kind | None = None) -> str:
    """One side of a difference; None is what is not there."""
    if text is None and kind is None:
        return "absent"
    return cut(shown(text, kind or Kind.DISTRIBUTION), VERSION)


def held(each: Held) -> str:
    """What differs and is held, with its two sides and why."""
    kind = Kind.VARIABLE if each.name in ALLOCATION else None
    return f"{each.name} {level(each.good, kind)} -> {level(each.bad, kind)}: {each.why}"


def value(name: str, text: str) -> str:
    """A variable's value, hidden where the name says that it is a secret."""
    return HIDDEN if names_secret(name) and text != UNSET else text


def change(factor: Factor) -> str:
    """A factor's two sides: ``2.11.0 -> 2.14.1``, from good to bad."""
    return f"{level(factor.good, factor.kind)} -> {level(factor.bad, factor.kind)}"


def members(factor: Factor, most: int | None = None) -> str:
    """What moves together with it: ``triton 3.4.0 -> 3.5.0, ... and 4 more``; empty where nothing does."""
    others = [each for each in factor.members if each.name != factor.name]
    texts = [f"{each.name} {level(each.good)} -> {level(each.bad)}" for each in others[:most]]
    rest = len(others) - len(texts)
    return ", ".join(texts) + (f" and {rest} more" if rest else "")


def point(levels: Levels, names: Sequence[str] = ()) -> str:
    """A mixed environment: ``torch bad, the rest good``, ``all bad but torch``, ``torch 2.12.0, 3 more bad``.

    Args:
        levels: as an observation has them; what is not named is at its good level.
        names: of all factors, to tell the ends from mixes; empty where they are not known.
    """
    exact = [f"{name} {cut(text, VERSION)}" for name, text in levels if text not in (GOOD, BAD)]
    bad = [name for name, text in levels if text == BAD]
    if exact:
        return ", ".join([*exact, *([f"{len(bad)} more bad"] if bad else [])])
    if not bad:
        return "the good end"
    good = [name for name in names if name not in bad]
    if names and not good:
        return "the bad end"
    if len(bad) > NAMED and 0 < len(good) <= NAMED:
        return f"all bad but {', '.join(good)}"
    return f"{_named(bad)} bad" + (", the rest good" if len(bad) <= NAMED else "")


def place(stage: Stage, levels: Levels, names: Sequence[str] = ()) -> str:
    """As :func:`point`; while the ends are tried there are only these two."""
    if stage is Stage.ENDS:
        return "the bad end" if levels else "the good end"
    return point(levels, names)


def _named(names: Sequence[str]) -> str:
    rest = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {rest} more" if rest > 0 else "")


def outcome(seen: Observation) -> str:
    """What a batch came to: ``3 of 4 fail``, with what counts for neither side, or why it could not be tested."""
    if seen.skipped and not seen.counted:
        return f"cannot be tested: {cut(seen.skipped, 200)}"
    parts = [f"{seen.failures} of {seen.counted} fail"] if seen.counted else []
    if seen.other:
        parts.append(f"{counted(seen.other, 'trial')} not counted")
    if seen.skipped:
        parts.append(f"not asked again: {cut(seen.skipped, 200)}")
    return ", ".join(parts) or "no trial"
