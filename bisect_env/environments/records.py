"""The records of this layer: interpreters, locks, environments, and why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Reason(StrEnum):
    """Why a cell has no environment. Each is a different thing for the user to do."""

    CONFLICT = "conflict"
    NO_SUCH_VERSION = "no such version"
    INDEX_UNREACHABLE = "index unreachable"
    CREDENTIALS = "credentials refused"
    OFFLINE = "offline"
    VARIANT = "CUDA variant not available"
    INTERPRETER = "no such interpreter"
    BASE = "the base differs"
    BUILD = "build failed"
    IMPORT = "import failed"
    UV = "uv failed"
    UNDELIVERED = "not delivered"
    """Of a bundle, so far: the cell is NOT RUN, and looked at again the next time."""


@dataclass(frozen=True)
class Unavailable:
    """A result, not a crash: the cell is UNRESOLVABLE, NOT RUN, BUILD-FAILED or IMPORT-FAILED."""

    stage: str
    """``resolve``, ``delivery``, ``build`` or ``import``."""
    reason: Reason
    message: str
    """The tool's own words, credentials removed."""


@dataclass(frozen=True)
class Interpreter:
    """A Python found on this machine."""

    path: Path
    version: str
    """``3.12.1``"""
    implementation: str
    """``cpython``"""
    platform: str
    """``sysconfig.get_platform()``, for example ``linux-x86_64``."""


@dataclass(frozen=True)
class Lock:
    """Every distribution of an environment, pinned.

    ``text`` is requirements format with hashes and holds no URL of an index; git requirements are pinned to a commit
    and local ones to a content hash. ``address`` names the environment built from it.
    """

    text: str
    interpreter: Interpreter
    pins: tuple[tuple[str, str], ...]
    """Normalised name and version of each distribution that the lock installs."""
    cuda: str | None
    """Variant read from the lock: ``cu128``, ``cpu``, None without torch."""
    address: str
    base: str | None = None
    base_manifest: str | None = None
    marks: tuple[str, ...] = ()
    """What the table must say of the environment, for example an accepted deviation from the base's pins."""
    notes: tuple[str, ...] = ()
    """For example: which index was exempt from ``as_of``, or that the package index served the variant."""
    downloads: tuple[tuple[str, int], ...] | None = None
    """Name and bytes of what an empty cache fetches for each pin; None where the index does not tell them all."""
    torch_backend: str | None = None
    """PyTorch's index that the lock was resolved against (``cu128``), None: the indexes as given. The build needs it:
    ``uv.run(..., index=replace(request.index, torch_backend=lock.torch_backend))``."""
    build_text: str = ""
    """Pinned like ``text``: what must be installed before the request's source distributions are built."""
    trees: tuple[tuple[str, str, str], ...] = ()
    """Name, path and content hash of each local requirement. uv's cache is keyed by path and cannot tell that a file
    changed: the build must refresh these."""

    @property
    def download_bytes(self) -> int | None:
        """Bytes that an empty cache fetches in all; None where the index does not tell."""
        return None if self.downloads is None else sum(size for _, size in self.downloads)


@dataclass(frozen=True)
class Environment:
    """A built environment. ``folder`` holds ``venv/``, ``lock.txt``, ``manifest.json`` and a marker written last."""

    lock: Lock
    folder: Path
    python: Path
    freeze: str
    """``uv pip freeze`` of what is really installed."""
    build_seconds: float
    """0.0 when it was found built."""
    took: float = 0.0
    """Seconds that building it took, whenever that was; 0.0 where it is not known."""
