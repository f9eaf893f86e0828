"""Deliveries of tiny wheels, made without an index: what the target's half is tested on."""

from __future__ import annotations

import hashlib
import random
import threading
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from bisect_env.bundles import layout, manifest, resolving
from bisect_env.bundles.having import record_of
from bisect_env.bundles.records import PARTS, Locked, Manifest, Target, Wheel, key_of
from bisect_env.environments.records import Lock
from bisect_env.environments.uv import Uv
from bisect_env.matrix.cells import EnvironmentRequest, Matrix
from tests.support.environments import INTERPRETER, lock_of, name_and_version

TARGET = Target(".".join(INTERPRETER.version.split(".")[:2]), "x86_64-manylinux_2_17")
PART = 2000


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def noise(seed: int, size: int) -> bytes:
    """Bytes that no archive makes smaller, so that a wheel has several parts."""
    return random.Random(seed).randbytes(size)


def request_for(*paths: Path) -> EnvironmentRequest:
    """The request that :func:`delivery` has a lock of these wheels for."""
    return EnvironmentRequest(tuple("==".join(name_and_version(path)) for path in paths))


def wheel_of(path: Path, pieces: tuple[layout.Piece, ...], installed: bool) -> Wheel:
    name, version = name_and_version(path)
    record = (record_of(path) or "") if installed else ""
    data = path.read_bytes()
    return Wheel(path.name, name, version, sha256(data), len(data), pieces, installed, record)


def delivery(
    folder: Path, cells: Sequence[Sequence[Path]], part_bytes: int = PART, installed: Collection[str] = ()
) -> Manifest:
    """Writes a bundle's folder: one lock a cell, whose wheels are given; the names in ``installed`` left out."""
    locked = []
    for cell in cells:
        lock: Lock = lock_of(*cell)
        order = [next(path for path in cell if name_and_version(path)[0] == name) for name, _ in lock.pins]
        shas = tuple(sha256(path.read_bytes()) for path in order)
        label = "_".join("-".join(name_and_version(path)) for path in cell)
        locked.append(Locked(key_of(request_for(*cell)), (label,), lock, None, shas))
    return write(folder, locked, [path for cell in cells for path in cell], part_bytes, installed)


def resolved(folder: Path, matrix: Matrix, wheels: Path, uv: Uv, **options: Any) -> Manifest:
    """Writes a bundle's folder for a matrix whose index has the files in ``wheels``, resolved as for another host."""
    found = resolving.resolve_all(matrix.cells, TARGET, uv, threading.Event(), lambda resolved, seconds: None)
    paths = [wheels / source.filename for each in found for source in each.sources]
    return write(folder, [each.locked for each in found], paths, **options)


def write(
    folder: Path,
    locked: Sequence[Locked],
    needed: Sequence[Path],
    part_bytes: int = PART,
    installed: Collection[str] = (),
) -> Manifest:
    """Writes a bundle's folder."""
    paths = {sha256(path.read_bytes()): path for path in needed}
    left_out = {sha for sha, path in paths.items() if name_and_version(path)[0] in installed}
    brought = [(sha, path.stat().st_size) for sha, path in paths.items() if sha not in left_out]
    contents = {}
    for content in layout.cut(brought, part_bytes):
        data = b"".join(paths[run.wheel].read_bytes()[run.offset : run.offset + run.length] for run in content)
        contents[sha256(data)] = (content, data)
    (folder / PARTS).mkdir(parents=True, exist_ok=True)
    for part, (_, data) in contents.items():
        (folder / PARTS / f"{part}.part").write_bytes(data)
    pieces = layout.pieces((part, content) for part, (content, _) in contents.items())
    made = Manifest(
        version=1,
        tool_version="0",
        matrix="matrix.yaml",
        target=TARGET,
        part_bytes=tuple((part, len(data)) for part, (_, data) in contents.items()),
        wheels=tuple(wheel_of(path, pieces.get(sha, ()), sha in left_out) for sha, path in paths.items()),
        locked=tuple(locked),
    )
    manifest.save(made, folder)
    return made


def parts_in(folder: Path) -> list[Path]:
    """The part files of a delivery, in the order in which they are needed."""
    return [folder / PARTS / f"{part}.part" for part, _ in manifest.load(folder).part_bytes]
