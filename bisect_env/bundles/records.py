"""What a bundle is: wheels cut into parts, the locks that need them, and the target they are for.

On disk, in the bundle's folder::

    manifest.json          a Manifest, written last
    parts/SHA256.part      named by the SHA-256 of its content
    tool/*.whl             this tool's own wheel and all it needs, whole
    project/               noxfile, package, matrices and reproducers, for `nox -s matrix -- --bundle DIR` there
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from bisect_env.environments.records import Lock, Unavailable
from bisect_env.matrix.cells import EnvironmentRequest

MANIFEST = "manifest.json"
PARTS = "parts"
SUFFIX = ".part"
TOOL = "tool"
PROJECT = "project"
FETCHED, DELIVERED = "wheels", "bundle"
"""In the project's folder: where wheels are kept that were fetched for bundles, and what was unbundled by default."""
VERSION = 1
"""Of the manifest's format. A reader refuses a higher one."""


def key_of(request: EnvironmentRequest) -> str:
    """Identifies a request on both hosts: its key without the indexes and folders of wheels.

    On the target the bundle stands in their place; and folders have other paths there.
    """
    return replace(request, index=replace(request.index, urls=(), find_links=(), offline=False)).key


@dataclass(frozen=True)
class Target:
    """The host a bundle is for."""

    python: str
    """``3.12``: the minor version alone."""
    platform: str
    """As uv's ``--python-platform``: ``x86_64-manylinux_2_28``. Wheels for that glibc and older ones are taken."""


@dataclass(frozen=True)
class Piece:
    """A run of a wheel's bytes, and where it lies. Bytes; half-open: ``[offset, offset + length)``."""

    part: str
    """SHA-256 (hexadecimal) of the part file, which is its name without ``.part``."""
    part_offset: int
    wheel_offset: int
    length: int


@dataclass(frozen=True)
class Wheel:
    """A wheel that some lock of the bundle needs. Identified by ``sha256``."""

    filename: str
    name: str
    """Normalised name of the distribution."""
    version: str
    sha256: str
    """Of the whole file, hexadecimal; the one that the lock's text has for it."""
    size: int
    """Bytes; 0 where it was left out and its index does not tell."""
    pieces: tuple[Piece, ...]
    """In the order of ``wheel_offset``, without gaps, the whole wheel; empty when it was left out, because it is
    installed on the target (``installed``) or was absorbed there earlier (its inventory's ``wheels`` has it)."""
    installed: bool = False
    """Left out because the target has exactly this distribution installed."""
    record: str = ""
    """With ``installed``: the text of the wheel's own RECORD, by which the installed files are proved."""


@dataclass(frozen=True)
class Locked:
    """What one request of the matrix came to on the target. Exactly one of ``lock`` and ``unavailable`` is None."""

    request_key: str
    """:func:`key_of` the request, the same on every host that reads the same matrix file."""
    cells: tuple[str, ...]
    """Ids of the matrix's cells that ask for it; for messages."""
    lock: Lock | None
    """Resolved for the target. Its ``interpreter`` stands for one that is not here: ``path`` is only ``python3.12``,
    ``version`` ``3.12``, ``platform`` that of :class:`Target`. The target puts its own in, and recomputes
    ``address`` from it (:func:`compiling.address_of`)."""
    unavailable: Unavailable | None
    wheels: tuple[str, ...]
    """SHA-256 of the wheels that the lock installs, one a pin, in the order of ``lock.pins``; empty without a lock."""


@dataclass(frozen=True)
class Manifest:
    """What a bundle's folder holds, of every run of ``bisect-env bundle`` into it for the same target."""

    version: int
    tool_version: str
    """Of the bisect-env that wrote it, which is also the one in ``tool/``."""
    matrix: str
    """The matrix file of the last run into this folder, relative to ``project/``."""
    target: Target
    part_bytes: tuple[tuple[str, int], ...]
    """SHA-256 and size of each part that a piece names. In this order they complete the first cells first. Of those
    that the target's inventory had, the files are not in ``parts/``."""
    wheels: tuple[Wheel, ...]
    locked: tuple[Locked, ...]
    """In the order of the matrix; requests of earlier runs into the folder come last."""
    tool: tuple[tuple[str, str], ...] = ()
    """File name and SHA-256 of each file in ``tool/``."""
