"""Where things of this layer lie under the store's root."""

from __future__ import annotations

from pathlib import Path

VENV = "venv"
LOCK = "lock.txt"
BUILD_LOCK = "build-lock.txt"
"""What source distributions were built with; only where there are some."""
BROUGHT_LOCK = "brought-lock.txt"
"""The lock as uv was given it, with the hashes of wheels that were brought here; only where some were."""
MANIFEST = "manifest.json"
BYTE_CODE = "pycache"
PROBE = "probe.json"
MARKER = "complete"
QUARANTINE = ".quarantine"
UNFINISHED = ".tmp-"
"""Prefix of a folder that is being built, or removed; the address follows."""
LOCKS = ".locks"


def environments_folder(root: Path) -> Path:
    """The folder that holds one folder an address; names with a dot in front are not environments."""
    return root / "environments"


def built(root: Path) -> tuple[Path, ...]:
    """The folders of all environments that are whole."""
    folder = environments_folder(root)
    if not folder.is_dir():
        return ()
    return tuple(
        sorted(path for path in folder.iterdir() if not path.name.startswith(".") and (path / MARKER).is_file())
    )
