"""What is installed in a folder of packages: names and versions, and the files that each says are its own."""

from __future__ import annotations

import base64
import csv
import importlib.metadata
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from bisect_env.environments import trees

Pin = tuple[str, str]
"""Normalised name and version."""


class Recorded(NamedTuple):
    """One line of a RECORD file. A tuple, since an environment has tens of thousands."""

    path: str
    """Relative to the environment (not to its site-packages)."""
    owner: str
    """Normalised name of the distribution."""
    sha256: str
    """As RECORD has it (:func:`sha256_of`); empty where there is none (careless build tools, RECORD itself)."""
    size: str
    """Bytes, as RECORD has it; may be empty."""


def site_packages(venv: Path) -> Path:
    """The folder of packages of a virtual environment. Raises FileNotFoundError when there is none."""
    for folder in sorted((venv / "lib").glob("python*/site-packages")):
        return folder
    raise FileNotFoundError(f"{venv}: no lib/python*/site-packages")


def installed(folders: Sequence[Path]) -> tuple[Pin, ...]:
    """What is installed in ``folders``, sorted. Of a distribution in several of them Python finds the first."""
    found: dict[str, str] = {}
    for distribution in importlib.metadata.distributions(path=[str(folder) for folder in folders]):
        metadata = distribution.metadata  # Parsed anew at every access.
        # A folder that a killed installation left has no METADATA, hence no name.
        if metadata["Name"]:
            found.setdefault(canonicalize_name(metadata["Name"]), metadata["Version"])
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
    prefix = f"{site.relative_to(venv)}/"
    for record in sorted(site.glob("*.dist-info/RECORD")):
        owner = canonicalize_name(record.parent.name.removesuffix(".dist-info").split("-")[0])
        with record.open(encoding="utf-8", newline="") as file:
            for line in csv.reader(file):
                if not line or not line[0]:
                    continue
                name, kind, size = (*line, "", "")[:3]
                # Scripts and data files: paths out of site-packages, or, in old wheels, absolute ones.
                outside = name[0] in "./"
                path = os.path.relpath(os.path.normpath(site / name), venv) if outside else prefix + name
                yield Recorded(path, owner, kind[7:] if kind.startswith("sha256=") else "", size)


def sha256_of(path: Path) -> str:
    """A file's hash as RECORD has it: URL-safe base 64 without padding."""
    return base64.urlsafe_b64encode(bytes.fromhex(trees.content_hash(path))).rstrip(b"=").decode()
