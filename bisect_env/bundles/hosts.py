"""Asking interpreters of this host what they have."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bisect_env.bundles import inventory
from bisect_env.errors import BadInput

PATIENCE = 120.0
"""Seconds an interpreter may take: its packages may lie on a slow disk."""


@dataclass(frozen=True)
class Installed:
    """A distribution that an interpreter imports."""

    name: str
    """Normalised."""
    version: str
    location: Path
    """The folder that paths in its RECORD start from."""


def ask(python: Path, bundle: Path | None = None) -> str:
    """The inventory of an interpreter, as JSON (see :func:`inventory.inventory`).

    Raises:
        BadInput: it is no Python that runs.
    """
    options = [] if bundle is None else ["--bundle", str(bundle.absolute())]
    try:
        # Neither the current folder nor PYTHONPATH decides what is installed.
        told = subprocess.run(
            [python, "-I", "-", *options],
            input=inventory.script(),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        ).stdout
        # What a sitecustomize prints at every start comes first.
        return json.dumps(json.loads(told[told.index("{") :]), indent=1)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise BadInput("--python", "", f"{python} does not answer: {_why(error)}", "a Python 3.8 or later") from error


def _why(error: Exception) -> str:
    """The interpreter's last words where it had any; never the command line that asked it."""
    if isinstance(error, subprocess.TimeoutExpired):
        return f"nothing within {error.timeout:.0f} s"
    if isinstance(error, subprocess.CalledProcessError):
        said: str = (error.stderr or "").strip().rpartition("\n")[2]
        return said or f"it ended with status {error.returncode} and said nothing"
    return "it ran, and what it printed is no inventory" if isinstance(error, ValueError) else str(error)


def own() -> tuple[Path, ...]:
    """The interpreters whose packages may be used: the host's `python3`, then the one that runs this."""
    found = shutil.which("python3")
    paths = [Path(path) for path in (found, sys.executable) if path]
    return tuple(dict.fromkeys(paths))


def installed(pythons: Iterable[Path]) -> dict[tuple[str, str], Installed]:
    """What these interpreters have, by name and version; the first of them wins."""
    found: dict[tuple[str, str], Installed] = {}
    for python in pythons:
        for entry in json.loads(ask(python))["installed"]:
            each = Installed(entry["name"], entry["version"], Path(entry["location"]))
            found.setdefault((each.name, each.version), each)
    return found
