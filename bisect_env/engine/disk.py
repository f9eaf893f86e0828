"""Whether what is to be built fits on the disk, before anything is built."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bisect_env.environments import usage
from bisect_env.environments.records import Lock
from bisect_env.errors import InfrastructureError
from bisect_env.trials import machine

RESERVE = 2 * 2**30
"""Bytes that stay free for compile caches, the store, and everybody else on the host."""


def download_bytes(locks: Sequence[Lock]) -> int:
    """What an empty cache fetches for these locks: each distribution once, as far as the index tells sizes."""
    return sum(_new_bytes(locks))


def needed_bytes(locks: Sequence[Lock]) -> int:
    """Upper estimate of what building these locks takes: every wheel fetched and unpacked once, none cached yet."""
    return sum(map(usage.estimate_bytes, _new_bytes(locks)))


def _new_bytes(locks: Sequence[Lock]) -> list[int]:
    """Of each lock, the bytes that those before it do not fetch."""
    seen: set[tuple[str, str]] = set()
    found = []
    for lock in locks:
        fetched = dict(lock.downloads or ())
        new = [pin for pin in lock.pins if pin not in seen]
        seen.update(new)
        found.append(sum(fetched.get(name, 0) for name, _ in new))
    return found


def refuse_if_full(root: Path, locks: Sequence[Lock]) -> None:
    """Raise unless the locks fit.

    Raises:
        InfrastructureError: with what is needed, what is free, and what would free more.
    """
    needed, free = needed_bytes(locks), machine.free_bytes(root)
    if needed + RESERVE > free:
        raise InfrastructureError(
            f"{root}: the environments to be built may take {size(needed)}, and {size(RESERVE)} must stay free, "
            f"but only {size(free)} are free.\n"
            "  `bisect-env clean` frees environments and caches that no stored cell needs; --store DIR puts them on "
            "another disk; fewer cells need less."
        )


def size(count: int) -> str:
    """Bytes for people: ``3.9 GB``."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit in ("B", "kB") or value >= 100 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"
