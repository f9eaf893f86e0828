"""What a candidate changes: the difference of the two snapshots, with nothing held that only could not be had here.

A bisection leaves out what this host cannot install. A gate must not: a candidate that cannot be had fails.
"""

from __future__ import annotations

import threading
from dataclasses import replace

from bisect_env.environments.index import SimpleIndex
from bisect_env.environments.side_by_side import side_by_side
from bisect_env.matrix.cells import IndexChoice
from bisect_env.snapshots.changes import compare
from bisect_env.snapshots.factors import Difference, Kind, difference
from bisect_env.snapshots.pinning import AT_ONCE, Asked, Installed
from bisect_env.snapshots.records import Snapshot


def changes(
    baseline: Snapshot, candidate: Snapshot, index: IndexChoice, simple: SimpleIndex, known: Installed, cache: bool
) -> Difference:
    """In what the two differ, as factors.

    Args:
        baseline, candidate: exact.
        index, simple: asked what distributions require, for what moves together; one that does not answer is no
            obstacle.
        known: what built environments among the two say of that.
        cache: whether trials have each side's compile cache; False: both have the one that was asked for.
    """
    asked = Asked(index, simple, known)
    names = {change.name for change in compare(baseline, candidate).changes}
    changed = [each for side in (baseline, candidate) for each in side.distributions if each.name in names]
    # What they say is kept: the core then asks one by one.
    side_by_side(asked.requires, changed, AT_ONCE, threading.Event())
    found = difference(baseline, candidate, asked.requires)
    if cache:
        return found
    return replace(found, factors=tuple(factor for factor in found.factors if factor.kind is not Kind.CACHE))
