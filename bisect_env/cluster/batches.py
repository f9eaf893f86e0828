"""Which waiting items share a job: pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from bisect_env.cluster.items import Waiting


@dataclass(frozen=True)
class Batch:
    """What one job is to do."""

    group: Hashable
    """Of its first item."""
    avoid: frozenset[str]
    """Nodes on which one of its items was lost."""
    items: tuple[str, ...]


def batches(
    waiting: Sequence[Waiting],
    free: int,
    most: int,
    kin: Callable[[Hashable], Hashable] = lambda group: group,
    share: int = 0,
) -> tuple[Batch, ...]:
    """The jobs to submit now, at most ``free``, of at most ``most`` items each.

    Items of one group that have to avoid the same nodes share a job. They are spread evenly, so that no job runs four
    of them in turn while three others could have run beside it. Where there are more groups than jobs, those of equal
    ``kin`` share one too. What finds no job keeps waiting. Groups come in the order of their first item.

    Args:
        share: jobs over which they are spread, where these are more than the free ones: nothing comes after these
            items, and jobs that still run are to get some of them.
    """
    if free < 1:
        return ()
    share = max(free, share)
    sets: dict[tuple[Hashable, frozenset[str]], list[str]] = {}
    for item in waiting:
        sets.setdefault((item.group, item.avoid), []).append(item.item)
    size = min(most, math.ceil(len(waiting) / share))
    while size < most and sum(math.ceil(len(items) / size) for items in sets.values()) > share:
        size += 1
    found = [
        Batch(group, avoid, tuple(items[at : at + size]))
        for (group, avoid), items in sets.items()
        for at in range(0, len(items), size)
    ]
    return tuple(found if len(found) <= share else _joined(found, most, kin))[:free]


def _joined(found: Sequence[Batch], most: int, kin: Callable[[Hashable], Hashable]) -> tuple[Batch, ...]:
    """Fewer batches, each filled up with what fits: the first that has room takes the next one."""
    joined: list[Batch] = []
    roomy: defaultdict[tuple[Hashable, frozenset[str]], list[int]] = defaultdict(list)
    """Places in ``joined`` that have room, by what may join them."""
    for batch in found:
        places = roomy[kin(batch.group), batch.avoid]
        at = next((at for at in places if len(joined[at].items) + len(batch.items) <= most), len(joined))
        if at == len(joined):
            joined.append(batch)
            places.append(at)
        else:
            joined[at] = Batch(joined[at].group, batch.avoid, joined[at].items + batch.items)
        if len(joined[at].items) == most:
            places.remove(at)
    return tuple(joined)
