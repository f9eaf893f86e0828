"""A gate on the disk: what it is asked, where it runs, and the time it has taken. Its trials are in the store.

The folder ``gates/ID`` has the name of the run in the store under which the trials are kept. So the same command finds
what an earlier call of it has measured, however that ended; and a driver, a GPU or a reproducer that changed makes it
another gate.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bisect_env.environments import trees
from bisect_env.errors import InfrastructureError
from bisect_env.gate.specification import Gate
from bisect_env.snapshots.forms import saved
from bisect_env.snapshots.records import Snapshot
from bisect_env.store.codec import decode, encode

FOLDER, FILE, SPENT = "gates", "gate.json", "seconds.json"


@dataclass(frozen=True)
class Machine:
    """What trials run on: with another one they are not counted together."""

    host: str
    gpus: tuple[str, ...]
    """Models, sorted; empty where none is used."""
    driver: str


@dataclass(frozen=True)
class Header:
    """What a gate is asked, and of which trials it may count."""

    id: str
    gate: Gate
    """Without the credentials of its indexes."""
    question: str
    machine: Machine
    reproducer: str
    """Content hash."""
    started: float
    """Unix time."""
    version: str
    """Of this program."""
    baseline_runs: tuple[str, ...] = ()
    """Earlier gates whose trials of the baseline count: fixed at the beginning, so that resuming changes nothing."""


def folder_of(root: Path, gate: str) -> Path:
    """Where a gate's files lie under the project's folder."""
    return root / FOLDER / gate


def begin(root: Path, header: Header) -> None:
    """Keep a new gate.

    Raises:
        InfrastructureError: it cannot be written.
    """
    folder = folder_of(root, header.id)
    try:
        folder.mkdir(parents=True)
        trees.replace(folder / FILE, encode(header).encode())
    except OSError as error:
        raise InfrastructureError(f"{folder}: the gate cannot be kept: {error.strerror}") from error


def latest(root: Path, question: str, machine: Machine, reproducer: str) -> Header | None:
    """The gate of the same question on the same machine that was begun last; None without one."""
    for header in headers(root):
        if (header.question, header.machine, header.reproducer) == (question, machine, reproducer):
            return header
    return None


def headers(root: Path) -> Iterator[Header]:
    """Gates of the project, the latest begun first; one whose beginning was cut short is none."""
    found = []
    for path in (root / FOLDER).glob(f"*/{FILE}"):
        # One of another version of this program is not gone on with, and hinders no new one.
        with suppress(OSError, InfrastructureError):
            found.append(decode(Header, path.read_text(encoding="utf-8")))
    return iter(sorted(found, key=lambda header: header.started, reverse=True))


def spent(root: Path, gate: str) -> float:
    """Seconds that earlier calls of this gate have taken; those of a killed one's last trial are not known."""
    try:
        return float(json.loads((folder_of(root, gate) / SPENT).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return 0.0


def spend(root: Path, gate: str, seconds: float) -> None:
    """Remember the seconds of all calls so far, this one included."""
    with suppress(OSError):  # A disk that is full is told where something depends on it.
        trees.replace(folder_of(root, gate) / SPENT, json.dumps(round(seconds, 3)).encode())


def snapshot_file(root: Path, gate: str, name: str, snapshot: Snapshot) -> Path:
    """Keep a side's snapshot as a file that any command takes as a source, and give its path.

    Raises:
        InfrastructureError: it cannot be written.
    """
    path = folder_of(root, gate) / f"{name}.json"
    try:
        trees.replace(path, json.dumps(saved.structure(snapshot), indent=1).encode())
    except OSError as error:
        raise InfrastructureError(f"{path} cannot be written: {error.strerror}") from error
    return path
