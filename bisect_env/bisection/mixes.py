"""From levels to a cell: the environment, the condition and the variables of one mix of the two sides. Pure.

A level of a factor is ``good``, ``bad``, or a version (or a direct reference) of the distribution that names it; the
group's other members are then left to what that version requires. A group is taken apart by levels of
``GROUP/MEMBER``: every member must then be named, and their pins override what the distributions require of each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from bisect_env.bisection.records import BAD, GOOD, Levels, Specification
from bisect_env.environments.dating import RELEASE
from bisect_env.environments.variants import FAMILY, label_of
from bisect_env.matrix.cells import Cell, Condition, EnvironmentRequest, Scalar, digest
from bisect_env.snapshots import surroundings
from bisect_env.snapshots.factors import Change, Factor, Kind
from bisect_env.snapshots.records import Snapshot
from bisect_env.snapshots.variables import HIDDEN

NOWHERE = "python_version < '0'"
"""Marker of an override that keeps a distribution out, whoever requires it."""
COLD = "cold"
NAMED = 3
"""A mix of so many factors at most is named by them, a larger one by a digest."""


def levels(point: Mapping[str, str]) -> Levels:
    """The canonical form of a mix: sorted, without what is at its good level."""
    return tuple(sorted((name, level) for name, level in point.items() if level != GOOD or "/" in name))


def member(factor: str, name: str) -> str:
    """The name of a group's member in a mix."""
    return f"{factor}/{name}"


def taken_apart(point: Levels) -> bool:
    """Whether pins that override are what makes a mix."""
    return any("/" in name for name, _ in point)


def condition_factors(good: Condition, bad: Condition) -> tuple[Factor, ...]:
    """What differs between the two conditions: each key is a factor, the compile cache one of its own kind."""
    ours, theirs = good.as_dict(), bad.as_dict()
    names = sorted(name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name))
    return tuple(
        Factor(
            name=name,
            kind=Kind.CACHE if name == "cache" else Kind.CONDITION,
            good=None if name not in ours else str(ours[name]),
            bad=None if name not in theirs else str(theirs[name]),
            members=(),
        )
        for name in names
    )


