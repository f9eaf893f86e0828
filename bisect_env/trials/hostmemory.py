"""The kernel's counts of processes that its out-of-memory killer has taken."""

from __future__ import annotations

import re
from pathlib import Path


def oom_kills(root: Path = Path("/")) -> tuple[int, ...]:
    """The counters of the host and of this process's control groups (both versions); those absent are left out.

    Only a rise between two calls means anything. ``root`` stands for the root of the file system.
    """
    files = [root / "proc/vmstat"]
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if "memory" in controllers.split(","):
            files.append(root / "sys/fs/cgroup/memory" / group.lstrip("/") / "memory.oom_control")
        elif not controllers:
            files.append(root / "sys/fs/cgroup" / group.lstrip("/") / "memory.events")
    counts = (re.search(r"^oom_kill (\d+)$", _text(file), re.MULTILINE) for file in files)
    return tuple(int(count[1]) for count in counts if count)


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
