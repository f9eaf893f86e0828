"""Whether what is to be written fits on the disk: before anything is fetched, and said plainly when it did not."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bisect_env.errors import InfrastructureError

RESERVE = 256 << 20
"""Bytes that stay free."""
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""What the system says when a disk has no room."""
ADVICE = "What is there is kept: make room and give the same command again; --cell bundles fewer cells at a time."


def enough_room(needed: Mapping[Path, int]) -> None:
    """Raises unless so many bytes fit below each folder, those on one disk together.

    Raises:
        InfrastructureError: with what is needed and what is free.
    """
    disks: dict[int, list[Path]] = {}
    for folder in needed:
        disks.setdefault(_existing(folder).stat().st_dev, []).append(folder)
    for folders in disks.values():
        wanted, free = sum(needed[folder] for folder in folders), shutil.disk_usage(_existing(folders[0])).free
        if wanted and wanted + RESERVE > free:
            each = " and ".join(f"{needed[folder] / 1e9:.2f} GB in {folder}" for folder in folders if needed[folder])
            raise InfrastructureError(
                f"up to {each} are needed, and {RESERVE / 1e9:.2f} GB must stay free, but only {free / 1e9:.2f} GB "
                f"are free.\n  {ADVICE}"
            )


def _existing(folder: Path) -> Path:
    return next(path for path in (folder, *folder.absolute().parents) if path.exists())


@contextmanager
def room_errors(folder: Path, what: str) -> Iterator[None]:
    """Makes a full disk while ``what`` is written an InfrastructureError that says so."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise InfrastructureError(f"the disk is full: {what} do not fit into {folder} ({error})\n  {ADVICE}") from error


def make_folder(folder: Path, option: str) -> None:
    """Makes a folder that ``option`` names, with all above it; a full disk is left for the caller to put into words.

    Raises:
        InfrastructureError: it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if error.errno in FULL:
            raise
        words = f"{option}: the folder {folder} cannot be made: {error.strerror}"
        raise InfrastructureError(
            f"{words}\n  Name a folder that this user may write, on a disk of this host."
        ) from error
