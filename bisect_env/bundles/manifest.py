"""``manifest.json``: read, refused where it is not one, and written in one step."""

from __future__ import annotations

import json
import os
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from bisect_env.bundles.records import MANIFEST, VERSION, Manifest
from bisect_env.environments import trees
from bisect_env.errors import BadInput

_ADAPTER = TypeAdapter(Manifest)
ADVICE = "the manifest.json of `bisect-env bundle`, whole: copy it again"


def encode(manifest: Manifest) -> str:
    """The manifest as JSON."""
    return _ADAPTER.dump_json(manifest, indent=1).decode() + "\n"


def decode(text: str | bytes, source: str | Path) -> Manifest:
    """The manifest that :func:`encode` wrote. ``source`` names it in messages.

    Raises:
        BadInput: it is damaged, or of a newer format.
    """
    try:
        value = json.loads(text)
    except ValueError as error:
        raise BadInput(source, "", f"it is no JSON: {error}", ADVICE) from error
    version = value.get("version") if isinstance(value, dict) else None
    # First, since a newer format may differ in anything.
    if isinstance(version, int) and version > VERSION:
        found = f"format {version}, written by a newer bisect-env"
        raise BadInput(source, "version", found, f"format {VERSION}, or the bisect-env in the bundle's tool/")
    try:
        return _ADAPTER.validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise BadInput(source, place, f"it is no bundle's manifest: {first['msg']}", ADVICE) from error


def load(folder: Path) -> Manifest:
    """The manifest of a bundle's folder.

    Raises:
        BadInput: there is none, or as :func:`decode`.
    """
    path = folder / MANIFEST
    try:
        data = path.read_bytes()
    except OSError as error:
        found = f"{path} cannot be read: {error.strerror}"
        raise BadInput(folder, "", found, "a folder that `bisect-env bundle -o` wrote, with its manifest") from error
    return decode(data, path)


def save(manifest: Manifest, folder: Path) -> None:
    """Writes the manifest durably and in one step: a reader finds the old one or the new one, whole."""
    unfinished = folder / f".{MANIFEST}-{os.getpid()}"
    try:
        trees.write_durably(unfinished, encode(manifest))
        unfinished.replace(folder / MANIFEST)
    finally:
        unfinished.unlink(missing_ok=True)
    trees.sync_folder(folder)
