"""Wheels over HTTP: once, whole, gone on with after a break, refused when they are not what the hash says."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from bisect_env.bundles import fetching
from bisect_env.bundles.fetching import Place, fetch_all
from bisect_env.bundles.sources import Source
from bisect_env.bundles.stamps import Stamps
from bisect_env.errors import InfrastructureError
from bisect_env.matrix.cells import IndexChoice
from tests.support.index import Index
from tests.support.wheels import Wheels

DATA = bytes(range(256)) * 8192
"""2 MiB."""


class Server(ThreadingHTTPServer):
    """Serves DATA at any path; the first answers break off after ``breaks`` bytes."""

    daemon_threads = True
    breaks: int | None = None
    ranges = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/big-1-py3-none-any.whl"


class Handler(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Silent."""

    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, Server)
        wanted = self.headers.get("Range", "")
        server.asked.append(wanted)
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and server.ranges else 0
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(DATA) - start))
        self.end_headers()
        end = len(DATA) if server.breaks is None else start + server.breaks
        server.breaks = None
        self.wfile.write(DATA[start:end])


@contextmanager
def serving() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def source(url: str, data: bytes = DATA) -> Source:
    return Source("big-1-py3-none-any.whl", "big", "1", sha256(data).hexdigest(), len(DATA), url)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr(fetching, "PAUSE", 0.01)
    return Place(tmp_path / "fetched", Stamps(tmp_path / "stamps.json"))


def fetch(place: Place, wanted: Source, *indexes: IndexChoice) -> list[int]:
    counts: list[int] = []
    fetch_all([wanted], place, indexes, threading.Event(), counts.append, lambda *_: None)
    return counts


@pytest.mark.parametrize("ranges", [True, False])
def test_a_broken_download_goes_on(place: Place, ranges: bool) -> None:
    with serving() as server:
        server.ranges, server.breaks = ranges, 1_500_000
        counts = fetch(place, source(server.url))
    assert place.path(source(server.url)).read_bytes() == DATA and place.has(source(server.url))
    assert len(server.asked) == 2 and server.asked[0] == "" and server.asked[1].startswith("bytes=")
    if ranges:
        assert sum(counts) == len(DATA)
    assert [path.name for path in place.folder.rglob("*.whl*")] == ["big-1-py3-none-any.whl"]


def test_what_a_stopped_run_has_is_used(place: Place) -> None:
    stop = threading.Event()
    with serving() as server, pytest.raises(fetching.Stopped):
        fetch_all([source(server.url)], place, (), stop, lambda _: stop.set(), lambda *_: None)
    assert not place.has(source(server.url))
    assert 0 < place.missing_bytes([source(server.url)]) < len(DATA)
    with serving() as server:
        fetch(place, source(server.url))
        assert place.has(source(server.url)) and server.asked[0].startswith("bytes=")


def test_something_else_is_refused(place: Place) -> None:
    with serving() as server, pytest.raises(InfrastructureError, match="SHA-256"):
        fetch(place, source(server.url, b"other"))
    assert not list(place.folder.rglob("*.whl*"))


def test_an_index_that_answers_no_more(place: Place, index: Index, wheels: Wheels) -> None:
    path = wheels.wheel("a", "1")
    wanted = source(index.url.replace("simple", f"files/{path.name}"), path.read_bytes())
    with pytest.raises(InfrastructureError, match="HTTP 404"):
        fetch(place, wanted)
    index.stop()
    with pytest.raises(InfrastructureError, match="ConnectionError"):
        fetch(place, wanted)


def test_credentials_are_those_of_the_host(place: Place, make_index: object, wheels: Wheels) -> None:
    index = make_index(credentials=("user", "p@ss"))  # type: ignore[operator]
    path = index.add(wheels.wheel("a", "1"))
    wanted = source(index.url.replace("simple", f"files/{path.name}"), path.read_bytes())
    with pytest.raises(InfrastructureError, match="HTTP 401"):
        fetch(place, wanted)
    fetch(place, wanted, IndexChoice(urls=(index.url_with_credentials.replace("p@ss", "p%40ss"),)))
    assert place.has(wanted)


def test_a_file_changed_since_is_read_again(place: Place) -> None:
    with serving() as server:
        fetch(place, source(server.url))
    place.stamps.save()
    again = Place(place.folder, Stamps(place.stamps.path))
    assert again.has(source(server.url))
    again.path(source(server.url)).write_bytes(DATA[:-1] + b"x")
    assert not again.has(source(server.url))
