"""What a run would do and take, from its locks and from the trials stored so far."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from bisect_env.engine import disk
from bisect_env.engine.plan import COUNTED
from bisect_env.engine.run import Engine
from bisect_env.engine.state import CellState
from bisect_env.environments.records import Lock, Unavailable
from bisect_env.matrix.cells import Cell
from bisect_env.trials import machine


@dataclass(frozen=True)
class Forecast:
    """One cell's share of the run."""

    cell: Cell
    lock: Lock | Unavailable
    built: bool
    trials_left: int
    """At most; a racing cell stops earlier."""
    seconds_per_trial: float | None
    """Median of the stored trials of the sides that are to come; None before the first.

    Those under a witness or a profiler take longer, those that time rounds as long as they are told to.
    """
    beside: int = 1
    """Trials of the run, of whichever cell, that are under way at a time at most."""


def forecast(engine: Engine) -> tuple[tuple[Forecast, ...], int, int]:
    """Forecasts of the prepared engine's cells, bytes that building will take at most, and bytes that are free."""
    root = engine.settings.root
    forecasts = tuple(_of(engine, state) for state in engine.states)
    to_build = {item.lock.address: item.lock for item in forecasts if isinstance(item.lock, Lock) and not item.built}
    return forecasts, disk.needed_bytes(list(to_build.values())), machine.free_bytes(root)


def _of(engine: Engine, state: CellState) -> Forecast:
    assert state.lock is not None, "the engine is prepared"
    settings = engine.settings
    built = isinstance(state.lock, Lock) and settings.executor.find(state.lock, settings) is not None
    seconds = [record.seconds for record in state.records if record.side in COUNTED]
    return Forecast(
        state.cell,
        state.lock,
        built,
        engine.trials_left(state),
        statistics.median(seconds) if seconds else None,
        settings.executor.running(engine.matrix.at_once),
    )
