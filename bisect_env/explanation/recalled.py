"""The explanation of what a store holds of a cell, wherever it was witnessed: nothing is resolved, built or run."""

from __future__ import annotations

from bisect_env.engine.recall import recall_cell
from bisect_env.errors import BadInput
from bisect_env.explanation.explain import explain_by
from bisect_env.explanation.records import Explanation
from bisect_env.matrix.cells import Cell
from bisect_env.store.database import Store
from bisect_env.trials.records import Outcome, Reproducer, Side


def recalled(cell: Cell, reproducer: Reproducer, store: Store) -> tuple[Explanation, tuple[str, ...]]:
    """The explanation, and what must be said of the trials that it rests on.

    Args:
        cell: which.
        reproducer: the present one; its hash is only compared.
        store: only read.

    Raises:
        BadInput: it has no witnessed trial of the cell.
    """
    state, marks = recall_cell(cell, reproducer, store)
    records = [sample.record for sample in state.samples if sample.record.outcome is not Outcome.INFRA]
    witnessed = [record for record in records if record.side is Side.WITNESS]
    if not witnessed:
        there = ", ".join(_witnessed(store)) or "there is none"
        wanted = f"a cell that was explained there ({there}); without --stored it is witnessed here"
        raise BadInput("--store", "", f"no witnessed trial of {cell.id} is stored", wanted)
    return explain_by(cell.id, state.address or "", witnessed, records), marks


def _witnessed(store: Store) -> list[str]:
    """The ids of the cells of which the store has witnessed trials."""
    keys = {stored.key: stored.cell.id for stored in store.cells("")}
    return sorted(
        name
        for key, name in keys.items()
        if any(stored.record.side is Side.WITNESS for stored in store.trials_of_cell(key))
    )
