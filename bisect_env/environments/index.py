"""Asking an index what it has: releases, local versions, sizes, upload times, and whether it answers at all.

Every answer is kept for the life of the object, also "does not answer": one object serves a run.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote, urlsplit, urlunsplit

import requests
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version
from pypi_simple import (
    DistributionPackage,
    NoSuchProjectError,
    ProjectPage,
    PyPISimple,
    UnparsableFilenameError,
    UnsupportedContentTypeError,
    UnsupportedRepoVersionError,
    parse_filename,
)

from bisect_env.environments.records import Reason, Unavailable
from bisect_env.errors import InfrastructureError
from bisect_env.matrix.cells import IndexChoice
from bisect_env.matrix.urls import without_credentials
from bisect_env.matrix.versions import Release

PYPI = "https://pypi.org/simple"
PYTORCH = "https://download.pytorch.org/whl"
PAUSE = 0.3
"""Seconds before the second and last try at an index that refused or dropped the connection."""

Value = TypeVar("Value")


@dataclass(frozen=True)
class File:
    """A wheel or source distribution that an index offers."""

    name: str
    version: str
    wheel: bool
    size: int | None
    """Bytes; None when the index does not tell."""
    uploaded: datetime | None
    yanked: bool
    requires_python: str | None
    url: str = field(default="", repr=False)
    """Where it lies; may hold the index's credentials."""
    metadata: bool = False
    """The index offers its core metadata beside it, at the URL with ``.metadata`` behind (PEP 658)."""
    sha256: str = ""
    """Hexadecimal; empty when the index does not tell."""


@dataclass
class _Slot:
    lock: threading.Lock = field(default_factory=threading.Lock)
    values: list[object] = field(default_factory=list)


def default_index(environment: Mapping[str, str] | None = None) -> str:
    """The package index where a matrix names none: uv's own variables for it (of this process), else PyPI."""
    environment = os.environ if environment is None else environment
    return environment.get("UV_DEFAULT_INDEX") or environment.get("UV_INDEX_URL") or PYPI


def bare(url: str) -> str:
    """An index URL without credentials and without uv's ``name=`` in front: fit for a message."""
    parts = urlsplit(unnamed(url))
    if not parts.netloc and not url.startswith(("/", ".", "file:")):
        # Its https:// was forgotten.
        return without_credentials(url.rpartition("@")[2].rstrip("/")) or "a URL without a host"
    return without_credentials(urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])).rstrip("/"))


def unnamed(url: str) -> str:
    """uv allows ``name=https://...``: the URL alone."""
    name, found, rest = url.partition("=")
    return rest if found and "/" not in name else url


def credentials_for(url: str, environment: Mapping[str, str]) -> tuple[str, str] | None:
    """uv's credentials for ``name=https://...``: ``UV_INDEX_NAME_USERNAME`` and ``UV_INDEX_NAME_PASSWORD``."""
    if unnamed(url) == url:
        return None
    prefix = "UV_INDEX_" + re.sub(r"[^A-Z0-9]", "_", url.partition("=")[0].upper())
    user, password = environment.get(f"{prefix}_USERNAME"), environment.get(f"{prefix}_PASSWORD")
    return None if user is None and password is None else (user or "", password or "")


def auth_of(url: str, index: IndexChoice) -> tuple[str, str] | None:
    """User and password of the index that a file lies on: a page may name its files without them.

    None without one; requests looks into ~/.netrc then.
    """
    host = urlsplit(url).netloc.rpartition("@")[2]
    for each in (*index.urls, *index.find_links, default_index()):
        parts = urlsplit(unnamed(each))
        if parts.netloc.rpartition("@")[2] != host:
            continue
        named = credentials_for(each, os.environ)
        if named is not None:
            return named
        if parts.username is not None:
            return unquote(parts.username), unquote(parts.password or "")
    return None


