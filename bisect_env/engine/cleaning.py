"""What lies in a project's folder, what of it is still needed, and how the rest goes."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from bisect_env.bundles.collect import LOCK
from bisect_env.bundles.destination import WHEELS
from bisect_env.bundles.records import DELIVERED, FETCHED, MANIFEST
from bisect_env.engine import left_over
from bisect_env.environments import usage
from bisect_env.inspection import kept
from bisect_env.store.ids import is_trial_id

_CACHE = re.compile(r"\.?[0-9a-f]{16}(\.[0-9a-f]{32})?")
"""Name of a prepared cache, and of one that is being moved there."""
JOB_FOLDER, TRIAL_FOLDER = "job folder", "trial folder"
RESTING = 3600.0
"""Seconds without a change after which such a folder is no longer that of a command that runs."""


@dataclass(frozen=True)
class Item:
    """Something on disk."""

    kind: str
    """``environment``, ``set aside``, ``compile cache``, ``trial folder``, ``job folder``, ``fetched`` or ``delivered
    wheels``, ``read`` (of wheels on an index)."""
    name: str
    own_bytes: int
    """What removing it would free."""
    used: bool
    about: str


def survey(root: Path, in_use: Collection[str], running: Collection[str]) -> tuple[Item, ...]:
    """Everything under ``root`` that takes space and was made by a run: ``--store .`` may hold the user's own folders.

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
        for path in _folders(root / "caches", lambda name: _CACHE.fullmatch(name) is not None)
    ]
    items += [
        Item(TRIAL_FOLDER, path.name, _bytes(path), path.name in running, "left by a trial that was killed")
        for path in _folders(root / "trials", is_trial_id)
    ]
    items += [
        Item(JOB_FOLDER, path.name, _bytes(path), _of_a_command(path), "of jobs of a cluster that were lost")
        for path in _folders(root / left_over.FOLDER, left_over.is_command)
    ]
    return (*items, *without_a_run(root))


def _of_a_command(folder: Path) -> bool:
    """Whether a command runs, or will be taken up again, whose jobs lie there."""
    return left_over.has_jobs(folder) or time.time() - folder.stat().st_mtime < RESTING


def without_a_run(root: Path) -> tuple[Item, ...]:
    """What commands leave that run no trial: `bundle`, `unbundle`, `inspect`."""
    read = Item("read", kept.FOLDER, kept.kept_bytes(root), False, "modules of wheels on an index; fetched again")
    return (*bundles(root), *([read] if read.own_bytes else []))


def bundles(root: Path) -> tuple[Item, ...]:
    """What `bundle` fetched and what `unbundle` took in, as far as it lies under ``root``."""
    fetched, delivered = root / FETCHED, root / DELIVERED
    items = (
        Item(
            "fetched wheels", FETCHED, _bytes(fetched) if (fetched / LOCK).exists() else 0, False, "for a next bundle"
        ),
        Item(
            "delivered wheels",
            DELIVERED,
            _bytes(delivered / WHEELS) if (delivered / MANIFEST).exists() else 0,
            True,
            "only a new delivery brings them back",
        ),
    )
    return tuple(item for item in items if item.own_bytes > 0)


def remove(item: Item, root: Path) -> int:
    """Remove it; returns the bytes freed, 0 when it was taken up meanwhile, or is delivered wheels, which stay."""
    if item.kind in ("environment", "set aside"):
        return usage.remove(item.name, root)
    if item.kind == "delivered wheels":
        return 0
    if item.kind == "read":
        return kept.forget(root)
    if item.kind == "fetched wheels":
        return _remove_fetched(root / item.name)
    folder = root / {"compile cache": "caches", JOB_FOLDER: left_over.FOLDER}.get(item.kind, "trials") / item.name
    shutil.rmtree(folder, ignore_errors=True)
    return 0 if folder.exists() else item.own_bytes


def _remove_fetched(folder: Path) -> int:
    """All but the lock, which a bundle that is being made holds: then nothing goes."""
    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return 0
    try:
        before = _bytes(folder)
        for path in folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            elif path.name != LOCK:
                path.unlink(missing_ok=True)
        return before - _bytes(folder)
    finally:
        lock.release()


def _folders(parent: Path, ours: Callable[[str], bool]) -> list[Path]:
    if not parent.is_dir():
        return []
    return sorted(path for path in parent.iterdir() if ours(path.name) and path.is_dir())


def _bytes(folder: Path) -> int:
    return sum((Path(place) / name).lstat().st_size for place, _, names in os.walk(folder) for name in names)