@dataclass(frozen=True)
class Mixes:
    """The cells of one bisection."""

    specification: Specification
    factors: tuple[Factor, ...]

    def cell(self, point: Levels, as_installed: bool = False) -> Cell:
        """The cell of a mix.

        Args:
            point: as :func:`levels` gives it.
            as_installed: every pin overrides what the distributions require, as in an environment that an installer
                made although it knew better.
        """
        chosen = dict(point)
        pins, overrides = self._pins(chosen, as_installed)
        request = EnvironmentRequest(
            requirements=tuple(sorted(pins)),
            cuda=self._cuda(chosen),
            python=self._python(chosen),
            index=self.specification.index,
            as_of=self.specification.as_of or self._as_of(chosen),
            overrides=tuple(sorted(overrides)),
        )
        return Cell(
            id=self.name(point),
            levels=tuple((factor.name, self.level_text(factor, chosen)) for factor in self.factors),
            request=request,
            condition=self._condition(chosen),
            variables=self._variables(chosen),
        )

    def name(self, point: Levels) -> str:
        """Readable where few factors differ from one of the ends, otherwise short; no two mixes share one."""
        chosen = dict(point)
        if taken_apart(point) or not set(chosen.values()) <= {GOOD, BAD}:
            moved = [f"{name}={level}" for name, level in point if level not in (GOOD, BAD)]
            return "-".join([*(re.sub(r"[^\w.+=-]", "-", text)[:40] for text in moved[:1]), digest(point, 8)])
        bad = {name for name, level in point if level == BAD}
        rest = {factor.name for factor in self.factors} - bad
        if not bad or not rest:
            return GOOD if not bad else BAD
        if len(bad) <= min(NAMED, len(rest)):
            return "+".join([GOOD, *sorted(bad)])
        return "-".join([BAD, *sorted(rest)]) if len(rest) <= NAMED else f"mix-{digest(point, 8)}"

    def level_text(self, factor: Factor, chosen: Mapping[str, str]) -> str:
        """A factor's level in a mix, for people."""
        level = chosen.get(factor.name, GOOD)
        if any(name.startswith(f"{factor.name}/") for name in chosen):
            return "taken apart"
        return (factor.good or "absent") if level == GOOD else (factor.bad or "absent") if level == BAD else level

    def _pins(self, chosen: Mapping[str, str], as_installed: bool) -> tuple[list[str], list[str]]:
        """Requirement lines of a mix, and those of them (and exclusions) that override."""
        moving = {change.name: (factor, change) for factor in self._of(Kind.DISTRIBUTION) for change in factor.members}
        good, bad = (_lines(snapshot) for snapshot in (self.specification.good, self.specification.bad))
        left_out = {canonicalize_name(name) for name in self.specification.without}
        available = {held.name: held.available for held in self.specification.difference.held if held.available}
        pins, overrides = [], []
        for name in sorted({*good, *bad, *moving} - left_out):
            if name not in moving:
                # The same on both sides, or held at the one side that can be had here. What follows several factors
                # is there when one of them requires it.
                line = {GOOD: good, BAD: bad}[available[name]].get(name) if name in available else good.get(name)
                if line is not None and (name in available or line == bad.get(name)):
                    pins.append(line)
                    overrides += [line] if as_installed else []
                continue
            factor, change = moving[name]
            level = chosen.get(factor.name, GOOD)
            apart = chosen.get(member(factor.name, name))
            if apart is not None:
                line = _line(change, apart)
                pins += [] if line is None else [line]
                overrides.append(line or f"{name} ; {NOWHERE}")
            elif level in (GOOD, BAD):
                line = _line(change, level)
                pins += [] if line is None else [line]
                overrides += [line] if as_installed and line is not None else []
            elif name == factor.name:
                pins.append(_line(change, level) or name)
        return pins, overrides

    def _cuda(self, chosen: Mapping[str, str]) -> str | None:
        """The variant that the side has whose torch it is, where the pin does not say it."""
        good, bad = self.specification.good, self.specification.bad
        level = GOOD
        for factor in self._of(Kind.DISTRIBUTION):
            if any(change.name in FAMILY for change in factor.members):
                apart = any(name.startswith(f"{factor.name}/") for name in chosen)
                level = "" if apart else chosen.get(factor.name, GOOD)
        side = {GOOD: good, BAD: bad}.get(level)
        torch = side.of("torch") if side is not None else ()
        if side is None or not torch or label_of(torch[0].version or "") is not None:
            return None
        return side.cuda if self.specification.index.torch_backend == "auto" else None

    def _as_of(self, chosen: Mapping[str, str]) -> str | None:
        """A version between the two sides brings requirements that no snapshot pins: those of its day."""
        moved = [level for level in chosen.values() if level not in (GOOD, BAD)]
        between = bool(moved) and not any("://" in level for level in moved)
        return RELEASE if between and not self.specification.index.offline else None

    def _python(self, chosen: Mapping[str, str]) -> str | None:
        factor = next(self._of(Kind.PYTHON), None)
        if factor is not None:
            return factor.bad if chosen.get(factor.name, GOOD) == BAD else factor.good
        known = self.specification.good.python or self.specification.bad.python
        # Not a suspect: any release of the same minor version will do, since hosts rarely have the very one.
        return ".".join(known.split(".")[:2]) if known else None

    def _variables(self, chosen: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
        good, bad = (dict(side.variables or ()) for side in (self.specification.good, self.specification.bad))
        values = {name: value for name, value in good.items() if bad.get(name) == value and _settable(name, value)}
        for factor in self._of(Kind.VARIABLE):
            value = factor.bad if chosen.get(factor.name, GOOD) == BAD else factor.good
            if value is not None:
                values[factor.name] = value
        return tuple(sorted(values.items()))

    def _condition(self, chosen: Mapping[str, str]) -> Condition:
        good, bad = self.specification.condition_good.as_dict(), self.specification.condition_bad.as_dict()
        values: dict[str, Scalar] = {name: value for name, value in good.items() if bad.get(name) == value}
        for factor in self._of(Kind.CONDITION):
            side = bad if chosen.get(factor.name, GOOD) == BAD else good
            if factor.name in side:
                values[factor.name] = side[factor.name]
        # Of the snapshots, where the conditions have the same state on both sides.
        for factor in self._of(Kind.CACHE):
            values["cache"] = (factor.bad if chosen.get(factor.name, GOOD) == BAD else factor.good) or COLD
        return Condition.of(values)

    def _of(self, kind: Kind) -> Iterator[Factor]:
        return (factor for factor in self.factors if factor.kind is kind)


def _settable(name: str, value: str) -> bool:
    """Of what both sides have in common: no places and no GPUs, which are other ones on every host, and no secrets."""
    return name not in surroundings.ALLOCATION and not surroundings.names_place(name, value) and HIDDEN not in value


def _line(change: Change, level: str) -> str | None:
    """The requirement of a distribution at a level; None where it is absent there."""
    if level == GOOD:
        return _pin(change.name, change.good, change.good_source)
    if level == BAD:
        return _pin(change.name, change.bad, change.bad_source)
    if "://" in level:
        return f"{change.name} @ {level}"
    return _pin(change.name, level, "")


def _pin(name: str, version: str | None, source: str) -> str | None:
    if source:
        return f"{name} @ {source}"
    if version is None:
        return None
    try:
        return f"{name}=={Version(version)}"
    except InvalidVersion:
        return f"{name}==={version}"


def _lines(snapshot: Snapshot) -> dict[str, str]:
    """The requirement of each distribution of a snapshot whose version is known; pip's where conda disagrees."""
    found: dict[str, str] = {}
    for each in sorted(snapshot.distributions, key=lambda each: each.manager != "conda"):
        line = _pin(each.name, each.version, each.source)
        if line is not None:
            found[each.name] = line
    return found
