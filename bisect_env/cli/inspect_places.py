"""The places that ``inspect`` reads: what ``--in`` names, cells of the store, and those of a matrix file."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from rich.console import Console

from bisect_env.cli.cell_origins import CellOrigin, origins
from bisect_env.cli.common import STORE_FILE, Progress
from bisect_env.cli.selection import selected
from bisect_env.engine import prepare
from bisect_env.environments.index import SimpleIndex
from bisect_env.environments.records import Lock, Unavailable
from bisect_env.environments.uv import Uv
from bisect_env.errors import BadInput
from bisect_env.inspection.origins import open_origins
from bisect_env.inspection.records import Sources
from bisect_env.inspection.traffic import Traffic
from bisect_env.matrix.cells import Cell, IndexChoice
from bisect_env.matrix.loading import load
from bisect_env.matrix.problems import shown
from bisect_env.report.progress import LineReporter, LiveReporter
from bisect_env.store.database import Store

CELL = "cell:"
MOST = 20
"""Cells listed when an id fits several."""


@dataclass(frozen=True)
class Places:
    """What is to be read, opened, and what is to be said of it."""

    sources: tuple[Sources, ...]
    words: tuple[str, ...]
    """As after ``--in``; a cell's is the folder of its environment, or the version that its lock takes."""
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Asked:
    """The options that say where."""

    words: tuple[str, ...]
    matrix: Path | None
    patterns: tuple[str, ...]
    """Of the matrix's cells."""
    index: IndexChoice
    download: bool


def opened(asked: Asked, distribution: str, root: Path, traffic: Traffic) -> Places:
    """All places, in the order that they were given, the matrix's cells last.

    Raises:
        BadInput: one of them does not exist, or none of the cells can be read.
        InfrastructureError: one of them cannot be read now.
    """
    found: list[Sources] = []
    cells: list[CellOrigin] = []
    notes: list[str] = []
    plain: list[str] = []

    def flush() -> None:
        if plain:
            found.extend(open_origins(plain, distribution, asked.index, root, download=asked.download, traffic=traffic))
            plain.clear()

    for word in asked.words:
        if word.startswith(CELL):
            flush()
            cells += (stored := _stored(word, distribution, root))
            found += _of_cells(stored, distribution, root, traffic, asked.download, notes)
        else:
            plain.append(word)
    flush()
    if asked.matrix is not None:
        cells += (listed := of_matrix(asked.matrix, asked.patterns, distribution, root))
        found += _of_cells(listed, distribution, root, traffic, asked.download, notes)
    if not found:
        raise BadInput("--in", "", "; ".join(notes), "a cell that resolves, or a version: --in torch==2.11.0")
    words = (*(word for word in asked.words if not word.startswith(CELL)), *(cell.word for cell in cells if cell.word))
    return Places(tuple(found), words, tuple(notes))


def of_matrix(file: Path, patterns: Sequence[str], distribution: str, root: Path) -> tuple[CellOrigin, ...]:
    """The places of a matrix's cells, which are resolved where the store does not have them resolved.

    Raises:
        BadInput: the file cannot be used, or no cell matches.
    """
    matrix = selected(load(file, SimpleIndex()), patterns)
    console = Console(file=cast("IO[str]", Progress()), highlight=False)
    reporter = LiveReporter(console) if console.is_terminal else LineReporter(console)
    with Store(root / STORE_FILE) as store, reporter:
        locks = prepare.resolve(matrix.cells, store, Uv(), reporter, threading.Event(), fresh=False)
        store.put_cells(matrix.cells, matrix.name)
    return origins([(cell, locks[cell.request.key]) for cell in matrix.cells], distribution, root)


def read_cell(origin: CellOrigin, distribution: str, root: Path, traffic: Traffic, download: bool) -> Sources:
    """The place of a cell that has one, opened. Raises as :func:`opened`."""
    (sources,) = open_origins(
        [origin.word], distribution, origin.index, root, python=origin.python, download=download, traffic=traffic
    )
    return sources


def _of_cells(
    cells: Sequence[CellOrigin], distribution: str, root: Path, traffic: Traffic, download: bool, notes: list[str]
) -> list[Sources]:
    found = []
    for origin in cells:
        ids = ", ".join(origin.cells)
        if not origin.word:
            notes.append(f"not read: {ids}: {origin.why}")
            continue
        sources = read_cell(origin, distribution, root, traffic, download)
        built = "its environment" if Path(origin.word).is_absolute() else "not built: read from the index"
        notes.append(f"{sources.label} is what {ids} has ({built})")
        found.append(sources)
    return found


def _stored(word: str, distribution: str, root: Path) -> tuple[CellOrigin, ...]:
    """The place of the one stored cell that the word names."""
    name = word.removeprefix(CELL).strip()
    path = root / STORE_FILE
    wanted = "cell:ID with an id from a table, or its beginning; `bisect-env show ID` tells what there is"
    if not path.is_file():
        raise BadInput("--in", "", f"{shown(word)}: {root} has no store", "--store FOLDER of an earlier run")
    with Store(path, read_only=True) as store:
        matches = {stored.key: stored.cell for stored in store.cells(name)} if name else {}
        if len(matches) != 1:
            listed = "\n    ".join(cell.id for cell in list(matches.values())[:MOST])
            found = f"{shown(word)}: {f'{len(matches)} cells' if matches else 'no cell is called that'}"
            raise BadInput("--in", "", found, f"one of\n    {listed}" if matches else wanted)
        (cell,) = matches.values()
        locked: tuple[Cell, Lock | Unavailable | None] = (cell, store.lock(cell.request.key))
    return origins([locked], distribution, root)
