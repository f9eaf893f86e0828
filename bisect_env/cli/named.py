"""Distributions that options name, held against the two sides: a name that means nothing is said before any trial."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from packaging.utils import canonicalize_name

from bisect_env.bisection import commits
from bisect_env.errors import BadInput
from bisect_env.matrix.problems import nearest, shown
from bisect_env.snapshots.factors import Difference, Kind
from bisect_env.snapshots.records import Snapshot

LISTED = 12
"""Names that a message lists."""


def left_out(sides: tuple[Snapshot, Snapshot], names: Iterable[str]) -> tuple[Snapshot, Snapshot]:
    """Both sides without these distributions, which are then neither installed nor suspected nor held.

    Raises:
        BadInput: neither side has one of that name.
    """
    there = {canonicalize_name(each.name) for side in sides for each in side.distributions}
    gone = {_known("--without", name, there, "of a distribution of one of the two sides") for name in names}
    if not gone:
        return sides
    good, bad = (
        replace(
            side,
            distributions=tuple(each for each in side.distributions if canonicalize_name(each.name) not in gone),
        )
        for side in sides
    )
    return good, bad


def along(name: str | None, difference: Difference) -> str | None:
    """The distribution along whose versions to go, as the difference calls it.

    Raises:
        BadInput: no distribution of that name differs.
    """
    return None if name is None else _known("--along", name, _changed(difference), "of a distribution that differs")


def sources(given: Sequence[tuple[str, str]], difference: Difference, offline: bool) -> tuple[tuple[str, str], ...]:
    """Repositories of distributions, as the difference calls them. Each is asked, a URL not where that is ``offline``.

    Raises:
        BadInput: no distribution of that name differs, the URL has credentials in it, or there is no such repository.
        InfrastructureError: git is missing, or a repository does not answer in time.
    """
    found = []
    for name, repository in given:
        called = _known("--source", name, _changed(difference), "of a distribution that differs")
        commits.check(repository, offline)
        found.append((called, repository))
    return tuple(found)


def _changed(difference: Difference) -> set[str]:
    factors = [factor for factor in difference.factors if factor.kind is Kind.DISTRIBUTION]
    return {name for factor in factors for name in (factor.name, *(change.name for change in factor.members))}


def _known(option: str, name: str, known: Iterable[str], what: str) -> str:
    names = sorted(known)
    called = canonicalize_name(name)
    if called in names:
        return called
    near = nearest(name, names)
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    listed = f"one of: {', '.join(names[:LISTED])}{more}" if names else "there is none"
    wanted = f"the name {what}; {f'{near} is the nearest; ' if near else ''}{listed}"
    raise BadInput(option, "", f"{shown(name)} is none", wanted)
