"""Which files of a distribution differ between two places. Pure over digests."""

from __future__ import annotations

from bisect_env.inspection.records import Sources


def changed_files(before: Sources, after: Sources) -> frozenset[str]:
    """Paths of the ``.py`` files that differ, appeared or went, as in a wheel: ``torch/fx/proxy.py``.

    Every kind of place tells a file by CRC-32 and size, so that none is read for it on an index. Two contents of one
    size have the same CRC-32 once in 4 * 10**9 times.

    Raises:
        InfrastructureError: a place cannot be read.
    """
    old, new = before.digests(), after.digests()
    return frozenset(path for path in old.keys() | new.keys() if old.get(path) != new.get(path))
