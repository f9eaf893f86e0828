"""What a released version says of itself, from the index: its requirements, and where its project lives."""

from __future__ import annotations

import os
import platform
import threading
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path
from typing import IO, cast
from urllib.parse import unquote, urlsplit, urlunsplit

import requests
from packaging.version import InvalidVersion, Version

from bisect_env.environments.index import File, SimpleIndex, auth_of
from bisect_env.environments.ranges import Ranged
from bisect_env.environments.records import Unavailable
from bisect_env.matrix.cells import IndexChoice

LARGEST = 4_000_000
"""Bytes of metadata above which it is not read; the longest description in a METADATA file has a tenth of that."""


@dataclass(frozen=True)
class Metadata:
    """The part of a wheel's core metadata that is of use here."""

    requires: tuple[str, ...]
    """``Requires-Dist`` lines."""
    urls: tuple[tuple[str, str], ...]
    """Label and URL of the project's pages, ``Home-page`` among them."""


def parse(text: str) -> Metadata:
    """The metadata in the text of a METADATA file."""
    message = HeaderParser().parsestr(text)
    urls = []
    for line in message.get_all("Project-URL", ()):
        label, comma, url = str(line).partition(",")
        if comma and url.strip():
            urls.append((label.strip(), url.strip()))
    home = str(message.get("Home-page") or "").strip()
    if home and home.upper() != "UNKNOWN":
        urls.append(("Homepage", home))
    return Metadata(tuple(str(line).strip() for line in message.get_all("Requires-Dist", ())), tuple(urls))


class MetadataSource:
    """Core metadata of released versions. Every answer is kept for the life of the object; may be asked by threads."""

    def __init__(self, simple: SimpleIndex, index: IndexChoice) -> None:
        self.simple, self.index = simple, index
        self._kept: dict[tuple[str, str], Metadata | None] = {}
        self._lock = threading.Lock()

    def of(self, name: str, version: str) -> Metadata | None:
        """The metadata of a version; None when the index has no such version, does not tell, or does not answer.

        Without a local label any build of the version speaks for it.
        """
        with self._lock:
            if (name, version) in self._kept:
                return self._kept[name, version]
        found = self._read(name, version)
        with self._lock:
            return self._kept.setdefault((name, version), found)

    def _read(self, name: str, version: str) -> Metadata | None:
        files = self.simple.files(name, self.index)
        if isinstance(files, Unavailable):
            return None
        for file in _candidates(files, version):
            text = _local(file) if file.url.startswith("file:") else self._fetch(file)
            if text is not None:
                return parse(text)
        return None

    def _fetch(self, file: File) -> str | None:
        """The metadata beside the file where the index has it there (PEP 658), else what stands in the wheel."""
        if self.index.offline:
            return None
        address, auth = urlunsplit(urlsplit(file.url)._replace(fragment="")), auth_of(file.url, self.index)
        try:
            with requests.Session() as session:
                session.verify = os.environ.get("SSL_CERT_FILE") or True
                if not file.metadata:
                    return _member(Ranged(session, address, auth, self.simple.timeout))
                with session.get(f"{address}.metadata", auth=auth, timeout=self.simple.timeout, stream=True) as answer:
                    answer.raise_for_status()
                    data = bytearray()
                    for piece in answer.iter_content(2**16):
                        data += piece
                        if len(data) > LARGEST:
                            return None
                    return data.decode("utf-8", "replace")
        except (requests.RequestException, OSError, ValueError):
            return None


def _candidates(files: Sequence[File], version: str) -> list[File]:
    """Wheels of the version, this machine's first: metadata may differ between platforms. At most three are tried."""
    found = [file for file in files if file.wheel and _is(file.version, version)]
    here = (platform.system().lower(), platform.machine())

    def rank(file: File) -> tuple[bool, str]:
        return not (file.name.endswith("-any.whl") or all(word in file.name for word in here)), file.name

    return sorted(found, key=rank)[:3]


def _is(offered: str, version: str) -> bool:
    try:
        one, wanted = Version(offered), Version(version)
    except InvalidVersion:
        return offered == version
    return one == wanted or (wanted.local is None and one.public == wanted.public)


def _local(file: File) -> str | None:
    try:
        with Path(unquote(urlsplit(file.url).path)).open("rb") as wheel:
            return _member(wheel)
    except OSError:
        return None


def _member(wheel: IO[bytes] | Ranged) -> str | None:
    """METADATA of a wheel; None when it has none or is damaged. Raises OSError."""
    try:
        with zipfile.ZipFile(cast("IO[bytes]", wheel)) as archive:
            member = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
            if archive.getinfo(member).file_size > LARGEST:
                return None
            return archive.read(member).decode("utf-8", "replace")
    except (StopIteration, zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError):
        return None