class SimpleIndex:
    """A release source over the simple API (JSON or HTML), ``file:`` indexes and find-links folders.

    ``timeout`` is in seconds, for the connection and for each read, so that a large page from a slow index arrives
    and a silent index is known soon. ``heard`` is told the bytes of each page that came.
    """

    def __init__(self, timeout: float = 6.0, heard: Callable[[int], None] | None = None) -> None:
        self.timeout, self._heard = timeout, heard
        self._slots: dict[tuple[str, ...], _Slot] = {}
        self._lock = threading.Lock()

    def releases(self, name: str, index: IndexChoice) -> Sequence[Release]:
        """Released versions of ``name``, ascending; empty when no index has it. A version's upload time is that of
        its newest file; it is yanked when all its files are.

        Raises InfrastructureError when an index does not answer.
        """
        files = self.files(name, index)
        if isinstance(files, Unavailable):
            raise InfrastructureError(f"the releases of {name} are not known: {files.message}")
        by_version: dict[Version, list[File]] = {}
        for file in files:
            try:
                by_version.setdefault(Version(file.version), []).append(file)
            except InvalidVersion:
                continue  # as pip and uv do: such files cannot be asked for
        releases = []
        for version in sorted(by_version):
            times = [file.uploaded for file in by_version[version] if file.uploaded]
            yanked = all(file.yanked for file in by_version[version])
            releases.append(Release(str(version), max(times, default=None), yanked))
        return tuple(releases)

    def files(self, name: str, index: IndexChoice) -> tuple[File, ...] | Unavailable:
        """What uv would choose from: the first index that has the project, and all find-links."""
        found: list[File] = []
        for link in index.find_links:
            listed = self._links(link, name, index.offline)
            if isinstance(listed, Unavailable):
                return listed
            found += listed
        for url in _urls(index):
            page = self.page(url, name, index.offline)
            if isinstance(page, Unavailable):
                if page.reason is Reason.OFFLINE and found:
                    continue  # offline, the folders are all there is
                return page
            if page:
                return (*found, *page)
        return tuple(found)

    def page(self, url: str, name: str, offline: bool = False) -> tuple[File, ...] | Unavailable:
        """The files of a project on one index; empty when it has no such project."""
        name, auth, url = canonicalize_name(name), credentials_for(url, os.environ), unnamed(url)
        if url.startswith("file:"):
            return self._once(("page", url, name), lambda: _local_page(Path(unquote(urlsplit(url).path)), name))
        if offline:
            return Unavailable("resolve", Reason.OFFLINE, f"offline: {bare(url)} was not asked for {name}")
        return self._once(("page", url, name), lambda: self._fetch(url, name, auth))

    def reach(self, url: str) -> Unavailable | None:
        """None when the index answers anything at all within the timeout, asked once in the object's life."""
        url = unnamed(url)
        if url.startswith("file:"):
            return None
        return self._once(("reach", url), lambda: self._ask(url))

    def _once(self, key: tuple[str, ...], make: Callable[[], Value]) -> Value:
        with self._lock:
            slot = self._slots.setdefault(key, _Slot())
        with slot.lock:
            if not slot.values:
                slot.values.append(make())
            return slot.values[0]  # type: ignore[return-value]

    def _session(self) -> requests.Session:
        session = requests.Session()
        # uv's variable for the machine's own certificates, unknown to requests.
        session.verify = os.environ.get("SSL_CERT_FILE") or True
        if self._heard is not None:
            session.hooks["response"].append(self._hear)
        return session

    def _hear(self, answer: requests.Response, *_: object, **__: object) -> None:
        if self._heard is not None:
            answer.content  # noqa: B018 - read now: how much came over the wire is known afterwards
            self._heard(answer.raw.tell())

    def _ask(self, url: str) -> Unavailable | None:
        with self._session() as session:

            def once() -> None:
                session.head(url.rstrip("/") + "/", timeout=self.timeout, allow_redirects=False).close()

            try:
                return _twice(once)
            except requests.RequestException as error:
                return _trouble(url, error)

    def _fetch(self, url: str, name: str, auth: tuple[str, str] | None) -> tuple[File, ...] | Unavailable:
        with self._session() as session, PyPISimple(url, auth=auth, session=session) as client:
            try:
                page = _twice(lambda: client.get_project_page(name, timeout=self.timeout))
            except NoSuchProjectError:
                return ()
            except (requests.RequestException, UnsupportedContentTypeError, UnsupportedRepoVersionError) as error:
                return _trouble(url, error)
        return _files(page.packages)

    def _links(self, link: str, name: str, offline: bool) -> tuple[File, ...] | Unavailable:
        name = canonicalize_name(name)
        if "://" not in link or link.startswith("file:"):
            folder = Path(unquote(urlsplit(link).path)) if link.startswith("file:") else Path(link)
            return self._once(("links", link, name), lambda: _folder(folder, name))
        if offline:
            return ()
        return self._once(("links", link, name), lambda: self._flat(link, name))

    def _flat(self, url: str, name: str) -> tuple[File, ...] | Unavailable:
        with self._session() as session:
            try:
                response = _twice(lambda: session.get(url, timeout=self.timeout))
                response.raise_for_status()
            except requests.RequestException as error:
                return _trouble(url, error)
        return _files([package for package in _links_of(response.text, url) if _is(package.project, name)])


