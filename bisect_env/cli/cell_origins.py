"""Where the libraries of a cell can be read: its environment where that is built, else what its lock takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bisect_env.environments import building
from bisect_env.environments.index import PYTORCH
from bisect_env.environments.records import Lock, Unavailable
from bisect_env.matrix.cells import Cell, IndexChoice


@dataclass(frozen=True)
class CellOrigin:
    """A place to read from, or why there is none, and the cells that it is the place of."""

    cells: tuple[str, ...]
    """Ids."""
    word: str
    """As after ``--in``; empty: there is none."""
    version: str
    """Of the distribution; empty where it is not known."""
    index: IndexChoice
    python: str | None = None
    """Version whose wheels the cell would get."""
    why: str = ""


def origins(
    locked: Sequence[tuple[Cell, Lock | Unavailable | None]], distribution: str, root: Path
) -> tuple[CellOrigin, ...]:
    """The places of these cells, each once: cells that would get the same wheel are read together.

    Args:
        locked: cells with their locks; None for one that was never resolved.
        distribution: what is to be read.
        root: the store's folder.
    """
    found: dict[tuple[str, str], CellOrigin] = {}
    for cell, lock in locked:
        origin = _origin(cell, lock, distribution, root)
        # The same version is the same wheel, wherever it is read; a CUDA variant is part of it.
        key = ("", origin.version) if origin.version else (origin.word, origin.why)
        known = found.get(key, replace(origin, cells=()))
        here = known if Path(known.word).is_absolute() or not Path(origin.word).is_absolute() else origin
        found[key] = replace(here, cells=(*known.cells, cell.id))
    return tuple(found.values())


def _origin(cell: Cell, lock: Lock | Unavailable | None, distribution: str, root: Path) -> CellOrigin:
    def without(why: str) -> CellOrigin:
        return CellOrigin((cell.id,), "", "", cell.request.index, why=why)

    if lock is None:
        return without("it was never resolved: `bisect-env matrix FILE --dry-run` does that")
    if isinstance(lock, Unavailable):
        return without(f"{lock.reason}: {lock.message}")
    python = lock.interpreter.version
    version = dict(lock.pins).get(distribution, "")
    environment = building.find(lock.address, lock, root)
    if environment is not None:
        return CellOrigin((cell.id,), str(environment.folder), version, cell.request.index)
    if version:
        return CellOrigin((cell.id,), f"{distribution}=={version}", version, _index(cell.request.index, lock), python)
    if lock.base is not None:
        return CellOrigin((cell.id,), lock.base, "", cell.request.index)
    return without(f"its lock has no {distribution}")


def _index(index: IndexChoice, lock: Lock) -> IndexChoice:
    """Where the lock's wheel lies: PyTorch's own index of a variant, where it was resolved against that."""
    if lock.torch_backend is None:
        return index
    return replace(index, urls=(f"{PYTORCH}/{lock.torch_backend}", *index.urls), torch_backend=None)
