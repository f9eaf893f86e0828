"""What a store holds of a matrix, wherever it was measured: nothing is resolved, built or run, and nothing written.

Neither this host's interpreters and GPUs nor its copy of the reproducer decide which trials are taken: of each cell
those of its lock, of the reproducer that was measured last, and of one GPU model and driver. What else that leaves out,
or puts together, is a mark of the cell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from packaging.utils import canonicalize_name

from bisect_env.engine import judging
from bisect_env.engine.results import Result
from bisect_env.engine.state import CellState
from bisect_env.environments.records import Lock, Unavailable
from bisect_env.errors import BadInput
from bisect_env.matrix.cells import Cell, IndexChoice, Matrix
from bisect_env.matrix.versions import Release
from bisect_env.store.database import Store
from bisect_env.store.runs import StoredRun
from bisect_env.trials.records import Reproducer

HOST = "host"
"""Name in :attr:`StoredRun.versions` of the host's name."""


@dataclass(frozen=True)
class Recalled:
    """A matrix as a store has it."""

    results: tuple[Result, ...]
    runs: tuple[StoredRun, ...]
    """That the trials are of, the earliest first."""


@dataclass(frozen=True)
class StoredReleases:
    """What a version range stands for: the versions that the store's environments have. A release source."""

    store: Store

    def releases(self, name: str, index: IndexChoice) -> Sequence[Release]:
        """The versions of a distribution.

        Raises:
            BadInput: no environment of the store has it.
        """
        wanted = canonicalize_name(name)
        locks = [lock for lock in self.store.locks() if isinstance(lock, Lock)]
        found = {version for lock in locks for pin, version in lock.pins if pin == wanted}
        if not found:
            words = f"{self.store.path}: no environment has {name}, so that nothing says what its range stands for"
            raise BadInput(
                "--store", "", words, "the store that this matrix ran with, or versions in place of the range"
            )
        return tuple(Release(version, None, yanked=False) for version in sorted(found))


def recall(matrix: Matrix, reproducer: Reproducer, store: Store, max_race_rate: float) -> Recalled:
    """The results that the store has for the matrix.

    Args:
        matrix: its counts say what was planned.
        reproducer: the present one; its hash is only compared.
        store: only read.
        max_race_rate: as for a run.
    """
    runs = {run.id: run for run in store.runs()}
    elsewhere = _elsewhere(store)
    states, marks = [], {}
    for cell in matrix.cells:
        state, key = _found(cell, store, elsewhere)
        source = matrix.stale_source_of(cell) if cell.condition.cache == "stale" else None
        state.source = None if source is None else _found(source, store, elsewhere)[0]
        marks[cell.key] = _take(state, key, store, reproducer, runs)
        states.append(state)
    design = judging.design_of(matrix, max_race_rate)
    results = []
    for state in states:
        found = judging.verdict(state, states, matrix, design, reproducer.protocol)
        found = replace(found, marks=(*found.marks, *marks[state.cell.key]))
        results.append(judging.result(state, found))
    return Recalled(tuple(results), runs_of(results, store))


def recall_cell(cell: Cell, reproducer: Reproducer, store: Store) -> tuple[CellState, tuple[str, ...]]:
    """One cell with the trials that the store has of it, of whatever kind, and what must be said of them."""
    state, key = _found(cell, store, _elsewhere(store))
    return state, _take(state, key, store, reproducer, {run.id: run for run in store.runs()})


def runs_of(results: Sequence[Result], store: Store) -> tuple[StoredRun, ...]:
    """The runs that the results' trials are of, the earliest first."""
    used = {sample.run_id for result in results for sample in result.samples}
    return tuple(sorted((run for run in store.runs() if run.id in used), key=lambda run: run.started))


def _found(cell: Cell, store: Store, elsewhere: Mapping[Cell, Cell]) -> tuple[CellState, str]:
    """The cell with its lock, and the key under which the store has its trials."""
    own = cell
    lock = store.lock(cell.request.key)
    if lock is None:
        own = elsewhere.get(_bare(cell), cell)
        lock = store.lock(own.request.key)
    state = CellState(cell, lock)
    address = lock.address if isinstance(lock, Lock) else None
    if address is not None:
        state.environment = store.unavailable(own.key, address)
    return state, own.key


def _take(
    state: CellState, key: str, store: Store, reproducer: Reproducer, runs: Mapping[str, StoredRun]
) -> tuple[str, ...]:
    """Give the cell its trials; what must be said of them."""
    if isinstance(state.lock, Unavailable) or state.address is None:
        return ()
    hashes = store.reproducers(key, state.address)
    if not hashes:
        return ()
    state.take(store.trials(key, state.address, hashes[0]))
    marks = []
    if hashes[0] != reproducer.content_hash:
        marks.append(f"measured with another version of the reproducer ({hashes[0][:8]}) than is here")
    hosts = {dict(runs[sample.run_id].versions).get(HOST, "") for sample in state.samples} - {""}
    if len(hosts) > 1:
        marks.append(f"trials of {len(hosts)} hosts together: {', '.join(sorted(hosts))}")
    return tuple(marks)


def _elsewhere(store: Store) -> dict[Cell, Cell]:
    """The store's cells, the latest of those that are alike, by what is left of them without the places of a host."""
    return {_bare(stored.cell): stored.cell for stored in reversed(store.cells(""))}


def _bare(cell: Cell) -> Cell:
    """The cell without its name and levels, and without the paths and indexes that differ from host to host."""
    index = replace(cell.request.index, urls=(), find_links=(), offline=False)
    return replace(cell, id="", levels=(), tags=(), request=replace(cell.request, index=index, base=None))
