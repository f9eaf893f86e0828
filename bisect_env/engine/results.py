"""What a run says of one cell: the engine's output, and the input of every report."""

from __future__ import annotations

from dataclasses import dataclass

from bisect_env.environments.records import Lock
from bisect_env.matrix.cells import Cell
from bisect_env.store.trials import StoredTrial
from bisect_env.verdicts.records import Verdict


@dataclass(frozen=True)
class Result:
    """A cell with its verdict and the evidence behind it."""

    cell: Cell
    verdict: Verdict
    lock: Lock | None
    samples: tuple[StoredTrial, ...]
    """Its trials on one GPU model and driver."""
    elsewhere: tuple[StoredTrial, ...] = ()
    """Its trials on others, which are not counted."""
