"""What a job is told and what it leaves: records, and the files they lie in. The submitter and the node both use it.

A job's folder holds ``job.json``, ``results/NAME.json`` (one a record) and ``ended.json``. Every file is written aside
in the same folder, forced to the disk and renamed: on a network file system too, a reader finds a whole one or none.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from bisect_env.cluster.credentials import Vault, reveal
from bisect_env.engine.attempt import Attempt
from bisect_env.engine.grouping import Entrant, Session
from bisect_env.environments import trees
from bisect_env.environments.records import Environment, Lock, Unavailable
from bisect_env.errors import BadInput, InfrastructureError
from bisect_env.matrix.cells import Cell, EnvironmentRequest, Matrix
from bisect_env.store.codec import decode, encode
from bisect_env.store.trials import StoredTrial
from bisect_env.trials.records import Reproducer

VERSION = 1
"""Of the files. A job may wait for days, while whoever sent it installs another bisect-env."""
JOB = "job.json"
RESULTS = "results"
ENDED = "ended.json"
ROUNDS = "rounds-"
"""Begins the names of results of rounds."""

Record = TypeVar("Record")


@dataclass(frozen=True)
class Wanted:
    """An environment that a job needs."""

    lock: Lock
    request: EnvironmentRequest
    label: str
    """For people."""


@dataclass(frozen=True)
class Item:
    """One attempt of a job."""

    id: str
    """Unique in the job, and part of a file's name: letters, digits, ``-`` and ``_``."""
    attempt: Attempt
    """Its environment's folder is the submitter's; the node takes the one that it finds or builds for the lock."""


@dataclass(frozen=True)
class JobSpec:
    """All that a node is to know of a job: first its environments, then its items in order, then its rounds.

    Paths are those of file systems that the nodes share.
    """

    name: str
    """For people and for messages."""
    run_id: str
    root: Path
    """The project's ``.bisect-env`` folder. A node never opens the store in it."""
    matrix: Matrix
    """Limits, variables to pass on and the reproducer; of its cells those that :func:`part_of` keeps."""
    reproducer: Reproducer
    """As it was prepared when the job was sent; a node refuses files that have changed since."""
    wanted: tuple[Wanted, ...]
    items: tuple[Item, ...] = ()
    entrants: tuple[Entrant, ...] = ()
    """For rounds that the node plans, see :func:`bisect_env.engine.sessions.run`."""
    session: Session | None = None
    """One session of rounds, see :func:`bisect_env.engine.sessions.run_one`."""
    seed: int = 0
    allow_busy: bool = False
    gpus: str | None = None
    """A selection among those that the job is given; None: all of these."""
    bundle: Path | None = None
    """Folder of an unbundled bundle, as the only source of packages."""
    node_folder: str | None = None
    """Where each node keeps environments for itself, ``$VARIABLES`` of the node expanded; None: in ``root``."""
    uv_cache: str | None = None
    """uv's cache, ``$VARIABLES`` of the node expanded; None: uv's own choice there."""
    staleness: float = 60.0
    """Seconds without a sign of life after which another node's build is taken to be dead."""


@dataclass(frozen=True)
class ItemResult:
    """A record that came of a job, as the submitter stores it: one of an item, or one of a round's processes."""

    item: str
    """``Item.id``; of rounds ``ROUNDS`` and the record's id."""
    cell_key: str
    sample: StoredTrial


@dataclass(frozen=True)
class Trouble:
    """Why a job did not do all that it was to do."""

    whose: Literal["node", "cell"]
    """``node``: another node may do better, and what was not done is to be tried there. ``cell``: none will."""
    message: str


@dataclass(frozen=True)
class Ended:
    """What a job says when it ends by itself, or is told to end in time to say so."""

    host: str
    job_id: str
    """Slurm's; empty outside of Slurm."""
    devices_given: str | None
    """CUDA_VISIBLE_DEVICES of the job."""
    devices: tuple[str, ...] = ()
    """Models of the GPUs that it could use."""
    driver: str | None = None
    environments: tuple[Environment | Unavailable, ...] = ()
    """In the order of :attr:`JobSpec.wanted`; fewer where it did not come to all."""
    build_seconds: float = 0.0
    """Finding, building, waiting for another's build, proving and importing."""
    trial_seconds: float = 0.0
    trouble: Trouble | None = None
    stopped: bool = False
    """It was told to end (SIGTERM): what has no result is to be done again."""
    fits: bool = True
    """False when the processes of the session do not fit together on the node."""
    notes: tuple[str, ...] = ()
    """What was said meanwhile."""


def part_of(matrix: Matrix, cells: tuple[Cell, ...]) -> Matrix:
    """The matrix with these cells, and those that fill their stale caches, alone.

    Which cell fills a cache, and (among ``cells``) which one another is compared with, is the same as in the whole.
    """
    keys = {cell.key for cell in cells}
    sources = {s.key for cell in cells if cell.condition.cache == "stale" and (s := matrix.stale_source_of(cell))}
    kept = tuple(cell for cell in matrix.cells if cell.key in keys)
    beside = [cell for cell in (*matrix.cells, *matrix.left_out) if cell.key in sources - keys]
    return replace(matrix, cells=kept, left_out=tuple(beside), notes=())


