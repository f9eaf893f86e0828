"""Part files: written once under the SHA-256 of their content, never half."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from bisect_env.bundles.layout import Content
from bisect_env.bundles.records import SUFFIX
from bisect_env.bundles.stamps import Stamps

CHUNK = 4 << 20
UNFINISHED = ".unfinished-"


def path_of(part: str, folder: Path) -> Path:
    """Where the part of a SHA-256 lies in the folder of parts."""
    return folder / f"{part}{SUFFIX}"


def present(known: Mapping[str, int], folder: Path, stamps: Stamps) -> dict[str, int]:
    """Those of the parts (SHA-256 and size) that lie in the folder and are what their name says."""
    return {
        part: size
        for part, size in known.items()
        if _has_size(path_of(part, folder), size) and stamps.sha256(path_of(part, folder)) == part
    }


def _has_size(path: Path, size: int) -> bool:
    try:
        return path.stat().st_size == size
    except FileNotFoundError:
        return False


def write(
    content: Content,
    wheels: Mapping[str, Path],
    folder: Path,
    stamps: Stamps,
    count: Callable[[int], None],
) -> tuple[str, int]:
    """Writes a part from its wheels (path by SHA-256), unless it is there; its SHA-256 and size.

    ``count`` is told of bytes as they are written. Raises OSError, a full disk for one; then nothing of it is left.
    """
    unfinished = folder / f"{UNFINISHED}{os.getpid()}-{threading.get_ident()}"
    total, size = hashlib.sha256(), 0
    try:
        with unfinished.open("wb") as out:
            for run in content:
                with wheels[run.wheel].open("rb") as wheel:
                    wheel.seek(run.offset)
                    left = run.length
                    while left:
                        chunk = wheel.read(min(CHUNK, left))
                        if not chunk:
                            raise OSError(f"{wheels[run.wheel]} is shorter than it was")
                        out.write(chunk)
                        total.update(chunk)
                        count(len(chunk))
                        left -= len(chunk)
                size += run.length
        part = total.hexdigest()
        place = path_of(part, folder)
        if not present({part: size}, folder, stamps):
            unfinished.replace(place)
            stamps.learnt(place, part)
        return part, size
    finally:
        unfinished.unlink(missing_ok=True)


def sweep(folder: Path) -> None:
    """Removes what a killed run left. For the holder of the bundle's lock."""
    for path in folder.glob(f"{UNFINISHED}*"):
        path.unlink(missing_ok=True)


def remove(damaged: Iterable[str], folder: Path) -> None:
    """Removes parts that are not what their name says, or are not there at all."""
    for part in damaged:
        path_of(part, folder).unlink(missing_ok=True)
