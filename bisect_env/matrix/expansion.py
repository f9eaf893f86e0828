"""Axes, ``exclude`` and ``include`` to combinations, with the semantics of a GitHub Actions matrix.

1. The product of all axes, the last axis turning fastest.
2. ``exclude`` removes every combination that an entry matches; an entry need not name every axis.
3. ``include``, entry by entry in the order written: an entry is merged into every combination of step 2 in which it
   overwrites no level of an axis (levels that earlier entries added may be overwritten). An entry that can be merged
   nowhere becomes a combination of its own, which later entries leave alone.

As there, ``include`` comes after ``exclude``, so that it can bring an excluded combination back, and a matrix without
axes consists of its ``include`` entries.

One thing GitHub has no counterpart for: conditions. They say how trials run and not what is installed, so a
combination that an entry adds is run under all of them: it is multiplied by the levels of every condition axis that
the entry does not name.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bisect_env.matrix.problems import Unfit

MOST_COMBINATIONS = 100_000
"""Combinations that are looked at one by one, to see what ``exclude`` leaves of them: a fraction of a second."""


@dataclass(frozen=True)
class Level:
    """One level of an axis, or one value of an ``include`` or ``exclude`` entry."""

    text: str
    """As written; what tables show."""
    key: str
    """What decides whether two levels are the same: ``2.11`` and ``2.11.0`` share one."""
    value: str | int | float | bool | None = None
    """What the level means, for the assembly of a cell: a version, a requirement, a condition's value; None: unset."""

    def same(self, other: Level | None) -> bool:
        """True when both are the same level."""
        return other is not None and self.key == other.key


Combination = Mapping[str, Level]


@dataclass(frozen=True)
class Axis:
    """A named list of levels."""

    name: str
    levels: tuple[Level, ...]
    condition: bool = False
    """True for a condition's axis: combinations that ``include`` adds are multiplied by it."""


@dataclass(frozen=True)
class Combined:
    """A combination and where it comes from."""

    levels: Combination
    added_by: int | None = None
    """Position of the ``include`` entry that added it; None when it is one of the product."""


def combine(
    axes: Sequence[Axis], include: Sequence[Combination], exclude: Sequence[Combination], limit: int
) -> tuple[Combined, ...]:
    """All combinations, those of the product first, then those that ``include`` added.

    Raises:
        Unfit: there are more than ``limit``. Found out by counting: no more than the limit are ever held.
    """
    wanted = "fewer levels, an exclude, or a higher limit: limits: {{cells: {}}} (now " + f"{limit})"
    product = math.prod(len(axis.levels) for axis in axes) if _has_product(axes, include) else 0
    if product > max(limit, 0 if not exclude else MOST_COMBINATIONS):
        levels = " x ".join(f"{len(axis.levels)} {axis.name}" for axis in axes)
        before = " before exclude" if exclude else ""
        raise Unfit(f"{product} cells{before} ({levels})", wanted.format(product))
    kept: list[dict[str, Level]] = []
    remaining = 0
    for combination in _product(axes) if product else ():
        if not any(_matches(entry, combination) for entry in exclude):
            remaining += 1
            if remaining <= limit:
                kept.append(combination)
    if remaining > limit:
        raise Unfit(f"{remaining} cells after exclude", wanted.format(remaining))
    added = _apply_include(kept, axes, include)
    total = len(kept) + sum(_completions(axes, entry) for _, entry in added)
    if total > limit:
        raise Unfit(f"{total} cells ({len(kept)} of the axes, the others by include)", wanted.format(total))
    spelled = {(axis.name, level.key): level for axis in axes for level in axis.levels}
    combined = [Combined(_respelled(combination, spelled)) for combination in kept]
    for position, entry in added:
        open_axes = [axis for axis in axes if axis.condition and axis.name not in entry]
        combined += [Combined(_respelled({**entry, **rest}, spelled), position) for rest in _product(open_axes)]
    return tuple(combined)


def _respelled(combination: Combination, spelled: dict[tuple[str, str], Level]) -> Combination:
    """With one spelling of each level, the axis's own or else the first: 2.13 and 2.13.0 are one environment."""
    return {name: spelled.setdefault((name, level.key), level) for name, level in combination.items()}


def _has_product(axes: Sequence[Axis], include: Sequence[Combination]) -> bool:
    """Without an axis that says what is installed, the ``include`` entries are the matrix."""
    return not include or any(not axis.condition for axis in axes)


def _product(axes: Sequence[Axis]) -> Iterator[dict[str, Level]]:
    names = [axis.name for axis in axes]
    for levels in itertools.product(*(axis.levels for axis in axes)):
        yield dict(zip(names, levels, strict=True))


def _matches(entry: Combination, combination: Combination) -> bool:
    """True when every level of the entry is the combination's. An empty entry matches nothing."""
    return bool(entry) and all(level.same(combination.get(name)) for name, level in entry.items())


def _apply_include(
    kept: Sequence[dict[str, Level]], axes: Sequence[Axis], include: Sequence[Combination]
) -> list[tuple[int, Combination]]:
    """Merge entries into ``kept`` in place; returns those that went nowhere, with their positions."""
    names = [axis.name for axis in axes]
    original = [{name: combination[name] for name in names} for combination in kept]
    added: list[tuple[int, Combination]] = []
    for position, entry in enumerate(include):
        merged = False
        for levels, combination in zip(original, kept, strict=True):
            if all(name not in levels or level.same(levels[name]) for name, level in entry.items()):
                # An axis keeps its level as it was written there.
                combination.update({name: level for name, level in entry.items() if name not in levels})
                merged = True
        if not merged:
            added.append((position, entry))
    return added


def _completions(axes: Sequence[Axis], entry: Combination) -> int:
    return math.prod(len(axis.levels) for axis in axes if axis.condition and axis.name not in entry)
