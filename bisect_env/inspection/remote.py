"""A wheel on an index, of which only the directory and the members that are asked for are fetched."""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, cast
from urllib.parse import urlsplit, urlunsplit

import requests

from bisect_env.environments.index import File, auth_of, bare, what_happened
from bisect_env.environments.ranges import NoRanges, Pieces, Ranged
from bisect_env.errors import InfrastructureError
from bisect_env.inspection.kept import FOLDER, pieces
from bisect_env.inspection.records import Sources
from bisect_env.inspection.traffic import Traffic
from bisect_env.inspection.wheels import DAMAGE, WheelSources, module_spans
from bisect_env.matrix.cells import IndexChoice

TIMEOUT = 20.0
"""Seconds for the connection, and without a byte."""
MOST = 2**27
"""Bytes that are read of one wheel in parts: ten times what all of torch's modules take."""
AHEAD = 2**12
"""Bytes on each side of a module that are fetched with it, as far as they are modules of the same package: what is
followed to one module often leads to its neighbours."""
LARGEST_WHOLE = 50 * 10**6
"""Bytes of a wheel that is fetched whole without having been asked to."""
CHUNK = 2**20


class Stopped(Exception):
    """The user interrupted, or another place could not be opened."""


class Remote:
    """Opens wheels of one index.

    Args:
        index: has the credentials, and says whether anything may be asked.
        root: the project's folder, for what is kept.
        traffic: is told of what comes.
        download: fetch a wheel of any size where the server serves no parts of files.
    """

    def __init__(self, index: IndexChoice, root: Path, traffic: Traffic, *, download: bool = False) -> None:
        self._index, self._root, self._traffic, self._download = index, root, traffic, download
        self.stop = threading.Event()
        """Ends downloads that are under way."""

    def open(self, file: File, label: str, beneath: Sources) -> WheelSources:
        """The modules of a wheel.

        Raises:
            InfrastructureError: the server does not give it, or gives something else; offline, and it was not kept.
            Stopped: ``stop`` was set.
        """
        named = f"{file.name} on {urlsplit(bare(file.url)).netloc}"
        kept = pieces(self._root, file)
        try:
            try:
                ranged = self._ranged(file, kept)
            except NoRanges:
                self._fetch_whole(file, named, kept)
                ranged = self._ranged(file, kept)
            archive = zipfile.ZipFile(cast("IO[bytes]", ranged))
        except OSError as error:
            raise InfrastructureError(f"{named} cannot be read: {error.strerror or error}") from error
        except DAMAGE as error:
            raise InfrastructureError(f"{named} is damaged or cut short: {error}") from error
        self._traffic.opened()
        reader = _Reader(archive, ranged)
        return WheelSources(label, archive, beneath, named, reader.ahead)

    def _ranged(self, file: File, kept: Pieces) -> Ranged:
        return Ranged(
            None if self._index.offline else _session(),
            _address(file),
            auth_of(file.url, self._index),
            TIMEOUT,
            size=file.size,
            pieces=kept,
            most=MOST,
            heard=self._traffic.heard,
        )

    def _fetch_whole(self, file: File, named: str, kept: Pieces) -> None:
        """Fetch it all, and keep the directory and the modules.

        The file on the way has no name where the system allows that: nothing of it stays behind, not even by a kill.
        """
        folder = self._root / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as whole:
            size = self._arrive(file, named, whole)
            self._traffic.note(f"{named} was fetched whole ({size / 1e6:.1f} MB): the server serves no parts of files.")
            kept.size = size
            with zipfile.ZipFile(whole) as archive:
                wanted = [info for info in archive.infolist() if info.filename.endswith(".py")]
                for start, end in [*module_spans(archive)(wanted), (archive.start_dir, size)]:
                    whole.seek(start)
                    kept.add(start, whole.read(end - start))

    def _arrive(self, file: File, named: str, whole: IO[bytes]) -> int:
        """Bytes of the whole. Raises OSError, InfrastructureError and Stopped."""
        total, size = hashlib.sha256(), 0
        try:
            with (
                _session() as session,
                session.get(
                    _address(file),
                    auth=auth_of(file.url, self._index),
                    timeout=TIMEOUT,
                    stream=True,
                    headers={"Accept-Encoding": "identity"},
                ) as answer,
            ):
                answer.raise_for_status()
                told = file.size or int(answer.headers.get("Content-Length", 0))
                self._check_size(named, told)
                for chunk in answer.iter_content(CHUNK):
                    if self.stop.is_set():
                        raise Stopped
                    whole.write(chunk)
                    total.update(chunk)
                    size += len(chunk)
                    self._check_size(named, size)
        except requests.exceptions.ChunkedEncodingError as error:
            raise OSError(f"it came cut off, after {size} bytes") from error
        except requests.RequestException as error:
            raise OSError(f"the server {what_happened(error)}") from error
        self._traffic.heard(size)
        if told not in (0, size):
            raise OSError(f"{size} bytes came, not {told}")
        if file.sha256 and total.hexdigest() != file.sha256:
            raise OSError(f"its SHA-256 is {total.hexdigest()}, not {file.sha256} as the index says")
        return size

    def _check_size(self, named: str, size: int) -> None:
        if size > LARGEST_WHOLE and not self._download:
            raise InfrastructureError(
                f"{named} has {size / 1e6:.0f} MB, and the server serves no parts of files: all of it would have to be "
                "fetched.\n  --download does that; an index that serves parts (PyPI does) needs a hundredth of it."
            )


class _Reader:
    """Fetches members, with their neighbours."""

    def __init__(self, archive: zipfile.ZipFile, ranged: Ranged) -> None:
        self._ranged, self._spans = ranged, module_spans(archive)
        modules = sorted(
            (info for info in archive.infolist() if info.filename.endswith(".py")), key=lambda info: info.header_offset
        )
        self._modules = modules
        self._places = {info.header_offset: place for place, info in enumerate(modules)}

    def ahead(self, infos: Sequence[zipfile.ZipInfo]) -> None:
        """Have members at hand. One alone comes with its neighbours, unless it is there."""
        spans = self._spans(infos)
        if len(infos) == 1 and self._ranged.lacks(*spans[0]):
            spans = self._around(infos[0])
        self._ranged.load(spans)

    def _around(self, info: zipfile.ZipInfo) -> list[tuple[int, int]]:
        place, folder = self._places[info.header_offset], info.filename.rpartition("/")[0]
        taken = [info]
        for step in (1, -1):
            room, at = AHEAD, place + step
            while 0 <= at < len(self._modules) and self._modules[at].filename.rpartition("/")[0] == folder:
                room -= self._modules[at].compress_size
                if room < 0:
                    break
                taken.append(self._modules[at])
                at += step
        return self._spans(taken)


def _address(file: File) -> str:
    return urlunsplit(urlsplit(file.url)._replace(fragment=""))


def _session() -> requests.Session:
    session = requests.Session()
    # uv's variable for the machine's own certificates, unknown to requests.
    session.verify = os.environ.get("SSL_CERT_FILE") or True
    return session
