from __future__ import annotations

import threading
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import requests

from bisect_env.environments import metadata
from bisect_env.environments.index import SimpleIndex
from bisect_env.environments.metadata import MetadataSource
from bisect_env.environments.ranges import TAIL, Ranged
from bisect_env.matrix.cells import IndexChoice
from tests.support.index import Index, refusing_url
from tests.support.wheels import Wheels


class Ranges(BaseHTTPRequestHandler):
    """Serves one file, in parts when it is asked so and ``parts`` is set."""

    content = b""
    parts = True
    sent: list[int] = []  # noqa: RUF012 - a fresh one for each server

    def log_message(self, format: str, *args: object) -> None:
        """Silent."""

    def do_GET(self) -> None:
        size, span = len(self.content), self.headers.get("Range", "").removeprefix("bytes=")
        first, _, last = span.partition("-")
        start = max(0, size - int(last)) if not first else int(first)
        end = size - 1 if not first else min(int(last), size - 1)
        data = self.content[start : end + 1] if self.parts else self.content
        self.send_response(206 if self.parts else 200)
        if self.parts:
            self.send_header("Content-Range", f"bytes {start}-{end}/{size}")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.sent.append(len(data))


@pytest.fixture
def serve() -> Iterator[Callable[..., tuple[str, list[int]]]]:
    running = []

    def start(content: bytes, parts: bool = True) -> tuple[str, list[int]]:
        sent: list[int] = []
        handler = type("Handler", (Ranges,), {"content": content, "parts": parts, "sent": sent})
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        running.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return f"http://127.0.0.1:{server.server_address[1]}/wheel", sent

    yield start
    for server in running:
        server.shutdown()
        server.server_close()


def source(*urls: str, links: tuple[str, ...] = (), offline: bool = False) -> MetadataSource:
    return MetadataSource(SimpleIndex(1.0), IndexChoice(None, urls, links, offline))


@pytest.mark.parametrize("json", [True, False])
def test_requirements_from_beside_the_wheel(wheels: Wheels, make_index: Callable[..., Index], json: bool) -> None:
    index = make_index(json=json)
    index.add(wheels.wheel("a", "1.0", requires=["b==1", "c>=2; python_version > '3'"]))
    found = source(index.url)
    told = found.of("a", "1.0")
    assert told is not None and told.requires == ("b==1", "c>=2; python_version > '3'")
    assert found.of("a", "2.0") is None
    before = len(index.requests)
    assert found.of("a", "1.0") == told and len(index.requests) == before
    assert not any(path.endswith(".whl") for _, path in index.requests)


def test_any_build_speaks_for_a_version_without_a_label(wheels: Wheels, index: Index) -> None:
    index.add(wheels.wheel("torch", "2.11.0+cu128", requires=["triton==3.6.0"]))
    found = source(index.url)
    for version in ("2.11.0", "2.11.0+cu128"):
        told = found.of("torch", version)
        assert told is not None and told.requires == ("triton==3.6.0",)
    assert found.of("torch", "2.11.0+cu130") is None


def test_folders_of_wheels_and_damaged_ones(wheels: Wheels, tmp_path: Path) -> None:
    wheels.wheel("a", "1.0", requires=["b"])
    (wheels.folder / "a-2.0-py3-none-any.whl").write_bytes(b"no archive")
    found = source(links=(str(wheels.folder),), offline=True)
    told = found.of("a", "1.0")
    assert told is not None and told.requires == ("b",)
    assert found.of("a", "2.0") is None


def test_credentials_go_to_the_index_that_asks_for_them(wheels: Wheels, make_index: Callable[..., Index]) -> None:
    index = make_index(credentials=("me", "secret"))
    index.add(wheels.wheel("a", "1.0", requires=["b"]))
    assert source(index.url_with_credentials).of("a", "1.0") is not None
    assert source(index.url).of("a", "1.0") is None


def test_an_index_that_does_not_answer_tells_nothing() -> None:
    assert source(refusing_url()).of("a", "1.0") is None


def test_project_urls() -> None:
    text = "Name: x\nHome-page: https://h\nProject-URL: Source Code, https://s\nProject-URL: broken\n\nHome-page: no\n"
    assert metadata.parse(text).urls == (("Source Code", "https://s"), ("Homepage", "https://h"))
    assert metadata.parse("Home-page: UNKNOWN\n").urls == ()


def test_a_wheel_is_read_in_parts(serve: Callable[..., tuple[str, list[int]]], tmp_path: Path) -> None:
    path = tmp_path / "x.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("x-1.dist-info/METADATA", "Requires-Dist: y\n")
        archive.writestr("content", bytes(4_000_000))
    url, sent = serve(path.read_bytes())
    with requests.Session() as session, zipfile.ZipFile(Ranged(session, url)) as archive:  # type: ignore[type-var]
        assert archive.read("x-1.dist-info/METADATA") == b"Requires-Dist: y\n"
    assert sum(sent) <= 3 * TAIL


def test_reading_anywhere_gives_the_files_bytes(serve: Callable[..., tuple[str, list[int]]]) -> None:
    content = bytes(range(256)) * 1000
    url, _ = serve(content)
    with requests.Session() as session:
        file = Ranged(session, url)
        for start, count in ((0, 10), (255_990, 100), (100_000, 70_000), (5, 0), (300_000, 4)):
            file.seek(start)
            assert file.read(count) == content[start : start + count]
        file.seek(-3, 2)
        assert file.read() == content[-3:]


def test_a_server_without_parts_is_an_error_and_nothing_is_read_whole(
    serve: Callable[..., tuple[str, list[int]]],
) -> None:
    url, _ = serve(bytes(100), parts=False)
    with requests.Session() as session, pytest.raises(OSError, match="no parts"):
        Ranged(session, url)
