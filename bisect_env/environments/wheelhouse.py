"""Installing from a folder of wheels that were brought to a host, and from nothing else."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bisect_env.matrix.cells import IndexChoice


@dataclass(frozen=True)
class Wheelhouse:
    """A folder that has every wheel a lock needs.

    The folder's path is part of uv's cache key: environments share the unpacked files as long as it is the same.
    """

    folder: Path
    also: Mapping[str, str]
    """SHA-256 of a wheel as locks have it, and that of the folder's file, where it was packed again there."""

    @property
    def index(self) -> IndexChoice:
        """The folder as uv's only source."""
        return IndexChoice(find_links=(str(self.folder),), offline=True)

    def accepting(self, text: str) -> str:
        """A lock's text that takes the folder's files too: each hash of the lock stays, and theirs stand beside."""

        def both(match: re.Match[str]) -> str:
            other = self.also.get(match[1])
            return match[0] if other is None else f"{match[0]} \\\n    --hash=sha256:{other}"

        return re.sub(r"--hash=sha256:([0-9a-f]{64})", both, text)
