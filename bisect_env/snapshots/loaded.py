"""Libraries that two processes have loaded from different places: a difference that no list of packages shows."""

from __future__ import annotations

import re

from bisect_env.snapshots.changes import Change
from bisect_env.snapshots.records import Snapshot

ENVIRONMENT = "its environment"
"""Place of a library that a distribution has brought."""
_PACKAGES = re.compile(r"/(?:site|dist)-packages/")


def differing(good: Snapshot, bad: Snapshot) -> tuple[Change, ...]:
    """Of the libraries that both have loaded, those that came with the packages on one side and not on the other.

    Two places outside of both environments are no finding: hosts lay out their folders as they like.
    """
    ours, theirs = _places(good), _places(bad)
    found = []
    for name in sorted(ours.keys() & theirs.keys()):
        one, other = ours[name], theirs[name]
        if one != other and ENVIRONMENT in one | other:
            found.append(Change(name, _told(one), _told(other)))
    return tuple(found)


def _places(snapshot: Snapshot) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for each in snapshot.libraries or ():
        inside = _PACKAGES.search(each.path) or (snapshot.venv and each.path.startswith(f"{snapshot.venv}/"))
        found.setdefault(each.name, set()).add(ENVIRONMENT if inside else each.path)
    return {name: frozenset(places) for name, places in found.items()}


def _told(places: frozenset[str]) -> str:
    return f"loaded from {' and '.join(sorted(places))}"
