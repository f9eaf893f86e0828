"""What is known of an environment, and what is not: the records that every form of input is read into."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from packaging.utils import canonicalize_name


@dataclass(frozen=True)
class Distribution:
    """One installed distribution."""

    name: str
    """Normalised: ``flash-attn`` for ``flash_attn``."""
    version: str | None
    """As it was written, valid or not (``1.1+ubuntu0.2``); None where the source does not tell it."""
    source: str = ""
    """Git URL with its commit, file or URL it was installed from, credentials removed; empty: an index, or unknown."""
    manager: str = "pip"
    """Who installed it: ``pip`` or ``conda``."""
    note: str = ""
    """Why the version is unknown, or what else must be known of it; a clause without a full stop."""


@dataclass(frozen=True)
class CompileCache:
    """The compile cache on a host."""

    path: str
    entries: int
    """Files in it."""
    bytes: int


@dataclass(frozen=True)
class Unread:
    """A piece of an input that could not be read exactly: listed, never guessed."""

    line: int
    """From 1; 0 where the piece has no line of its own."""
    text: str
    """What stands there, shortened, credentials removed."""
    why: str


class Seen(StrEnum):
    """Where a part of a snapshot was seen."""

    PROCESS = "process"
    """In the running process that was asked for: what it was started with, its interpreter, what it has loaded."""
    SHELL = "shell"
    """In what the host gave a command: a login's environment, or an activated one. A job's own may be another one."""
    UNKNOWN = "unknown"
    """Nowhere; or, of a part that has a value all the same, on evidence that could not be checked."""


@dataclass(frozen=True)
class Library:
    """A shared library that a process has loaded."""

    name: str
    """Of its file: ``libcudart.so.12``."""
    path: str


@dataclass(frozen=True)
class Snapshot:
    """Everything known that can differ between two environments. None or a sentence in ``missing``: not covered."""

    origin: str
    """Where it was read: a path, ``-``, ``main:uv.lock``."""
    form: str
    """``pip freeze``, ``uv.lock``, ..."""
    distributions: tuple[Distribution, ...]
    """By name, then manager. Twice when pip and conda both have one and disagree."""
    python: str | None = None
    """``3.12.1``, or as much of it as is known."""
    platform: str | None = None
    """As the source says it: ``linux-x86_64``, ``Ubuntu 22.04.4 LTS (x86_64)``."""
    cuda: str | None = None
    """Variant that torch was built for, of its local version or where the source says so: ``cu128``, ``cpu``."""
    driver: str | None = None
    gpus: tuple[str, ...] = ()
    """Model of each GPU."""
    variables: tuple[tuple[str, str], ...] | None = None
    """Environment variables, by name; None: the source does not cover them."""
    cache: CompileCache | None = None
    missing: tuple[str, ...] = ()
    """Sentences: what this form does not cover."""
    unread: tuple[Unread, ...] = ()
    ranges: tuple[str, ...] = ()
    """Requirements that are no exact version, with extras and markers: to be resolved, as of a date."""
    partial: bool = False
    """The form lists some distributions only (torch's collect_env, requirements): one that is not there may be
    installed all the same, and its absence is no difference."""
    covered: tuple[str, ...] = ("*",)
    """Which variables ``variables`` would hold if they were set, as patterns (fnmatch); of others nothing is known."""
    venv: str | None = None
    """Folder of the virtual or conda environment that the interpreter belongs to; None: none, or not told."""
    libraries: tuple[Library, ...] | None = None
    """Those of torch and CUDA that the process has loaded; None: no process was looked at, or it was not allowed."""
    seen: tuple[tuple[str, Seen], ...] = ()
    """Name of a part (a field of this record, ``torch`` for its variant) and where it was seen, in the order of
    reports. A part that is not in it: unknown."""

    def where(self, part: str) -> Seen:
        """Where a part was seen."""
        return dict(self.seen).get(part, Seen.UNKNOWN)

    def of(self, name: str) -> tuple[Distribution, ...]:
        """The distributions of this name, in any spelling; two when pip and conda disagree."""
        wanted = canonicalize_name(name)
        return tuple(each for each in self.distributions if each.name == wanted)


@dataclass(frozen=True)
class Target:
    """The host that markers are evaluated for, CPython throughout."""

    python: str
    """``3.12.1``, or ``3.12``."""
    platform: str
    """As ``sys.platform``: ``linux``, ``darwin``, ``win32``."""
    machine: str
    """As ``platform.machine()``: ``x86_64``, ``aarch64``."""
    chosen: frozenset[str] = frozenset()
    """Extras and dependency groups of a lock file that were installed besides those that are by default; normalised."""
    left_out: frozenset[str] = frozenset()
    """Groups that are installed by default, and were not."""

    def choosing(self, names: str) -> Target:
        """This host with extras and groups as a user names them: ``cu128,-dev``; ``-`` is what was left out."""
        words = [word.strip() for word in names.split(",") if word.strip()]
        out = frozenset(canonicalize_name(word[1:]) for word in words if word.startswith("-"))
        return replace(
            self, chosen=frozenset(canonicalize_name(word) for word in words if not word.startswith("-")), left_out=out
        )

    def environment(self) -> dict[str, str]:
        """The variables of PEP 508's markers, without ``platform_release`` and ``platform_version``: nobody knows."""
        short = ".".join(self.python.split(".")[:2])
        system = {"linux": "Linux", "darwin": "Darwin", "win32": "Windows"}.get(self.platform, self.platform)
        full = self.python if self.python.count(".") > 1 else f"{self.python}.0"
        return {
            "implementation_name": "cpython",
            "implementation_version": full,
            "os_name": "nt" if self.platform == "win32" else "posix",
            "platform_machine": self.machine,
            "platform_python_implementation": "CPython",
            "platform_release": "",
            "platform_system": system,
            "platform_version": "",
            "python_full_version": full,
            "python_version": short,
            "sys_platform": self.platform,
        }


def this_host() -> Target:
    """The interpreter that runs this."""
    return Target(platform.python_version(), sys.platform, platform.machine())


def in_order(distributions: Iterable[Distribution]) -> tuple[Distribution, ...]:
    """As a snapshot holds them: by name, then manager."""
    return tuple(sorted(distributions, key=lambda each: (each.name, each.manager, each.version or "", each.source)))
