"""Compile caches: a trial starts with an empty one, or with a copy of a prepared or supplied one.

Copied, never linked: a trial writes into its cache, and a hard link would carry that into the prepared one.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import uuid
from pathlib import Path

from bisect_env.trials.isolation import Folders

_FICLONE = 0x40049409
"""ioctl that makes a file share another's blocks until one of them is written to (btrfs, XFS, bcachefs)."""
_KINDS = ("inductor", "triton", "cuda")


def copy_in(source: Path, destination: Path) -> None:
    """Fill a trial's compile-cache folder from ``source``.

    ``source`` is a folder prepared by a warm-up, or one that was somebody's TORCHINDUCTOR_CACHE_DIR. In the latter
    triton's entries lie in ``triton/DEVICE``; a trial has one folder for all devices, as TRITON_CACHE_DIR names it.

    Raises:
        OSError: the source cannot be read, or the disk is full.
    """
    if all((source / kind).is_dir() for kind in _KINDS):
        _copy(source, destination)
        return
    _copy(source, destination / "inductor")
    for device in sorted((source / "triton").glob("*")):
        if device.is_dir():
            _copy(device, destination / "triton")


def keep(trial_folder: Path, folder: Path) -> None:
    """Move a trial's compile cache to ``folder``, all at once; one that is there already stays.

    Raises:
        OSError: it cannot be moved.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    aside = folder.with_name(f".{folder.name}.{uuid.uuid4().hex}")
    try:
        shutil.move(Folders(trial_folder).compiled, aside)
        aside.rename(folder)
    except OSError:
        # Another run was quicker; both were filled by the same work.
        if not folder.is_dir():
            raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def measure(folder: Path) -> tuple[int, int]:
    """Files in a cache folder and their bytes together."""
    entries = size = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                size += (Path(place) / name).lstat().st_size
                entries += 1
    return entries, size


def _copy(source: Path, destination: Path) -> None:
    shutil.copytree(
        source, destination, symlinks=True, ignore=_without_end, copy_function=_copy_file, dirs_exist_ok=True
    )


def _without_end(folder: str, names: list[str]) -> list[str]:
    """Pipes, sockets and devices: no part of a cache, and reading one may never end."""
    modes = {name: (Path(folder) / name).lstat().st_mode for name in names}
    return [n for n, mode in modes.items() if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode))]


def _copy_file(source: str, destination: str) -> str:
    with open(source, "rb") as original, open(destination, "wb") as copy:  # noqa: PTH123 - names from copytree
        try:
            fcntl.ioctl(copy.fileno(), _FICLONE, original.fileno())
        except OSError:
            shutil.copyfileobj(original, copy, 1 << 20)
    shutil.copystat(source, destination)
    return destination
