"""What the torch of each cell shares between threads, as a table made before anything is built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bisect_env.inspection.facts import Fact, Facts
from bisect_env.inspection.inspected import Cost
from bisect_env.inspection.records import Scope
from bisect_env.matrix.cells import Cell
from bisect_env.matrix.covering import described
from bisect_env.report.grid import Column, draw
from bisect_env.report.inspection import cost
from bisect_env.report.pieces import Points, Section, Words, text

SHARED = {
    Scope.PROCESS: "process-wide",
    Scope.THREAD: "per thread",
    Scope.CONTEXT: "per thread (context)",
    Scope.ABSENT: "not there",
}
UNKNOWN = "unknown"
LEGEND = (
    "tracing flag, process-wide: while one thread traces, a call in another may be taken for a traced one. "
    "is_compiling, process-wide in compiles: it may be true in a thread that compiles nothing. dynamo config, per "
    "thread: a value set in one thread is the default again in a new one. mask annotations, process-wide, obeyed: "
    "making block masks writes an annotation that whatever other threads trace takes, and inductor obeys it."
)


@dataclass(frozen=True)
class Told:
    """A torch with its facts, and the cells that would get it."""

    cells: tuple[str, ...]
    """Ids."""
    levels: str | None
    """What they have in common and no other cell has; None where no levels tell them apart."""
    torch: str
    """Its version, without the variant where the cells have several; empty where it is not known."""
    facts: Facts


@dataclass(frozen=True)
class Shared:
    """What all cells' torch shares between threads."""

    torches: tuple[Told, ...]
    """In the order of their first cells."""
    cost: Cost
    """Of reading them."""


def folded(found: Sequence[tuple[Cell, str, Facts]]) -> tuple[Told, ...]:
    """One entry a torch: cells whose torch is the same version, and of which the same is known, stand together.

    Builds of one version for several variants are one torch, unless their facts differ.

    Args:
        found: a cell, the version of its torch, and its facts.
    """
    groups: dict[tuple[str, Facts], list[tuple[Cell, str]]] = {}
    for cell, torch, facts in found:
        groups.setdefault((torch.partition("+")[0], facts), []).append((cell, torch))
    every = [cell for cell, _, _ in found]
    rows = []
    for (version, facts), members in groups.items():
        cells, variants = [cell for cell, _ in members], {torch for _, torch in members}
        torch = variants.pop() if len(variants) == 1 else version
        rows.append(Told(tuple(cell.id for cell in cells), described(cells, every), torch, facts))
    return tuple(rows)


def table(shared: Shared, width: int, fmt: str = "simple") -> str:
    """The facts by torch, as read from the source: no cell was built and none was run.

    Args:
        width: characters a line below the table.
        fmt: of the table, any of tabulate's.
    """
    notes: dict[str, int] = {}
    rows = shared.torches
    for row in rows:
        for fact in (row.facts.tracing, row.facts.compiling, row.facts.config, row.facts.masks):
            if fact.scope is None:
                notes.setdefault(fact.why, len(notes) + 1)
    grid = draw(
        [
            Column("cells", tuple(_cells(row, notes) for row in rows)),
            Column("torch", tuple(row.torch for row in rows)),
            Column("tracing flag", tuple(_word(row.facts.tracing, notes) for row in rows)),
            Column("is_compiling", tuple(_compiling(row.facts.compiling, notes) for row in rows)),
            Column("dynamo config", tuple(_word(row.facts.config, notes) for row in rows)),
            Column("mask annotations", tuple(_masks(row.facts.masks, notes) for row in rows)),
        ],
        fmt,
    )
    below = tuple(f"[{number}] {note}" for note, number in notes.items())
    parts = (Points(below), Words(LEGEND), Words(f"Read: {cost(shared.cost)}"))
    return f"{grid}\n\n{text([Section('', parts)], width)}"


def structure(shared: Shared) -> dict[str, Any]:
    """The same for programs."""
    torches = [
        {"cells": row.cells, "levels": row.levels, "torch": row.torch or None, **asdict(row.facts)}
        for row in shared.torches
    ]
    return {"torches": torches, "cost": asdict(shared.cost)}


def _cells(row: Told, notes: dict[str, int]) -> str:
    """Which cells a row stands for; where no levels tell that, the note that lists them."""
    number = len(row.cells)
    if row.levels is None:
        listed = f"cells: {', '.join(row.cells)}"
        return f"{number} cells [{notes.setdefault(listed, len(notes) + 1)}]"
    return row.levels if number == 1 else f"{row.levels} ({number} cells)"


def _word(fact: Fact, notes: dict[str, int]) -> str:
    return f"{UNKNOWN} [{notes[fact.why]}]" if fact.scope is None else SHARED[fact.scope]


def _masks(fact: Fact, notes: dict[str, int]) -> str:
    if fact.scope is Scope.ABSENT:
        return "none"
    return f"{_word(fact, notes)}{', obeyed' if fact.held else ''}"


def _compiling(fact: Fact, notes: dict[str, int]) -> str:
    if fact.held is None:
        return _word(fact, notes)
    return f"{SHARED[Scope.PROCESS]} in compiles" if fact.held else "not set by compiles"
