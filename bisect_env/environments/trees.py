"""Folders of files: what lies in one, by stat alone, how one is removed, and files that appear in one step."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

BYTE_CODE = "__pycache__"
"""Left out everywhere: trials run with ``PYTHONPYCACHEPREFIX``, and then Python does not read these folders."""

ATTEMPTS = 3
"""Times that a removal is tried: something may be writing into the folder, on another host of a shared disk."""


class FileStat(NamedTuple):
    """What tells that a file is the one it was: no content is read."""

    size: int
    mtime_ns: int
    mode: int
    """Type and permissions, as ``st_mode`` has them."""
    inode: int


def walk(folder: Path) -> dict[str, FileStat]:
    """Every file and symbolic link under ``folder`` (links are not followed), by its path relative to it.

    Folders have no entry of their own. Raises OSError when ``folder`` cannot be read.
    """
    found: dict[str, FileStat] = {}
    pending = [""]
    while pending:
        prefix = pending.pop()
        with os.scandir(folder / prefix) as entries:
            for entry in entries:
                path = prefix + entry.name
                if entry.is_dir(follow_symlinks=False):
                    if entry.name != BYTE_CODE:
                        pending.append(path + "/")
                    continue
                info = entry.stat(follow_symlinks=False)
                found[path] = FileStat(info.st_size, info.st_mtime_ns, info.st_mode, info.st_ino)
    return found


def digest(folders: Iterable[Path]) -> str:
    """Identifies what lies in ``folders`` by path, size and time of change of every file; no content is read.

    Inodes and permissions are left out, so that a folder restored from a backup keeps its digest.
    """
    total = hashlib.sha256()
    for folder in folders:
        total.update(f"{folder}\n".encode())
        for path, info in sorted(walk(folder).items()):
            total.update(f"{path}\0{info.size}\0{info.mtime_ns}\n".encode(errors="surrogateescape"))
    return total.hexdigest()


def content_hash(path: Path) -> str:
    """SHA-256 of a file's bytes, of a link's target; hexadecimal."""
    if stat.S_ISLNK(path.lstat().st_mode):
        return hashlib.sha256(str(path.readlink()).encode(errors="surrogateescape")).hexdigest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def remove(folder: Path) -> bool:
    """Removes a folder and all that is in it. False when something was left (or is being written again)."""
    for _ in range(ATTEMPTS):
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.lexists(folder):
            return True
    return False


def write_durably(path: Path, text: str) -> None:
    """Writes a file and waits until it, and its name, are on the disk."""
    with path.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Waits until the names in ``folder`` are on the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace(path: Path, data: bytes, *, prefix: str | None = None, durably: bool = False) -> None:
    """Writes a file in one step: whoever reads it finds the old one, the new one, or none, never a part.

    Args:
        path: in a folder that exists.
        data: its content.
        prefix: of the name under which it is written first, beside it; a dot and its own name when left out.
        durably: wait until it, and its name, are on the disk: for what a power cut must not take, and so that another
            host finds it.
    """
    descriptor, aside = tempfile.mkstemp(prefix=prefix or f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            if durably:
                file.flush()
                os.fsync(file.fileno())
        Path(aside).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(aside).unlink(missing_ok=True)
        raise
    if durably:
        sync_folder(path.parent)
