"""The lines that go to uv, and the lines that come back: requirements, pins, dates."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from urllib.parse import unquote, urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from bisect_env.errors import BadInput
from bisect_env.matrix.urls import has_credentials, without_credentials


@dataclass(frozen=True)
class LockedLine:
    """One distribution of a lock. ``version`` or ``url`` is None."""

    name: str
    version: str | None
    url: str | None

    @property
    def path(self) -> Path | None:
        """Where it lies, when it is a local tree or file; None for an index's and a git one."""
        return local_path(self.url)


def local_path(url: str | None) -> Path | None:
    """The path of a ``file:`` URL, None for any other."""
    if url is None or not url.startswith("file:"):
        return None
    return Path(unquote(urlsplit(url).path))


def parse(lines: Iterable[str]) -> tuple[Requirement, ...]:
    """Checks requirement lines. Raises BadInput for one that is not PEP 508, and for a URL with credentials in it.

    The lock would hold such a URL, and the lock is stored.
    """
    result = []
    for line in lines:
        if has_credentials(line):
            raise BadInput(
                "requirements",
                without_credentials(line),
                "credentials in a requirement's URL, which would be stored with the lock",
                "the URL without them, and the credentials in ~/.netrc or git's credential helper",
            )
        try:
            result.append(Requirement(line))
        except InvalidRequirement as error:
            words = str(error).splitlines()[0]
            raise BadInput("requirements", line, words, "for example numpy>=2 or name @ git+https://...@ref") from error
    return tuple(result)


def exact(requirement: Requirement) -> str | None:
    """The one version that a requirement allows (``==``, no wildcard), else None."""
    specifiers = list(requirement.specifier)
    if len(specifiers) == 1 and specifiers[0].operator in ("==", "===") and not specifiers[0].version.endswith(".*"):
        return specifiers[0].version
    return None


def pinned(requirements: Iterable[Requirement]) -> dict[str, str]:
    """Normalised name and version of the requirements that are exact."""
    pins: dict[str, str] = {}
    for requirement in requirements:
        version = exact(requirement)
        if version is not None:
            pins[canonicalize_name(requirement.name)] = version
    return pins


def lines_of(text: str) -> tuple[LockedLine, ...]:
    """The distributions of a lock in requirements format, in its order; hashes and comments are left out."""
    found = []
    for line in text.splitlines():
        if not line.strip() or line[0] in " \t#-":
            continue
        requirement = Requirement(re.split(r"\s+(?:#|\\$|--hash=)", line.strip(), maxsplit=1)[0])
        found.append(LockedLine(canonicalize_name(requirement.name), exact(requirement), requirement.url))
    return tuple(found)


def with_content(text: str, hashes: Mapping[str, str]) -> str:
    """A lock with the content hash of each local path as a comment on its line: its text tells two trees apart."""
    lines = []
    for line in text.splitlines():
        name, at, url = line.partition(" @ ")
        path = local_path(url.split()[0]) if at and url else None
        if path is not None and str(path) in hashes and not line.endswith("\\"):
            line = f"{name} @ {url}  # sha256 of its content: {hashes[str(path)]}"
        lines.append(line)
    return "\n".join(lines) + "\n"


def constraints(pins: Iterable[tuple[str, str]]) -> str:
    """The pins as lines, without hashes."""
    return "".join(f"{name}=={version}\n" for name, version in pins)


def cutoff(as_of: str | datetime) -> str:
    """``--exclude-newer`` for a date (all of that day, in UTC) or for a timestamp (as it is).

    A bare date would mean the end of the day in the machine's own time zone, and locks would differ between hosts.
    """
    if isinstance(as_of, str) and not re.fullmatch(r"\d{4}-\d{2}-\d{2}", as_of):
        return as_of
    day = date.fromisoformat(as_of) if isinstance(as_of, str) else as_of.astimezone(UTC).date()
    return f"{day + timedelta(days=1)}T00:00:00Z"


def undated(stderr: str) -> tuple[str, ...]:
    """Names of the distributions of which uv said that their index tells no upload date."""
    found = re.findall(r"`([^`]+)` is missing an upload date", stderr)
    return tuple(dict.fromkeys(canonicalize_name(name.split("-")[0]) for name in found))


def build_config(build_requirements: Iterable[tuple[str, tuple[str, ...]]]) -> str:
    """uv's configuration that adds undeclared build requirements to a source distribution's own (in isolation)."""
    lines = ["[extra-build-dependencies]"]
    for name, extra in build_requirements:
        # JSON's strings and lists are TOML's as well.
        lines.append(f"{json.dumps(canonicalize_name(name))} = {json.dumps(list(extra))}")
    return "\n".join(lines) + "\n"
