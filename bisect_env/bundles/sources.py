"""Where the wheel of each pin comes from, read from uv's ``pylock.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import urlsplit, urlunsplit

from packaging.tags import Tag
from packaging.utils import canonicalize_name

from bisect_env.environments.records import Lock, Reason, Unavailable
from bisect_env.environments.sizes import best_file, file_name


@dataclass(frozen=True)
class Source:
    """A wheel to be fetched. Two of the same content are one: ``sha256`` identifies it."""

    filename: str
    name: str
    """Normalised name of the distribution."""
    version: str
    sha256: str
    """Hexadecimal."""
    size: int | None
    """Bytes; None where the index does not tell."""
    url: str = field(compare=False, repr=False)
    """``https:`` or ``file:``, without credentials."""


def sources(pylock: str, lock: Lock, tags: Iterable[Tag]) -> tuple[Source, ...] | Unavailable:
    """A source for each pin of ``lock``, in the order of its pins; unavailable where one has no usable wheel.

    The lock's hashes are those of every file of a version: the one that is chosen must be among them.
    """
    order = {tag: place for place, tag in enumerate(tags)}
    packages = {canonicalize_name(package["name"]): package for package in tomllib.loads(pylock).get("packages", ())}
    found = []
    for name, version in lock.pins:
        file = best_file(packages.get(canonicalize_name(name), {}), order)
        if file is None or not file_name(file).endswith(".whl"):
            words = f"{name} {version}: the index has no wheel of it for the target"
            return Unavailable("resolve", Reason.NO_SUCH_VERSION, words)
        sha256 = file.get("hashes", {}).get("sha256", "")
        if not sha256 or f"sha256:{sha256}" not in lock.text:
            words = f"{file_name(file)}: the index publishes no SHA-256 by which it could be proved on the target"
            return Unavailable("resolve", Reason.NO_SUCH_VERSION, words)
        found.append(Source(file_name(file), name, version, sha256, file.get("size"), _without_user(file["url"])))
    return tuple(found)


def _without_user(url: str) -> str:
    """The URL without what uv leaves of user and password: both come from the index choice."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
