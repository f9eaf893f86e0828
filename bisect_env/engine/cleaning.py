"""What lies in a project's folder, what of it is still needed, and how the rest goes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from bisect_env.environments import usage


@dataclass(frozen=True)
class Item:
    """Something on disk."""

    kind: str
    """``environment``, ``set aside``, ``compile cache`` or ``trial folder``."""
    name: str
    own_bytes: int
    """What removing it would free."""
    used: bool
    about: str


def survey(root: Path, in_use: Collection[str], running: Collection[str]) -> tuple[Item, ...]:
    """Everything under ``root`` that takes space.

    Args:
        root: the project's folder.
        in_use: addresses of the environments that a stored cell's current lock names.
        running: ids of the trials that are being run at this moment.
    """
    items = [
        Item("environment", size.name, size.own_bytes, size.name in in_use, "built; shares its files with uv's cache")
        for size in usage.sizes(root)
    ]
    items += [
        Item("set aside", size.name, size.own_bytes, False, "its files had been changed")
        for size in usage.set_aside(root)
    ]
    items += [
        Item("compile cache", path.name, _bytes(path), True, "prepared for trials with a warm cache")
        for path in _folders(root / "caches")
    ]
    items += [
        Item("trial folder", path.name, _bytes(path), path.name in running, "left by a trial that was killed")
        for path in _folders(root / "trials")
    ]
    return tuple(items)


def remove(item: Item, root: Path) -> int:
    """Remove it; returns the bytes freed, 0 when it was taken up meanwhile."""
    if item.kind in ("environment", "set aside"):
        return usage.remove(item.name, root)
    folder = root / ("caches" if item.kind == "compile cache" else "trials") / item.name
    shutil.rmtree(folder, ignore_errors=True)
    return 0 if folder.exists() else item.own_bytes


def _folders(parent: Path) -> list[Path]:
    return sorted(path for path in parent.iterdir() if path.is_dir()) if parent.is_dir() else []


def _bytes(folder: Path) -> int:
    return sum((Path(place) / name).lstat().st_size for place, _, names in os.walk(folder) for name in names)
