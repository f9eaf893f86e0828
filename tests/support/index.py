"""A package index on loopback: JSON (PEP 691) and HTML (PEP 503), hashes, sizes, upload times, and ways to fail."""

from __future__ import annotations

import base64
import html
import io
import json
import os
import re
import socket
import ssl
import struct
import threading
import time
import zipfile
from dataclasses import dataclass
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

from tests.support.wheels import normalised

JSON_TYPE = "application/vnd.pypi.simple.v1+json"
UPLOADED = "2025-01-01T00:00:00Z"

Mode = Literal["serves", "hangs", "drops"]


@dataclass(frozen=True)
class Upload:
    """A file of the index. ``uploaded`` None: the index does not tell when."""

    path: Path
    project: str
    uploaded: str | None
    yanked: bool | str
    requires_python: str | None

    @property
    def digest(self) -> str:
        return sha256(self.path.read_bytes()).hexdigest()

    @property
    def metadata(self) -> bytes | None:
        """METADATA of a wheel (PEP 658), None for anything else and for a broken one."""
        if self.path.suffix != ".whl":
            return None
        try:
            with zipfile.ZipFile(self.path) as archive:
                (member,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
                return archive.read(member)
        except zipfile.BadZipFile:
            return None


class Index:
    """A running index. ``url`` is what goes into a matrix; ``mode`` may change while it runs.

    ``hangs`` accepts and never answers; ``drops`` closes each connection with a reset; an index that refuses
    connections is a stopped one, or :func:`refusing_url`. ``credentials`` is ``(user, password)``; ``status``
    is answered to every request when it is set (403, 503, ...). ``requests`` lists what was asked, in order.
    With ``tls`` it is an HTTPS proxy as well, which answers in the place of whatever host is asked for.

    With ``parts`` it serves parts of files; the next ``cuts`` answers with a file, or with a part of one, break off in
    their middle; ``lie`` is added to the sizes that JSON pages tell; with ``pause`` a file comes in pieces of 64 KiB,
    so many seconds apart. ``sent`` has the bytes of each of these answers.
    """

    def __init__(
        self,
        *,
        json: bool = True,
        credentials: tuple[str, str] | None = None,
        prefix: str | None = None,
        root: str = "simple",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.json = json
        self.root, self.tls = root, tls
        self.credentials = credentials
        self.mode: Mode = "serves"
        self.status: int | None = None
        self.parts, self.cuts, self.lie = False, 0, 0
        self.pause = 0.0
        self.sent: list[int] = []
        self.requests: list[tuple[str, str]] = []
        self.uploads: list[Upload] = []
        self.stopping = threading.Event()
        # A prefix of its own, since a port may come again and uv's cache is keyed by URL.
        self.prefix = f"/{os.urandom(6).hex()}" if prefix is None else prefix
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.index = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"

    @property
    def url(self) -> str:
        """Without credentials."""
        return f"http://{self.host}{self.prefix}/{self.root}"

    @property
    def url_with_credentials(self) -> str:
        assert self.credentials is not None
        user, password = self.credentials
        return f"http://{user}:{password}@{self.host}{self.prefix}/{self.root}"

    def add(
        self,
        path: Path,
        *,
        uploaded: str | None = UPLOADED,
        yanked: bool | str = False,
        requires_python: str | None = None,
    ) -> Path:
        """Offers a wheel or source distribution; the project's name is read from the file's name."""
        stem = path.name.removesuffix(".tar.gz")
        project = normalised(stem.split("-")[0] if path.suffix == ".whl" else stem.rpartition("-")[0])
        self.uploads.append(Upload(path, project, uploaded, yanked, requires_python))
        return path

    def stop(self) -> None:
        """Closes the port: from now on connections are refused. May be called twice."""
        if not self.stopping.is_set():
            self.stopping.set()
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def refusing_url() -> str:
    """URL of a port on loopback where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}/simple"


class _Writer(io.BufferedIOBase):
    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:
        self.connection.sendall(data)
        return len(data)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    index: Index

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is what many tests are about: nothing to report."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30

    def log_message(self, format: str, *args: object) -> None:
        """Silent: ``Index.requests`` is the log."""

    def do_CONNECT(self) -> None:
        tls = self.server.index.tls  # type: ignore[attr-defined]
        if tls is None:
            self.send_error(405)
            return
        self.send_response(200)
        self.end_headers()
        self.connection = tls.wrap_socket(self.connection, server_side=True)
        self.rfile = self.connection.makefile("rb", self.rbufsize)
        self.wfile = _Writer(self.connection)
        self.close_connection = False

    def finish(self) -> None:
        super().finish()
        self.connection.close()

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        index = self.server.index  # type: ignore[attr-defined]
        index.requests.append((self.command, self.path))
        if index.mode == "hangs":
            index.stopping.wait()
            self.close_connection = True
            return
        if index.mode == "drops":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True
            return
        if index.status is not None:
            self._send(index.status, b"", "text/plain")
        elif not self._allowed(index):
            self._send(401, b"", "text/plain", {"WWW-Authenticate": 'Basic realm="index"'})
        else:
            self._page(index)

    def _allowed(self, index: Index) -> bool:
        if index.credentials is None:
            return True
        wanted = base64.b64encode(":".join(index.credentials).encode()).decode()
        return self.headers.get("Authorization") == f"Basic {wanted}"

    def _page(self, index: Index) -> None:
        parts = self.path.removeprefix(index.prefix).strip("/").split("/")
        if parts == [index.root]:
            projects = sorted({upload.project for upload in index.uploads})
            self._send(200, "".join(f'<a href="{name}/">{name}</a>' for name in projects).encode(), "text/html")
        elif len(parts) == 2 and parts[0] == index.root:
            uploads = [upload for upload in index.uploads if upload.project == parts[1]]
            if not uploads:
                self._send(404, b"", "text/plain")
            elif index.json and JSON_TYPE in self.headers.get("Accept", ""):
                self._send(200, _json_page(index, parts[1], uploads), JSON_TYPE)
            else:
                self._send(200, _html_page(index, uploads), "text/html")
        elif len(parts) == 2 and parts[0] == "files":
            self._file(index, parts[1])
        else:
            self._send(404, b"", "text/plain")

    def _file(self, index: Index, name: str) -> None:
        name = unquote(name)
        for upload in index.uploads:
            if upload.path.name == name:
                self._content(index, upload.path.read_bytes())
                return
            if f"{upload.path.name}.metadata" == name and upload.metadata is not None:
                self._send(200, upload.metadata, "application/octet-stream")
                return
        self._send(404, b"", "text/plain")

    def _content(self, index: Index, data: bytes) -> None:
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if not index.parts or asked is None:
            self._send(200, data, "application/octet-stream")
            return
        size = len(data)
        start = int(asked[1]) if asked[1] else max(0, size - int(asked[2]))
        end = min(size, int(asked[2]) + 1) if asked[1] else size
        if start >= end:
            self._send(416, b"", "text/plain")
            return
        self._send(
            206, data[start:end], "application/octet-stream", {"Content-Range": f"bytes {start}-{end - 1}/{size}"}
        )

    def _send(self, status: int, body: bytes, kind: str, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        # A test that adds a release in its middle must see it.
        self.send_header("Cache-Control", "no-cache")
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        index = self.server.index  # type: ignore[attr-defined]
        if kind == "application/octet-stream":
            if index.cuts:
                index.cuts -= 1
                body, self.close_connection = body[: len(body) // 2], True
            index.sent.append(len(body))
            while index.pause and body:
                self.wfile.write(body[:65536])
                body = body[65536:]
                time.sleep(index.pause)
        self.wfile.write(body)


def _json_page(index: Index, project: str, uploads: list[Upload]) -> bytes:
    files = []
    for upload in uploads:
        entry: dict[str, object] = {
            "filename": upload.path.name,
            "url": f"{index.prefix}/files/{upload.path.name}",
            "hashes": {"sha256": upload.digest},
            "size": upload.path.stat().st_size + index.lie,
            "yanked": upload.yanked,
        }
        if upload.metadata is not None:
            entry["core-metadata"] = {"sha256": sha256(upload.metadata).hexdigest()}
        if upload.uploaded:
            entry["upload-time"] = upload.uploaded
        if upload.requires_python:
            entry["requires-python"] = upload.requires_python
        files.append(entry)
    versions = sorted({upload.path.name.removesuffix(".tar.gz").split("-")[1] for upload in uploads})
    page = {"meta": {"api-version": "1.1"}, "name": project, "versions": versions, "files": files}
    return json.dumps(page).encode()


def _html_page(index: Index, uploads: list[Upload]) -> bytes:
    lines = []
    for upload in uploads:
        attributes = ""
        if upload.yanked:
            reason = upload.yanked if isinstance(upload.yanked, str) else ""
            attributes += f' data-yanked="{html.escape(reason)}"'
        if upload.requires_python:
            attributes += f' data-requires-python="{html.escape(upload.requires_python)}"'
        if upload.metadata is not None:
            attributes += f' data-core-metadata="sha256={sha256(upload.metadata).hexdigest()}"'
        name = upload.path.name
        url = f"{index.prefix}/files/{name.replace('+', '%2B')}#sha256={upload.digest}"
        lines.append(f'<a href="{url}"{attributes}>{name}</a><br>')
    return ("<!DOCTYPE html><html><body>" + "".join(lines) + "</body></html>").encode()
