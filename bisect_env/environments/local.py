"""Local requirements: what a source tree or a file holds, whatever its path, its times and its tools' leavings are."""

from __future__ import annotations

import hashlib
import stat
from pathlib import Path, PurePosixPath

from bisect_env.environments import trees

LEAVINGS = frozenset(
    {
        ".git",
        ".hg",
        ".svn",
        ".bisect-env",
        ".mypy_cache",
        ".nox",
        ".pytest_cache",
        ".ruff_cache",
        ".tox",
        ".venv",
        "venv",
    }
)
"""Folders of version control and of tools: no part of what is built from the tree."""

OUTPUT = frozenset({"build", "dist"})
"""At the top of a tree: what building it leaves there."""


def content_hash(path: Path) -> str:
    """SHA-256 of a file, or of a tree's files with their relative paths and executable bits.

    Pipes, sockets and devices in a tree do not count: they have no content that ends.

    Raises OSError when something cannot be read.
    """
    if path.is_file():
        return trees.content_hash(path)
    total = hashlib.sha256()
    for name, info in sorted(trees.walk(path).items()):
        if not _counts(PurePosixPath(name)) or not (stat.S_ISREG(info.mode) or stat.S_ISLNK(info.mode)):
            continue
        executable = bool(info.mode & stat.S_IXUSR)
        total.update(f"{name}\0{executable}\0{trees.content_hash(path / name)}\n".encode(errors="surrogateescape"))
    return total.hexdigest()


def _counts(name: PurePosixPath) -> bool:
    folders = name.parts[:-1]
    if name.suffix == ".pyc" or (folders and folders[0] in OUTPUT):
        return False
    return not any(part in LEAVINGS or part.endswith(".egg-info") for part in folders)
