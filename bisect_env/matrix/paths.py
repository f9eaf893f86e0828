"""Paths in a matrix file: relative to the file, ``~`` expanded, and checked to be there."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from bisect_env.matrix.problems import Unfit, shown
from bisect_env.matrix.urls import has_credentials

_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:")
_PATH_STARTS = ("./", "../", "/", "~")


def looks_like_path(text: str) -> bool:
    """True when ``text`` is written as a path: ``./tree``, ``../tree``, ``/tree``, ``~/tree``, ``.``."""
    return text.startswith(_PATH_STARTS) or text in (".", "..")


def looks_like_source(text: str) -> bool:
    """True when ``text`` is written as a URL or as a path, and not as a version."""
    return looks_like_path(text) or _SCHEME.match(text) is not None


def absolute(text: str, folder: Path) -> Path:
    """The path that ``text`` means in a file that lies in ``folder``. Symbolic links stay: a venv's python is one.

    Raises:
        Unfit: the ``~name`` in it is no user of this machine.
    """
    try:
        expanded = Path(text).expanduser()
    except RuntimeError:
        raise Unfit(f"{shown(text)}: no such user", "a path that begins with ~/, ./ or /") from None
    return Path(os.path.abspath(folder / expanded))  # noqa: PTH100  (resolve() would follow links)


def existing(text: str, folder: Path, what: str) -> Path:
    """As :func:`absolute`.

    Raises:
        Unfit: nothing is there that can be reached, or neither a file nor a folder, whose content would be waited for
            without end; ``what`` says what should be.
    """
    path = absolute(text, folder)
    try:
        kind = path.stat().st_mode
    except FileNotFoundError:
        kind = None
    except OSError as error:
        raise Unfit(f"{shown(text)}: {error.strerror}", what) from None
    if kind is not None and not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
        raise Unfit(f"{shown(text)} is a pipe, a socket or a device", what)
    if kind is None:
        raise Unfit(f"{shown(text)}: no such file or folder", f"{what}; relative paths start at {folder}")
    return path


def source_url(text: str, folder: Path) -> str:
    """The URL of a requirement's source: ``git+https://...`` and the like as they are, local ones as ``file://``.

    Raises:
        Unfit: nothing is at a local one, or the URL holds a credential: it would be kept with every trial.
    """
    if looks_like_path(text):
        return existing(text, folder, "a project's folder, a wheel or a source archive").as_uri()
    if has_credentials(text):
        wanted = "the URL without them: git's credential helper, ssh keys or ~/.netrc supply them"
        raise Unfit(f"{shown(text)} holds credentials, which would be kept with every trial", wanted)
    parts = split(text)
    if parts.scheme == "file":
        existing(unquote(parts.path), folder, "a project's folder, a wheel or a source archive")
    elif parts.scheme == "git+file":
        existing(unquote(parts.path.partition("@")[0]), folder, "a git repository")
    elif not parts.netloc:
        raise Unfit(f"{shown(text)} is no URL", "git+https://HOST/PROJECT@REF, https://..., or a path such as ./tree")
    return text


def split(url: str) -> SplitResult:
    """The parts of a URL.

    Raises:
        Unfit: it is none, such as ``https://[``.
    """
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  (reading it is what checks it)
    except ValueError as error:
        raise Unfit(f"{shown(url)} is no URL: {error}", "https://HOST/...") from None
    return parts
