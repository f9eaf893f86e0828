"""Running uv: found once, in a process group of its own, with an environment in which only the request decides."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from bisect_env.environments.index import SimpleIndex, default_index
from bisect_env.errors import InfrastructureError
from bisect_env.matrix.cells import IndexChoice
from bisect_env.matrix.urls import secret_values, without_credentials

KEPT = frozenset(
    {
        "UV_CACHE_DIR",
        "UV_CONCURRENT_BUILDS",
        "UV_CONCURRENT_DOWNLOADS",
        "UV_CONCURRENT_INSTALLS",
        "UV_HTTP_CONNECT_TIMEOUT",
        "UV_HTTP_RETRIES",
        "UV_HTTP_TIMEOUT",
        "UV_INSECURE_HOST",
        "UV_KEYRING_PROVIDER",
        "UV_NATIVE_TLS",
        "UV_PYTHON_DOWNLOADS",
        "UV_PYTHON_INSTALL_DIR",
        "UV_SYSTEM_CERTS",
    }
)
"""uv's own variables that say how to reach things and where to keep them, never what a resolution gives."""

CREDENTIALS = re.compile(r"UV_INDEX_.+_(USERNAME|PASSWORD)")
"""What uv wants to know for an index that is written as ``name=https://...``."""

DROPPED = re.compile(
    r"(UV|PIP|CONDA|PYENV|RUST)_.*|(PYTHON|VIRTUAL_ENV).*|LD_(PRELOAD|LIBRARY_PATH)|GIT_(DIR|WORK_TREE|INDEX_FILE)"
    r"|COLUMNS|LANGUAGE|LC_.*"
)
"""The parent's variables that would change what uv resolves, what a build sees, or the words in which it is told."""

GRACE = 2.0
"""Seconds between the polite and the final signal."""


@dataclass(frozen=True)
class Finished:
    """A run of uv that came to an end. Texts are free of credentials."""

    status: int
    """Exit status; negative: the signal that ended it."""
    stdout: str
    stderr: str
    seconds: float
    ended: Literal["itself", "timeout", "stop"] = "itself"
    """``timeout`` and ``stop``: the whole process group was killed for that reason."""

    @property
    def ok(self) -> bool:
        """It ended by itself with status 0."""
        return self.ended == "itself" and self.status == 0


OLDEST = (0, 13)
"""First uv that tells as JSON what a dry run would install (``pip install --dry-run --output-format json``)."""


def find_uv() -> Path:
    """The uv that belongs to this Python, else the one on PATH.

    Raises:
        InfrastructureError: there is none, or it is older than ``OLDEST``.
    """
    advice = "install a current one beside bisect-env (`python -m pip install --upgrade uv`)"
    found = shutil.which("uv")
    with suppress(ImportError, FileNotFoundError):
        from uv import find_uv_bin

        found = find_uv_bin()
    if found is None:
        raise InfrastructureError(f"uv was not found: {advice}")
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False, timeout=60).stdout
    version = re.match(r"uv (\d+)\.(\d+)", said)
    if version is None or tuple(map(int, version.groups())) < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        raise InfrastructureError(f"{found} is {said.strip() or 'no uv that answers'}; {wanted} is needed: {advice}")
    return Path(found)


def credentials_of(urls: Iterable[str]) -> tuple[str, ...]:
    """User names and passwords that stand in the URLs, as written and decoded: what must not be shown."""
    secrets: set[str] = set()
    for url in urls:
        parts = urlsplit(url)
        for secret in (parts.password, parts.username if parts.password is None else None):
            if secret:
                secrets |= {secret, unquote(secret)}
    return tuple(sorted(secrets, key=len, reverse=True))


def redacted(text: str, secrets: Iterable[str] = ()) -> str:
    """``text`` without the credentials of any URL in it, and without ``secrets``."""
    text = without_credentials(text)
    for secret in secrets:
        # A short secret could be part of any word; in a URL it was removed above.
        if len(secret) > 3:
            text = text.replace(secret, "***")
    return text


def index_environment(index: IndexChoice, parent: Mapping[str, str]) -> dict[str, str]:
    """uv's variables for an index choice. The order of ``urls`` is their priority: the first that has a package wins.

    Without ``urls`` the package index is ``UV_DEFAULT_INDEX`` or ``UV_INDEX_URL`` of the parent, else PyPI.
    """
    urls = index.urls or (default_index(parent),)
    result = {"UV_DEFAULT_INDEX": urls[-1]}
    if urls[:-1]:
        result["UV_INDEX"] = " ".join(urls[:-1])
    if index.find_links:
        result["UV_FIND_LINKS"] = ",".join(link.replace(",", "%2C") for link in index.find_links)
    if index.offline:
        result["UV_OFFLINE"] = "1"
    if index.torch_backend is not None:
        result["UV_TORCH_BACKEND"] = index.torch_backend
    return result


