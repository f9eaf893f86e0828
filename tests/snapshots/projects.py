"""uv projects on a loopback index: what uv locks, and what it then really installs."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from uv import find_uv_bin


@dataclass(frozen=True)
class Project:
    """A folder with a pyproject.toml."""

    folder: Path
    cache: Path

    def uv(self, *arguments: str) -> str:
        environment = {
            **os.environ,
            "UV_CACHE_DIR": str(self.cache),
            "UV_PYTHON_DOWNLOADS": "never",
            "UV_PYTHON": sys.executable,
            "UV_NO_PROGRESS": "1",
            "UV_PROJECT_ENVIRONMENT": str(self.folder / ".venv"),
        }
        environment.pop("VIRTUAL_ENV", None)
        done = subprocess.run(
            [find_uv_bin(), *arguments], cwd=self.folder, env=environment, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def lock(self) -> str:
        """The text of the uv.lock that uv makes."""
        self.uv("lock")
        return (self.folder / "uv.lock").read_text()

    def installed(self, *choice: str) -> dict[str, str]:
        """Names and versions that ``uv sync`` installs, the projects themselves left out."""
        self.uv("sync", "--frozen", "--no-install-workspace", *choice)
        lines = self.uv("pip", "list", "--format=freeze", "--python", str(self.folder / ".venv")).split()
        return dict(line.split("==") for line in lines)
