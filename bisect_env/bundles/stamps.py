"""The SHA-256 of large files, remembered by size and time of change: a second bundle does not read them again."""

from __future__ import annotations

import json
import os
import threading
from contextlib import suppress
from pathlib import Path

from bisect_env.environments import trees


class Stamps:
    """What was read once. Kept in a file; one that cannot be read is as good as none."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._known: dict[str, tuple[int, int, str]] = {}
        with suppress(OSError, ValueError, TypeError, AttributeError):
            value = json.loads(path.read_text(encoding="utf-8"))
            self._known = {name: (int(line[0]), int(line[1]), str(line[2])) for name, line in value.items()}

    def sha256(self, path: Path) -> str | None:
        """SHA-256 (hexadecimal) of a file, read only when it is not the one that was read before; None without one."""
        try:
            info = path.stat()
            known = self._known.get(str(path))
            if known is not None and known[:2] == (info.st_size, info.st_mtime_ns):
                return known[2]
            found = trees.content_hash(path)
        except FileNotFoundError:
            return None
        self._put(path, info, found)
        return found

    def learnt(self, path: Path, sha256: str) -> None:
        """Remembers what the writer of a file has just computed."""
        self._put(path, path.stat(), sha256)

    def _put(self, path: Path, info: os.stat_result, sha256: str) -> None:
        with self._lock:
            self._known[str(path)] = (info.st_size, info.st_mtime_ns, sha256)

    def save(self) -> None:
        """Writes it in one step, without the files that are gone."""
        with self._lock:
            kept = {name: line for name, line in self._known.items() if Path(name).exists()}
        unfinished = self.path.with_name(f".{self.path.name}-{os.getpid()}")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_text(json.dumps(kept, indent=0), encoding="utf-8")
        unfinished.replace(self.path)
