"""What is installed in a folder of packages: names and versions, and the files that each says are its own."""

from __future__ import annotations

import base64
import binascii
import csv
import importlib.metadata
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

Pin = tuple[str, str]
"""Normalised name and version."""


@dataclass(frozen=True)
class Recorded:
    """One line of a RECORD file."""

    path: str
    """Relative to the environment (not to its site-packages)."""
    owner: str
    """Normalised name of the distribution."""
    sha256: str | None
    """Hexadecimal; None where the line has none (RECORD itself, and the work of careless build tools)."""
    size: int | None


def site_packages(venv: Path) -> Path:
    """The folder of packages of a virtual environment. Raises FileNotFoundError when there is none."""
    for folder in sorted((venv / "lib").glob("python*/site-packages")):
        return folder
    raise FileNotFoundError(f"{venv}: no lib/python*/site-packages")


def installed(folders: Sequence[Path]) -> tuple[Pin, ...]:
    """What is installed in ``folders``, sorted. Of a distribution in several of them Python finds the first."""
    found: dict[str, str] = {}
    for distribution in importlib.metadata.distributions(path=[str(folder) for folder in folders]):
        # A folder that a killed installation left has no METADATA, hence no name.
        if distribution.metadata["Name"]:
            found.setdefault(canonicalize_name(distribution.metadata["Name"]), distribution.version)
    return tuple(sorted(found.items()))


def differences(found: Iterable[Pin], wanted: Iterable[Pin]) -> tuple[str, ...]:
    """How what is installed differs from the pins of a lock, one sentence a distribution; empty when it does not."""
    here, lock = dict(found), dict(wanted)
    lines = []
    for name in sorted(here.keys() | lock.keys()):
        if name not in lock:
            lines.append(f"{name} {here[name]} is installed and not in the lock")
        elif name not in here:
            lines.append(f"{name} {lock[name]} is in the lock and not installed")
        elif not same_version(here[name], lock[name]):
            lines.append(f"{name} {here[name]} is installed, the lock has {lock[name]}")
    return tuple(lines)


def same_version(one: str, other: str) -> bool:
    """Whether two spellings mean the same release (``1.0`` and ``1.0.0``); local labels count."""
    try:
        return Version(one) == Version(other)
    except InvalidVersion:
        return one == other


def records(venv: Path) -> Iterator[Recorded]:
    """Every file that a distribution in ``venv`` lists as its own (the RECORD files)."""
    site = site_packages(venv)
    for record in sorted(site.glob("*.dist-info/RECORD")):
        owner = canonicalize_name(record.parent.name.removesuffix(".dist-info").split("-")[0])
        with record.open(encoding="utf-8", newline="") as file:
            for line in csv.reader(file):
                if not line or not line[0]:
                    continue
                path = os.path.relpath(os.path.normpath(site / line[0]), venv) if line[0][0] in "./" else None
                yield Recorded(
                    path=path or f"{site.relative_to(venv)}/{line[0]}",
                    owner=owner,
                    sha256=_hexadecimal(line[1]) if len(line) > 1 else None,
                    size=int(line[2]) if len(line) > 2 and line[2].isdigit() else None,
                )


def _hexadecimal(field: str) -> str | None:
    name, _, value = field.partition("=")
    if name != "sha256":
        return None
    try:
        return base64.urlsafe_b64decode(value + "=" * (-len(value) % 4)).hex()
    except (binascii.Error, ValueError):
        return None
