"""Wheels fetched once into a folder that later bundles share: proved by their SHA-256, gone on with after a break."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import requests

from bisect_env.bundles.sources import Source
from bisect_env.bundles.stamps import Stamps
from bisect_env.environments.index import auth_of, bare
from bisect_env.errors import InfrastructureError
from bisect_env.matrix.cells import IndexChoice

AT_ONCE = 6
ATTEMPTS = 5
PAUSE = 1.0
"""Seconds before the second attempt; twice as long before each further one."""
TIMEOUT = (10.0, 60.0)
"""Seconds for the connection, and without a byte."""
CHUNK = 1 << 20
UNFINISHED = ".partial"


class Stopped(Exception):
    """Another download failed, or the user interrupted: what is fetched so far stays to be gone on with."""


@dataclass(frozen=True)
class Place:
    """The folder of fetched wheels, ``SHA256/FILENAME`` in it, and what is known of their content."""

    folder: Path
    stamps: Stamps

    def path(self, source: Source) -> Path:
        """Where a wheel lies, or will lie."""
        return self.folder / source.sha256 / source.filename

    def has(self, source: Source) -> bool:
        """Whether the wheel is there and is what its hash says."""
        return self.stamps.sha256(self.path(source)) == source.sha256

    def missing_bytes(self, sources: Iterable[Source]) -> int:
        """Bytes still to be fetched for wheels that are not there, as far as the index tells sizes."""
        return sum(max((source.size or 0) - _size(self._unfinished(source)), 0) for source in sources)

    def _unfinished(self, source: Source) -> Path:
        path = self.path(source)
        return path.with_name(path.name + UNFINISHED)

    def fetch(self, source: Source, auth: tuple[str, str] | None, stop: threading.Event, count: Counter) -> None:
        """Fetches one wheel. ``count`` is told of bytes as they arrive.

        Raises:
            InfrastructureError: the index does not give it, or gives something else.
            Stopped: ``stop`` was set.
        """
        unfinished = self._unfinished(source)
        unfinished.parent.mkdir(parents=True, exist_ok=True)
        for attempt in range(ATTEMPTS):
            if attempt and stop.wait(PAUSE * 2 ** (attempt - 1)):
                raise Stopped
            try:
                sha256 = _arrive(source, unfinished, auth, stop, count)
            except FileNotFoundError as error:
                last = f"{error.filename} is not there"
                break
            except requests.RequestException as error:
                status = error.response.status_code if error.response is not None else None
                last = f"HTTP {status}" if status is not None else type(error).__name__
                if status is not None and 400 <= status < 500 and status not in (408, 416, 429):
                    break
                if status == 416:  # More is there than the file has: not a beginning of it.
                    unfinished.unlink(missing_ok=True)
                continue
            if sha256 == source.sha256:
                unfinished.replace(self.path(source))
                self.stamps.learnt(self.path(source), sha256)
                return
            last = f"its SHA-256 is {sha256}, not {source.sha256}"
            unfinished.unlink(missing_ok=True)
        raise InfrastructureError(
            f"{source.filename} could not be fetched from {bare(source.url)}: {last}\n"
            "  What was fetched is kept: the same command goes on from there."
        )


Counter = Callable[[int], None]


def fetch_all(
    sources: Sequence[Source],
    place: Place,
    indexes: Sequence[IndexChoice],
    stop: threading.Event,
    count: Counter,
    done: Callable[[Source, float], None],
) -> None:
    """Fetches wheels, several at once, in their order. ``indexes`` have the credentials, ``done`` is told seconds.

    Raises:
        InfrastructureError: as :meth:`Place.fetch`; the others are stopped then.
    """

    def one(source: Source) -> None:
        if stop.is_set():
            raise Stopped
        began = time.monotonic()
        auth = next(filter(None, (auth_of(source.url, index) for index in indexes)), None)
        place.fetch(source, auth, stop, count)
        done(source, time.monotonic() - began)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        futures = [pool.submit(one, source) for source in sources]
        failed: list[BaseException] = []
        try:
            for future in futures:
                error = future.exception()
                if error is not None:
                    stop.set()
                    failed.append(error)
        except BaseException:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    if failed:
        raise next((error for error in failed if not isinstance(error, Stopped)), failed[0])


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _arrive(
    source: Source, unfinished: Path, auth: tuple[str, str] | None, stop: threading.Event, count: Counter
) -> str:
    """Appends what is missing, and returns the SHA-256 of the whole."""
    have = _size(unfinished)
    total = hashlib.sha256()
    with closing(_chunks(source.url, have, auth)) as chunks, unfinished.open("ab") as file:
        if next(chunks) == b"":  # The server begins at the beginning.
            file.truncate(0)
        elif have:
            with unfinished.open("rb") as before:
                while chunk := before.read(CHUNK):
                    total.update(chunk)
        for chunk in chunks:
            if stop.is_set():
                raise Stopped
            file.write(chunk)
            total.update(chunk)
            count(len(chunk))
    return total.hexdigest()


def _chunks(url: str, have: int, auth: tuple[str, str] | None) -> Generator[bytes, None, None]:
    """First ``b"-"`` when it goes on after ``have`` bytes, ``b""`` when it begins anew; then the content."""
    if url.startswith("file:"):
        yield b""
        with Path(unquote(urlsplit(url).path)).open("rb") as file:
            while chunk := file.read(CHUNK):
                yield chunk
        return
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with requests.Session() as session:
        # uv's variable for the machine's own certificates, unknown to requests.
        session.verify = os.environ.get("SSL_CERT_FILE") or True
        with session.get(url, headers=headers, auth=auth, stream=True, timeout=TIMEOUT) as response:
            response.raise_for_status()
            yield b"-" if response.status_code == 206 else b""
            yield from response.iter_content(CHUNK)
