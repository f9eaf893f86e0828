"""A loopback server of git repositories over HTTP, by git's own ``http-backend``; with a password where one is set."""

from __future__ import annotations

import base64
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote


class GitServer(ThreadingHTTPServer):
    """Serves every repository below a folder, for reading."""

    daemon_threads = True

    def __init__(self, root: Path, user: str = "", password: str = "") -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.root = root
        self.wanted = f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}" if user else ""
        self.asked: list[str] = []
        """Paths that were asked for."""

    def url(self, name: str) -> str:
        """Of the repository of this name."""
        return f"http://127.0.0.1:{self.server_address[1]}/{name}"


class _Handler(BaseHTTPRequestHandler):
    server: GitServer

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        self.server.asked.append(path)
        if self.server.wanted and self.headers.get("Authorization") != self.server.wanted:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        variables = os.environ | {
            "GIT_PROJECT_ROOT": str(self.server.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": unquote(path),
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            # The repositories of a test may belong to somebody else than who runs it.
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
        }
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        told = subprocess.run(["git", "http-backend"], input=body, capture_output=True, env=variables, check=False)
        head, _, content = told.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        self.send_response(int(fields.pop("Status", "200").split()[0]))
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def serving(root: Path, user: str = "", password: str = "") -> Iterator[GitServer]:
    """The server, while it is used."""
    with GitServer(root, user, password) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