def _urls(index: IndexChoice) -> tuple[str, ...]:
    return index.urls or (default_index(),)


def _twice(ask: Callable[[], Value]) -> Value:
    """A refused or dropped connection is tried once more; a silent index is not: that would double the wait."""
    try:
        return ask()
    except requests.Timeout:
        raise
    except requests.ConnectionError:
        time.sleep(PAUSE)
        return ask()


def _trouble(url: str, error: Exception) -> Unavailable:
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status in (401, 403):
        return Unavailable("resolve", Reason.CREDENTIALS, f"{bare(url)} refused the credentials (HTTP {status})")
    said = f"answered HTTP {status}" if status is not None else what_happened(error)
    return Unavailable("resolve", Reason.INDEX_UNREACHABLE, f"{bare(url)} {said}")


def what_happened(error: Exception) -> str:
    """What a server did that gave no answer, without its URL: ``refuses connections``."""
    if isinstance(error, requests.Timeout):
        return "did not answer in time"
    if isinstance(error, requests.ConnectionError):
        return _connection(str(error))
    return f"did not answer as a package index does ({type(error).__name__})"


def _connection(text: str) -> str:
    for sign, said in (
        ("NameResolutionError", "is not known to this machine's name service"),
        ("Connection refused", "refuses connections"),
        ("CERTIFICATE_VERIFY_FAILED", "has a certificate that this machine does not trust (see SSL_CERT_FILE)"),
        ("ProxyError", "cannot be reached through the proxy"),
    ):
        if sign in text:
            return said
    return "cannot be reached (the connection broke)"


def _is(project: str | None, name: str) -> bool:
    return project is not None and canonicalize_name(project) == name


def _files(packages: Sequence[DistributionPackage]) -> tuple[File, ...]:
    result = []
    for package in packages:
        if package.version is None or package.package_type not in ("wheel", "sdist"):
            continue
        time_ = package.upload_time
        if time_ is not None and time_.tzinfo is None:
            time_ = time_.replace(tzinfo=UTC)
        result.append(
            File(
                package.filename,
                package.version,
                package.package_type == "wheel",
                package.size,
                time_,
                package.is_yanked,
                package.requires_python,
                package.url,
                bool(package.has_metadata),
                (package.digests or {}).get("sha256", ""),
            )
        )
    return tuple(result)


def _links_of(text: str, url: str) -> list[DistributionPackage]:
    return ProjectPage.from_html("", text, base_url=url).packages


def _local_page(root: Path, name: str) -> tuple[File, ...] | Unavailable:
    folder = root / name
    page = folder / "index.html"
    try:
        text = page.read_text(encoding="utf-8")
    except FileNotFoundError:
        return () if root.is_dir() else _missing(root)
    except OSError as error:
        return Unavailable("resolve", Reason.INDEX_UNREACHABLE, f"{page} cannot be read: {error.strerror}")
    return _files(ProjectPage.from_html(name, text, base_url=folder.as_uri() + "/").packages)


def _folder(folder: Path, name: str) -> tuple[File, ...] | Unavailable:
    if not folder.is_dir():
        return _missing(folder)
    result = []
    for path in sorted(folder.iterdir()):
        try:
            project, version, kind = parse_filename(path.name)
        except UnparsableFilenameError:
            continue
        if _is(project, name) and kind in ("wheel", "sdist"):
            result.append(
                File(
                    path.name,
                    version,
                    kind == "wheel",
                    path.stat().st_size,
                    None,
                    False,
                    None,
                    path.absolute().as_uri(),
                )
            )
    return tuple(result)


def _missing(folder: Path) -> Unavailable:
    return Unavailable("resolve", Reason.INDEX_UNREACHABLE, f"{folder} is not a folder")