def without_texts(environment: Environment) -> Environment:
    """An environment that names its lock alone: the lock itself, some hundred kB for a torch, stands once in a job."""
    lock = replace(environment.lock, text="", build_text="", pins=(), notes=(), downloads=None, trees=())
    return replace(environment, lock=lock, freeze="")


def item(name: str, attempt: Attempt) -> Item:
    """An item with what the node needs of the attempt."""
    return Item(name, replace(attempt, environment=without_texts(attempt.environment)))


def lighter(entrant: Entrant) -> Entrant:
    """An entrant with what the node needs: its trials have lost their texts, which no plan of rounds reads."""
    samples = [
        replace(s, record=replace(s.record, output="", stacks="", witness="", environment_variables=(), withheld=()))
        for s in entrant.samples
    ]
    return replace(entrant, environment=without_texts(entrant.environment), samples=tuple(samples))


def write(spec: JobSpec, folder: Path, vault: Vault) -> None:
    """Make a job's folder ready: after this a node can be sent to it, with the vault's variables.

    Raises:
        InfrastructureError: it cannot be written.
    """
    with _explained(folder):
        (folder / RESULTS).mkdir(parents=True, exist_ok=True)
        body = encode(spec, vault.hide)
        hidden = json.dumps(vault.names(body))
        trees.replace(
            folder / JOB, (f'{{"version": {VERSION}, "hidden": {hidden}, "body": {body}}}').encode(), durably=True
        )


def read(folder: Path, environ: Mapping[str, str] = os.environ) -> JobSpec:
    """The job of a folder.

    Raises:
        InfrastructureError: it cannot be read, or the environment lacks its credentials.
        BadInput: another version of bisect-env wrote it.
    """
    value = _get(folder / JOB)
    return _decoded(JobSpec, folder / JOB, reveal(json.dumps(value["body"]), tuple(value["hidden"]), environ))


def write_result(result: ItemResult, folder: Path) -> None:
    """Leave a record for whoever submitted the job; see :func:`results`."""
    with _explained(folder):
        (folder / RESULTS).mkdir(parents=True, exist_ok=True)
        _put(folder / RESULTS / f"{result.item}.json", _versioned(encode(result)))


def forget_rounds(folder: Path) -> None:
    """Remove what a job has left of rounds: started again, it times all of them anew, and the two were never beside."""
    with _explained(folder):
        for path in (folder / RESULTS).glob(f"{ROUNDS}*.json"):
            path.unlink()


def results(folder: Path) -> dict[str, ItemResult]:
    """What a job has left so far, by the item's id; read again, a result never changes.

    Raises:
        InfrastructureError, BadInput: as :func:`read`.
    """
    with _explained(folder):
        paths = sorted((folder / RESULTS).glob("[!.]*.json"))
    found = (_decoded(ItemResult, path, json.dumps(_get(path)["body"])) for path in paths)
    return {result.item: result for result in found}


def write_ended(ended: Ended, folder: Path) -> None:
    """Leave word of the job's end, after its last result."""
    with _explained(folder):
        _put(folder / ENDED, _versioned(encode(ended)))


def ended(folder: Path) -> Ended | None:
    """What the job said at its end; None: it still runs, or its end came from outside.

    Raises:
        InfrastructureError, BadInput: as :func:`read`.
    """
    if not (folder / ENDED).exists():
        return None
    return _decoded(Ended, folder / ENDED, json.dumps(_get(folder / ENDED)["body"]))


def _versioned(body: str) -> str:
    return f'{{"version": {VERSION}, "body": {body}}}'


def _put(path: Path, text: str) -> None:
    trees.replace(path, text.encode(), durably=True)


def _get(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        version = value["version"]
    except OSError as error:
        raise InfrastructureError(f"{path}: the job's file cannot be read: {error.strerror}") from error
    except (ValueError, LookupError, TypeError) as error:
        raise InfrastructureError(f"{path}: no file of a job, or a damaged one: remove the job's folder") from error
    if version != VERSION:
        found = f"version {version!r} of a job's files, while this bisect-env writes and reads version {VERSION}"
        wanted = "the same bisect-env where jobs are sent from and on the nodes; or remove the job's folder"
        raise BadInput(path, "", found, wanted)
    assert isinstance(value, dict)
    return value


def _decoded(kind: type[Record], path: Path, text: str) -> Record:
    try:
        return decode(kind, text)
    except InfrastructureError as error:
        raise InfrastructureError(f"{path}: no file of a job, or a damaged one: remove the job's folder") from error


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        words = "is it on a file system that all nodes share, and may you write there?"
        raise InfrastructureError(f"{folder}: the job's folder cannot be used: {error.strerror}; {words}") from error
