"""Where the matrix files and reproducers that come with the tool lie."""

from __future__ import annotations

from pathlib import Path

from bisect_env.errors import BadInput
from bisect_env.matrix.options import read_options

_PACKAGE = Path(__file__).resolve().parent.parent


def _folder(name: str) -> Path:
    # An installed wheel carries them as package data; a checkout has them at its top.
    installed = _PACKAGE / f"_{name}"
    return installed if installed.is_dir() else _PACKAGE.parent / name


def reproducers_folder() -> Path:
    """Folder of the shipped reproducers and the protocol module beside them."""
    return _folder("reproducers")


def matrices_folder() -> Path:
    """Folder of the shipped matrix files."""
    return _folder("matrices")


def reproducers(folder: Path | None = None) -> dict[str, Path]:
    """The shipped reproducers by name: the scripts that say which options they take (helper modules say none)."""
    found: dict[str, Path] = {}
    for script in sorted((folder or reproducers_folder()).glob("*.py")):
        try:
            read_options(script)
        except BadInput:
            continue
        found[script.stem] = script
    return found
