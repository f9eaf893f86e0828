"""The append-only log of a bisection: one JSON object a line, from which its state is rebuilt exactly.

The first line is the header. Every other one is an answer to what the bisection wanted, in order: trials told, mixes
resolved, candidates found. Undoing appends too. A torn last line, which a killed process leaves, is ignored and cut off
before the next one is written; its trials are in the store and are found there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from bisect_env.bisection.records import Observation, Reading, Specification, Stage, Unresolvable
from bisect_env.errors import BadInput, InfrastructureError
from bisect_env.snapshots.factors import Factor
from bisect_env.store.codec import decode, encode

Entry = TypeVar("Entry")

FILE = "log.jsonl"
FOLDER = "bisections"


@dataclass(frozen=True)
class Header:
    """What is asked. The id is that of the run in the store under which the trials are kept."""

    id: str
    specification: Specification
    """Without the credentials of its indexes."""
    factors: tuple[Factor, ...]
    """All suspects, those of the conditions included, in the order in which the search numbers them."""
    started: float
    """Unix time."""
    version: str
    """Of this program."""


@dataclass(frozen=True)
class Told:
    """Batches that ran interleaved, one observation a point; complete or not there at all."""

    observations: tuple[Observation, ...]
    size: int
    """Trials asked for at each point, or at that of the most: the blocks that these batches have taken in the store."""
    seconds: float = 0.0
    """Wall time."""


@dataclass(frozen=True)
class Checked:
    """Mixes were resolved, and these have no environment."""

    stage: Stage
    unresolvable: tuple[Unresolvable, ...]
    mixes: int
    seconds: float = 0.0


@dataclass(frozen=True)
class Candidates:
    """What lies between two levels of a distribution, both included, from the good one to the bad one."""

    stage: Stage
    distribution: str
    names: tuple[str, ...]
    """Versions, or direct references (``git+URL@COMMIT``)."""
    subjects: tuple[str, ...] = ()
    """Of commits, the first line of each message."""
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    unusable: tuple[tuple[str, str], ...] = ()
    """Of the versions between, those that are known not to install here, and why: they need not be resolved."""
    reading: Reading | None = None
    """What their source says beforehand, where that was asked for."""


@dataclass(frozen=True)
class Undone:
    """The last told batches do not count any more, nor do the answers that came after them."""

    reason: str = ""


Answer = Told | Checked | Candidates
_KINDS: dict[str, type[Told] | type[Checked] | type[Candidates] | type[Undone]] = {
    "told": Told,
    "checked": Checked,
    "candidates": Candidates,
    "undone": Undone,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


@dataclass(frozen=True)
class History:
    """A log as it was read."""

    header: Header
    answers: tuple[Answer, ...]
    """Without what was undone."""
    blocks: int
    """Taken in the store so far, by undone batches too: their trials are not counted again."""

    @property
    def seconds(self) -> float:
        """Wall time of the answers that count."""
        return sum(answer.seconds for answer in self.answers)


class Log:
    """One bisection's log, open for appending. Only its process writes to it: the store's turn sees to that."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def begin(self, header: Header) -> None:
        """Write the header of a new log.

        Raises:
            OSError: it cannot be written, or is there already.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("x", encoding="utf-8") as file:
            _write(file.fileno(), "begun", encode(header))

    def append(self, entry: Answer | Undone) -> None:
        """Add an entry, after a torn last line was cut off.

        Raises:
            OSError: it cannot be written.
        """
        with self.path.open("r+b") as file:
            content = file.read()
            file.truncate(content.rfind(b"\n") + 1)
            file.seek(0, os.SEEK_END)
            _write(file.fileno(), _NAMES[type(entry)], encode(entry))


def read(path: Path) -> History:
    """What a log holds.

    Raises:
        BadInput: there is none, or it is no log of a bisection.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise BadInput(path, "", str(error.strerror), "the log of a bisection (log.jsonl)") from error
    whole = lines[:-1]  # After the last newline there is nothing, or a torn line.
    if not whole:
        raise BadInput(path, "line 1", "no whole line", "the header of a bisection's log")
    header = _decoded(path, 1, Header, _body(path, 1, whole[0], ("begun",))[1])
    answers: list[Answer] = []
    blocks = 0
    for number, line in enumerate(whole[1:], 2):
        kind, body = _body(path, number, line, tuple(_KINDS))
        entry = _decoded(path, number, _KINDS[kind], body)
        if isinstance(entry, Undone):
            _drop_last_told(answers)
            continue
        assert isinstance(entry, Told | Checked | Candidates)
        if isinstance(entry, Told):
            blocks += entry.size
        answers.append(entry)
    return History(header, tuple(answers), blocks)


def _decoded(path: Path, number: int, kind: type[Entry], body: str) -> Entry:
    try:
        return decode(kind, body)
    except InfrastructureError as error:
        wanted = "the log as a bisection wrote it, by this version of bisect-env or an earlier one"
        raise BadInput(path, f"line {number}", f"a {kind.__name__} that cannot be read", wanted) from error


def undo(path: Path) -> tuple[Observation, ...]:
    """Let the last told batches not count, and give what they were; nothing when there are none.

    Raises:
        BadInput: as :func:`read`.
        OSError: the log cannot be written.
    """
    told = [answer for answer in read(path).answers if isinstance(answer, Told)]
    if not told:
        return ()
    Log(path).append(Undone())
    return told[-1].observations


def path_of(root: Path, bisection: str) -> Path:
    """Where the log of a bisection lies under the project's folder."""
    return root / FOLDER / bisection / FILE


def bisections(root: Path) -> Iterator[Path]:
    """Logs of the project, the latest begun first."""
    found = sorted((root / FOLDER).glob(f"*/{FILE}"), key=lambda path: path.stat().st_mtime, reverse=True)
    return iter(found)


def _drop_last_told(answers: list[Answer]) -> None:
    while answers:
        if isinstance(answers.pop(), Told):
            return


def _write(descriptor: int, kind: str, body: str) -> None:
    line = f'{{"kind":"{kind}","body":{body}}}\n'.encode()
    while line:
        line = line[os.write(descriptor, line) :]
    os.fsync(descriptor)


def _body(path: Path, number: int, line: bytes, kinds: Sequence[str]) -> tuple[str, str]:
    try:
        entry = json.loads(line)
        kind, body = entry["kind"], entry["body"]
    except (ValueError, KeyError, TypeError) as error:
        wanted = "a log that this program wrote"
        raise BadInput(path, f"line {number}", "no entry of a bisection's log", wanted) from error
    if kind not in kinds:
        raise BadInput(path, f"line {number}", f"an entry {kind!r}", f"one of {', '.join(kinds)}")
    return kind, json.dumps(body)
