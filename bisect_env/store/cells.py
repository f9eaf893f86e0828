"""Cells, and finding anything by the beginning of its name."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from bisect_env.matrix.cells import Cell
from bisect_env.store.codec import decode, encode
from bisect_env.store.connection import Connection

Kind = Literal["cell", "trial", "environment", "run"]


@dataclass(frozen=True)
class StoredCell:
    """A cell as some matrix had it."""

    cell: Cell
    """Without the credentials of its index URLs."""
    key: str
    """``Cell.key`` as it was when its trials were stored."""
    matrix: str


@dataclass(frozen=True)
class Match:
    """Something that a prefix fits."""

    kind: Kind
    id: str
    """What to ask the store for it by: a cell's key, a trial's or run's id, an environment's address."""
    about: str
    """One line to tell matches apart by."""


class Cells(Connection):
    """The part of the store that knows of cells, and of names."""

    def put_cells(self, cells: Iterable[Cell], matrix_name: str) -> None:
        """Keep a matrix's cells, so that they can be shown without its file."""
        rows = [(matrix_name, cell.id, cell.key, time.time(), encode(cell)) for cell in cells]
        with self._write() as db:
            db.executemany("INSERT OR REPLACE INTO cells VALUES (?, ?, ?, ?, ?)", rows)

    def cells(self, prefix: str) -> list[StoredCell]:
        """The cells whose id or key begins with ``prefix``, the latest first; a whole id or key fits alone."""
        columns = "body, key, matrix, id, stored"
        rows = self._read(
            f"SELECT {columns} FROM cells WHERE id >= ? AND id < ? UNION"  # noqa: S608
            f" SELECT {columns} FROM cells WHERE key >= ? AND key < ? ORDER BY stored DESC",
            _range(prefix) * 2,
        )
        whole = [row for row in rows if prefix in (row[1], row[3])]
        return [StoredCell(decode(Cell, body), key, matrix) for body, key, matrix, _, _ in whole or rows]

    def find(self, prefix: str) -> list[Match]:
        """Everything whose name begins with ``prefix``: one match, none, or several to choose from.

        A whole name fits alone. A cell is found by id and by key, and once for each key that it had.
        """
        names: dict[tuple[Kind, str], tuple[str, str]] = {}
        for stored in self.cells(prefix):
            about = f"cell {stored.cell.id} of {stored.matrix}"
            names.setdefault(("cell", stored.key), (stored.cell.id, about))
        bounds = _range(prefix)
        for name, side, outcome, cell_key in self._read(
            "SELECT id, side, outcome, cell_key FROM trials WHERE id >= ? AND id < ? ORDER BY id", bounds
        ):
            names["trial", name] = (name, f"trial {name} ({side}, {outcome}) of cell {cell_key}")
        for (name,) in self._read(
            "SELECT address FROM environments WHERE address >= ? AND address < ? ORDER BY address", bounds
        ):
            names["environment", name] = (name, f"environment {name}")
        for name, matrix, status in self._read(
            "SELECT id, matrix, status FROM runs WHERE id >= ? AND id < ? ORDER BY started DESC", bounds
        ):
            names["run", name] = (name, f"run {name} of {matrix} ({status or 'not ended'})")
        matches = [(Match(kind, id, about), readable) for (kind, id), (readable, about) in names.items()]
        whole = [match for match, readable in matches if prefix in (match.id, readable)]
        return whole or [match for match, _ in matches]


def _range(prefix: str) -> tuple[str, str]:
    """Bounds of the names with this prefix, which an index can serve (LIKE with a bound value cannot)."""
    return prefix, prefix + "\U0010ffff"
