"""From the two snapshots of a gate to its two cells: every distribution as it is there, nothing mixed. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase

from bisect_env.bisection.mixes import Mixes
from bisect_env.bisection.records import Specification
from bisect_env.gate.records import BASELINE, CANDIDATE
from bisect_env.matrix.cells import Cell, Condition
from bisect_env.snapshots import surroundings
from bisect_env.snapshots.factors import Difference, Factor, Kind
from bisect_env.snapshots.records import Snapshot

NAMES = (BASELINE, CANDIDATE)


def cells(asked: Specification, as_installed: bool = False) -> tuple[Cell, Cell]:
    """The baseline's cell and the candidate's.

    A side is the mix of a bisection between a snapshot and itself. What one of the two does not cover (a requirements
    file has no Python and no variables) is as on the other: an upgrade that does not speak of them leaves them.

    Args:
        asked: both sides; what differs in the compile cache or the Python is taken from its difference.
        as_installed: every pin overrides what distributions require, as in an environment that an installer made
            although it knew better.
    """
    baseline, candidate = asked.good, asked.bad
    sides = (_completed(baseline, candidate), _completed(candidate, baseline))
    factors = {factor.kind: factor for factor in asked.difference.factors}
    found = []
    for at, (name, snapshot) in enumerate(zip(NAMES, sides, strict=True)):
        condition = _condition((asked.condition_good, asked.condition_bad)[at], factors, at)
        alone = replace(
            asked, good=snapshot, bad=snapshot, difference=Difference(()), condition_good=condition,
            condition_bad=condition,
        )  # fmt: skip
        cell = Mixes(alone, ()).cell((), as_installed)
        request = replace(
            cell.request,
            requirements=tuple(sorted((*cell.request.requirements, *snapshot.ranges))),
            python=_python(cell.request.python, factors, at),
        )
        found.append(replace(cell, id=name, levels=(("side", name),), request=request))
    return (found[0], found[1]) if asked.base is None else _on_base(found[0], found[1], asked.base)


def _on_base(baseline: Cell, candidate: Cell, base: str) -> tuple[Cell, Cell]:
    """Both on an environment that stands: only what the two do not have alike is asked for, the rest is the base's."""
    every = [set(cell.request.requirements) for cell in (baseline, candidate)]
    alike = every[0] & every[1]
    found = []
    for cell in (baseline, candidate):
        # The base satisfies any pin of its own; a request of nothing is none.
        lines = tuple(line for line in cell.request.requirements if line not in alike) or cell.request.requirements[:1]
        request = replace(cell.request, requirements=lines, overrides=(), python=None, cuda=None, base=base)
        found.append(replace(cell, request=request))
    return found[0], found[1]


def _completed(snapshot: Snapshot, other: Snapshot) -> Snapshot:
    """The snapshot with the other one's Python and variables where it does not cover them."""
    known = dict(snapshot.variables or ())
    covered = () if snapshot.variables is None else snapshot.covered
    taken = {
        name: value
        for name, value in other.variables or ()
        if surroundings.VARIABLE.fullmatch(name) and not any(fnmatchcase(name, pattern) for pattern in covered)
    }
    variables = tuple(sorted({**taken, **known}.items()))
    return replace(snapshot, python=snapshot.python or other.python, variables=variables)


def _python(short: str | None, factors: Mapping[Kind, Factor], at: int) -> str | None:
    """The very one where the two sides differ in it, else any release of the same minor version."""
    factor = factors.get(Kind.PYTHON)
    return short if factor is None else (factor.good, factor.bad)[at]


def _condition(condition: Condition, factors: Mapping[Kind, Factor], at: int) -> Condition:
    """With the side's compile cache, where the snapshots differ in it."""
    factor = factors.get(Kind.CACHE)
    level = None if factor is None else (factor.good, factor.bad)[at]
    return condition if level is None else Condition.of({**condition.as_dict(), "cache": level})
