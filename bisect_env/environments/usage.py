"""What environments take on disk, what a build will take, and how one is removed."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from bisect_env.environments import holding, trees
from bisect_env.environments.places import QUARANTINE, UNFINISHED, built, environments_folder

UNPACKED_LIBRARIES = 1.75
UNPACKED_SOURCES = 3.9
SOURCES = 450 * 10**6
"""Bytes on disk for each byte downloaded, and of what is not libraries; see :func:`estimate_bytes`."""

OWN = 15 * 10**6
"""Bytes that an environment takes apart from its hard links: folders, RECORD files, scripts, the manifest. Measured
for 20,479 files (torch 2.11.0, transformers 5.8.1): 14.5 MB."""


@dataclass(frozen=True)
class Size:
    """What a folder takes."""

    name: str
    """Address of the environment, or the name of a folder set aside."""
    path: Path
    own_bytes: int
    """On disk and nowhere else: what removing the folder alone would free."""
    apparent_bytes: int
    """Sum of the lengths of its files, as if it shared nothing."""


def measure(folder: Path) -> Size:
    """Sizes of a folder and all in it. A file with a second name elsewhere (in uv's cache) is not its own."""
    own = apparent = 0
    links: Counter[tuple[int, int]] = Counter()
    pending = [folder]
    while pending:
        current = pending.pop()
        own += current.lstat().st_blocks * 512
        with os.scandir(current) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(Path(entry.path))
                    continue
                info = entry.stat(follow_symlinks=False)
                file = (info.st_dev, info.st_ino)
                links[file] += 1
                if links[file] == 1:
                    apparent += info.st_size
                # The last of a file's names that is met here makes it the folder's own.
                if links[file] == info.st_nlink:
                    own += info.st_blocks * 512
    return Size(folder.name, folder, own, apparent)


def sizes(root: Path) -> tuple[Size, ...]:
    """Sizes of every environment under ``root`` that is whole, by address."""
    return tuple(measure(folder) for folder in built(root))


def set_aside(root: Path) -> tuple[Size, ...]:
    """Sizes of environments that were taken out of use because their files had been changed."""
    folder = environments_folder(root) / QUARANTINE
    return tuple(measure(path) for path in sorted(folder.iterdir())) if folder.is_dir() else ()


def remove(name: str, root: Path) -> int:
    """Removes an environment by its address, or one set aside by its name; returns the bytes freed.

    0 when there is none, or when a builder holds the address at this moment. The name is free at once: a removal
    that is killed leaves no half environment. Also removes what dead builders left.
    """
    folder = environments_folder(root)
    holding.sweep(root)
    quarantined = folder / QUARANTINE / name
    if quarantined.is_dir():
        freed = measure(quarantined).own_bytes
        return freed if trees.remove(quarantined) else 0
    with holding.held(root, name) as free:
        if not free or not (folder / name).is_dir():
            return 0
        freed = measure(folder / name).own_bytes
        aside = Path(tempfile.mkdtemp(prefix=f"{UNFINISHED}{name}-{os.getpid()}-", dir=folder))
        (folder / name).rename(aside / "removed")
        trees.remove(aside)
        return freed


def estimate_bytes(download_bytes: int) -> int:
    """Bytes on disk that building an environment takes when nothing of it is in uv's cache yet (upper estimate).

    uv keeps the unpacked files and not the archives; the environment itself is hard links. CUDA libraries hardly
    compress, headers and Python files do, and CPU builds of torch are mostly those. Measured on ext4, Python 3.11
    (bytes on disk / bytes downloaded): torch 2.11.0 with CUDA and transformers 4.924 GB / 2.763 GB = 1.78, torch
    2.14.1 5.726 GB / 3.059 GB = 1.87, torch 2.13.0+cpu alone 0.730 GB / 0.192 GB = 3.80. The bound is a line over
    the first two that begins at the last: at most 8 % over these three.
    """
    libraries = download_bytes * UNPACKED_LIBRARIES + SOURCES
    return int(min(download_bytes * UNPACKED_SOURCES, libraries)) + OWN