def uv_environment(
    parent: Mapping[str, str],
    index: IndexChoice | None = None,
    cache_dir: Path | None = None,
    extra: Mapping[str, str] | None = None,
    defaults: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The whole environment of a uv process. ``extra`` has the last word, ``defaults`` yield to the parent's."""
    result = dict(defaults or {})
    result |= {name: value for name, value in parent.items() if _passes(name)}
    result |= {"NO_COLOR": "1", "UV_NO_PROGRESS": "1", "UV_NO_CONFIG": "1", "LC_ALL": "C.UTF-8"}
    result.setdefault("UV_PYTHON_DOWNLOADS", "never")
    # A git requirement that needs a password must fail, not ask.
    result.setdefault("GIT_TERMINAL_PROMPT", "0")
    if cache_dir is not None:
        result["UV_CACHE_DIR"] = str(cache_dir)
    if index is not None:
        result |= index_environment(index, parent)
    return result | dict(extra or {})


def _passes(name: str) -> bool:
    return name in KEPT or CREDENTIALS.fullmatch(name) is not None or DROPPED.fullmatch(name) is None


@dataclass(frozen=True)
class Uv:
    """uv with a cache folder. One object serves a run: what it has learnt of the indexes is asked once."""

    cache_dir: Path | None = None
    """None: uv's own choice (``UV_CACHE_DIR``, else the user's cache)."""
    binary: Path = field(default_factory=find_uv)
    simple: SimpleIndex = field(default_factory=SimpleIndex, compare=False)

    def run(
        self,
        args: Sequence[str | Path],
        *,
        index: IndexChoice | None = None,
        timeout: float | None = None,
        env: Mapping[str, str] | None = None,
        defaults: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stop: threading.Event | None = None,
        stdin: str | None = None,
    ) -> Finished:
        """Runs ``uv ARGS`` to its end.

        ``index`` is handed over by environment, so that no credential is on a command line; its ``torch_backend``
        must be a variant (``cu128``) or None. ``env`` are variables for uv; ``defaults`` too, unless the user has set
        them. ``timeout`` in seconds. When the time is up, ``stop`` is set or an
        exception such as KeyboardInterrupt arrives, the whole process group is killed.

        Raises InfrastructureError when uv cannot be started.
        """
        if index is not None and index.torch_backend == "auto":
            raise ValueError("uv is asked for a certain variant: 'auto' is resolved in locks.py")
        environment = uv_environment(os.environ, index, self.cache_dir, env, defaults)
        began = time.monotonic()
        try:
            process = subprocess.Popen(
                [self.binary, *args],
                stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                env=environment,
                cwd=cwd,
                start_new_session=True,
            )
        except OSError as error:
            raise InfrastructureError(f"uv could not be started: {error}") from error
        try:
            ended = _wait(process, stdin, None if timeout is None else began + timeout, stop)
        finally:
            stdout, stderr = _end(process)
        urls = () if index is None else (*index.urls, *index.find_links, default_index())
        secrets = credentials_of(urls)
        # A source distribution's build has all of uv's variables, and may print them; what it prints is in stderr.
        # Locks are in stdout: the value of a variable that only looks like a secret's must not change them.
        said = redacted(stderr, (*secrets, *secret_values(environment)))
        return Finished(process.returncode, redacted(stdout, secrets), said, time.monotonic() - began, ended)


def _wait(
    process: subprocess.Popen[str], stdin: str | None, deadline: float | None, stop: threading.Event | None
) -> Literal["itself", "timeout", "stop"]:
    while True:
        try:
            # communicate() may be called again after its timeout: nothing read so far is lost.
            process.communicate(stdin, timeout=0.1)
            return "itself"
        except subprocess.TimeoutExpired:
            stdin = None
        if stop is not None and stop.is_set():
            return "stop"
        if deadline is not None and time.monotonic() > deadline:
            return "timeout"


def _end(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Makes sure that nothing of the group is left, and returns what it wrote."""
    if process.returncode is None:
        _signal(process, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
        _signal(process, signal.SIGKILL)
    return process.communicate()


def _signal(process: subprocess.Popen[str], number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
