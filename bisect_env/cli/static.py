"""``matrix --static``: what the torch of each cell shares between threads, read before anything is built."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from bisect_env.cli.cell_origins import CellOrigin, origins
from bisect_env.cli.inspect_places import read_cell
from bisect_env.cli.inspecting import at_once
from bisect_env.environments.records import Lock, Unavailable
from bisect_env.errors import BadInput, InfrastructureError
from bisect_env.inspection.facts import TORCH, Facts, facts, unknown
from bisect_env.inspection.inspected import Cost
from bisect_env.inspection.traffic import Traffic
from bisect_env.matrix.cells import Cell
from bisect_env.report import static_facts


def shared_between_threads(locked: Sequence[tuple[Cell, Lock | Unavailable | None]], root: Path) -> static_facts.Shared:
    """The facts of these cells; what cannot be read is unknown, with the reason."""
    traffic, began = Traffic(), time.monotonic()
    cells = origins(locked, TORCH, root)

    def one(origin: CellOrigin) -> tuple[str, Facts]:
        if not origin.word:
            return origin.version, unknown(origin.why)
        try:
            place = read_cell(origin, TORCH, root, traffic, download=False)
            # A base's own torch is in no lock: the environment tells which it is.
            name, _, version = place.label.partition(" ")
            return origin.version or (version if name == TORCH else ""), facts(place)
        except (BadInput, InfrastructureError) as error:
            return origin.version, unknown(str(error))

    found = zip(cells, at_once(one, cells), strict=True)
    of = {cell: told for origin, told in found for cell in origin.cells}
    torches = static_facts.folded([(cell, *of[cell.id]) for cell, _ in locked])
    here = sum(Path(origin.word).is_absolute() for origin in cells)
    return static_facts.Shared(torches, Cost(traffic.versions, here, traffic.bytes, time.monotonic() - began))
