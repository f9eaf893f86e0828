"""Installed distributions made wheels again: what the target has need not be delivered.

The files are proved by the RECORD of the wheel itself, which the bundle brings; the one that lies beside them may have
been changed with them. The archive is stored, not compressed: it is read once, by uv.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from bisect_env.bundles.records import Wheel

CHUNK = 1 << 20
EPOCH = (1980, 1, 1, 0, 0, 0)
"""Of every member: the same files give the same archive."""


@dataclass(frozen=True)
class Differs:
    """Why an installed distribution is not the wheel that was left out of the bundle."""

    name: str
    version: str
    path: str
    """The file that says so, absolute."""
    stat: tuple[int, int] | None
    """Its size and time of change (ns) when it was read; None when it was not there."""
    what: str

    @property
    def still(self) -> bool:
        """Whether the file is as it was, so that there is no use in trying again."""
        return _stat(Path(self.path)) == self.stat

    def encode(self) -> str:
        """As JSON."""
        return json.dumps(self.__dict__)

    @classmethod
    def decode(cls, text: str) -> Differs:
        """What :meth:`encode` wrote. Raises ValueError, LookupError or TypeError."""
        value = json.loads(text)
        stat = None if value["stat"] is None else (int(value["stat"][0]), int(value["stat"][1]))
        return cls(value["name"], value["version"], value["path"], stat, value["what"])


@dataclass(frozen=True)
class _Member:
    path: str
    algorithm: str
    digest: str
    size: str


class _Wrong(Exception):
    def __init__(self, path: Path, what: str, stat: tuple[int, int] | None) -> None:
        self.path, self.what, self.stat = path, what, stat


def repack(wheel: Wheel, location: Path, path: Path) -> str | Differs:
    """Writes to ``path`` the wheel that is installed in ``location`` (its site-packages folder), durably.

    Each file's hash is taken from the very bytes that are written. Returns the SHA-256 of what was written, or why the
    installed files are not the wheel's; ``path`` is of no use then.

    Raises OSError when ``path`` cannot be written.
    """
    try:
        members = _members(wheel, location)
        # Stat first: most differences are found without reading gigabytes.
        for member in members:
            _check_stat(location / member.path, member)
        with path.open("w+b") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
                for member in members:
                    _copy(location / member.path, member, archive)
                record = zipfile.ZipInfo(_record_path(wheel), EPOCH)
                record.external_attr = 0o100644 << 16
                archive.writestr(record, wheel.record)
            file.flush()
            os.fsync(file.fileno())
            # Sizes and checksums stand before the data, where a reader of a stream needs them, and are known after
            # it: the archive's own hash can be taken only now. It is still in memory.
            file.seek(0)
            return hashlib.file_digest(file, "sha256").hexdigest()
    except _Wrong as wrong:
        return Differs(wheel.name, wheel.version, str(wrong.path), wrong.stat, f"{wrong.path} {wrong.what}")


def _rows(wheel: Wheel) -> list[list[str]]:
    return [[*line, "", ""][:3] for line in csv.reader(wheel.record.splitlines()) if line]


def _is_record(path: str) -> bool:
    """Whether it is the distribution's own RECORD; some bring others with them, of what they vendor."""
    return path.endswith(".dist-info/RECORD") and path.count("/") == 1


def _record_path(wheel: Wheel) -> str:
    return next(path for path, _, _ in _rows(wheel) if _is_record(path))


def _members(wheel: Wheel, location: Path) -> list[_Member]:
    found = []
    for path, kind, size in _rows(wheel):
        if _is_record(path):
            continue
        algorithm, _, digest = kind.partition("=")
        if not digest or algorithm not in hashlib.algorithms_guaranteed:
            raise _Wrong(location / path, "has no hash in the wheel's RECORD by which it could be proved", None)
        found.append(_Member(path, algorithm, digest, size))
    return found


def _stat(path: Path) -> tuple[int, int] | None:
    try:
        info = path.stat()
        return info.st_size, info.st_mtime_ns
    except OSError:
        return None


def _check_stat(path: Path, member: _Member) -> None:
    stat = _stat(path)
    if stat is None:
        raise _Wrong(path, "is missing", None)
    if member.size and str(stat[0]) != member.size:
        raise _Wrong(path, f"has {stat[0]} bytes, and {member.size} in the wheel", stat)


def _copy(path: Path, member: _Member, archive: zipfile.ZipFile) -> None:
    try:
        source = path.open("rb")
    except OSError as error:
        raise _Wrong(path, f"cannot be read: {error.strerror}", _stat(path)) from error
    with source:
        info = os.fstat(source.fileno())
        entry = zipfile.ZipInfo(member.path, EPOCH)
        entry.external_attr = (0o100755 if info.st_mode & 0o100 else 0o100644) << 16
        entry.file_size = info.st_size
        total = hashlib.new(member.algorithm, usedforsecurity=False)
        with archive.open(entry, "w") as target:
            _pour(source, target, total)
    if base64.urlsafe_b64encode(total.digest()).rstrip(b"=").decode() != member.digest.rstrip("="):
        raise _Wrong(path, "is not what it is in the wheel", (info.st_size, info.st_mtime_ns))


def _pour(source: IO[bytes], target: IO[bytes], total: hashlib._Hash) -> None:
    while chunk := source.read(CHUNK):
        total.update(chunk)
        target.write(chunk)
