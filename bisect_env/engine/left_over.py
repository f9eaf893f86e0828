"""Where a command on a cluster notes which jobs it has in flight: seen also by those who know nothing of clusters."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = "cluster"
"""In the project's folder; in it one folder a command, and in these one folder a job."""
FILE = "pending.json"
"""In the folder of a command that has jobs in flight."""
_COMMAND = re.compile(r"\d{8}-\d{6}-[0-9a-f]{4}")


def is_command(name: str) -> bool:
    """Whether a folder of that name is a command's: the moment at which it began, and something random."""
    return _COMMAND.fullmatch(name) is not None


def has_jobs(folder: Path) -> bool:
    """Whether a command's folder names jobs that nobody has taken in."""
    return (folder / FILE).is_file()


def commands(root: Path) -> tuple[Path, ...]:
    """The folders of commands that left jobs, the oldest first.

    Args:
        root: the project's folder.
    """
    return tuple(path for path in sorted((root / FOLDER).glob("*")) if is_command(path.name) and has_jobs(path))
