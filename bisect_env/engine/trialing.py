"""One trial of a cell, from the lease of its GPU to its row in the store."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from bisect_env.engine.plan import Slot, seed_of
from bisect_env.engine.settings import Settings
from bisect_env.environments.records import Environment
from bisect_env.matrix.cells import Cell, Matrix, digest
from bisect_env.store.database import Store
from bisect_env.store.ids import new_trial_id
from bisect_env.trials import caches, gpu, leases, machine, runner
from bisect_env.trials.records import Outcome, Reproducer, Side, TrialRecord, TrialSpec


@dataclass(frozen=True)
class Bench:
    """Where trials run: everything that stays the same from one to the next."""

    matrix: Matrix
    settings: Settings
    store: Store
    run_id: str
    reproducer: Reproducer
    stop: threading.Event
    tell: Callable[[str], None]
    """Gets a line when something is waited for."""


def devices_wanted(cell: Cell, available: int) -> int:
    """GPUs that a trial of the cell leases: none on ``device: cpu`` or where there is none, else ``gpus`` (1)."""
    if cell.condition.device == "cpu" or available == 0:
        return 0
    return int(cell.condition.get("gpus", 1))


def run_trial(bench: Bench, slot: Slot, environment: Environment, silence: float, counts_hang: bool) -> TrialRecord:
    """Run one trial and store it; the record says itself when it is not to be counted.

    Args:
        silence: seconds without an event after which it hangs.
        counts_hang: False while no hang of the cell has been confirmed; a hang is then kept, but not counted.
    """
    record = _execute(bench, slot, environment, silence, warm_cache=_warm_cache(bench, slot, environment))
    if record.outcome is Outcome.HANG and not counts_hang:
        message = f"hung under the first limit of {silence:.0f} s, which has to be confirmed under a longer one"
        record = replace(record, outcome=Outcome.INFRA, message=message)
    bench.store.put_trial(record, slot.cell.key, bench.run_id, slot.index, bench.reproducer.content_hash)
    return record


def _execute(
    bench: Bench, slot: Slot, environment: Environment, silence: float, warm_cache: Path | None, keep: bool = False
) -> TrialRecord:
    settings, cell = bench.settings, slot.cell
    available = gpu.devices(settings.gpus)
    count = devices_wanted(cell, len(available))
    trial_id = new_trial_id()
    with leases.lease(
        count, allow_busy=settings.allow_busy, stop=bench.stop, selection=settings.gpus, tell=bench.tell
    ) as devices:
        spec = TrialSpec(
            id=trial_id,
            environment=environment.lock.address,
            python=environment.python,
            pycache=environment.folder / "pycache",
            reproducer=bench.reproducer,
            condition=cell.condition,
            side=slot.side,
            seed=seed_of(settings.seed, cell, slot.index),
            folder=settings.root / "trials" / trial_id,
            limits=bench.matrix.limits,
            silence=silence,
            variables=cell.variables,
            pass_env=bench.matrix.pass_env,
            devices=devices,
            cores=machine.cores(),
            warm_cache=warm_cache,
        )
        bench.store.note_in_flight(trial_id, spec.folder)
        try:
            before = gpu.health(devices)
            record = runner.run(spec, bench.stop, facts=machine.facts, keep=keep)
            host = record.host + tuple((f"{key} before", value) for key, value in before) + gpu.health(devices)
            record = replace(record, devices=devices, host=host)
            foreign = gpu.foreign_processes(devices, own=())
        finally:
            bench.store.clear_in_flight(trial_id)
    if foreign and not settings.allow_busy and record.outcome is not Outcome.INFRA:
        message = f"somebody else used the GPU meanwhile: {', '.join(foreign)}"
        record = replace(record, outcome=Outcome.INFRA, message=message)
    return record


def _warm_cache(bench: Bench, slot: Slot, environment: Environment) -> Path | None:
    """The prepared compile cache that the cell's condition asks for, made by a single-threaded trial when missing."""
    state = slot.cell.condition.cache
    if state == "cold":
        return None
    if state != "warm":
        return Path(state)
    folder = bench.settings.root / "caches" / cache_key(slot.cell, environment, bench.reproducer)
    if folder.is_dir():
        return folder
    record = _execute(
        bench,
        Slot(slot.cell, Side.WARMUP, 0),
        environment,
        bench.matrix.limits.first_silence,
        warm_cache=None,
        keep=True,
    )
    bench.store.put_trial(record, slot.cell.key, bench.run_id, 0, bench.reproducer.content_hash)
    trial_folder = bench.settings.root / "trials" / record.id
    try:
        if record.outcome is not Outcome.CLEAN:
            # Its trials then start cold and say that they missed; what broke the warm-up breaks the controls too.
            return None
        caches.keep(trial_folder, folder)
    finally:
        shutil.rmtree(trial_folder, ignore_errors=True)
    return folder


def cache_key(cell: Cell, environment: Environment, reproducer: Reproducer) -> str:
    """Names a prepared compile cache: what is compiled, by which environment, for which devices."""
    values = [(key, value) for key, value in cell.condition.values if key != "cache"]
    names = sorted({device.name for device in gpu.devices()})
    return digest([environment.lock.address, reproducer.content_hash, values, cell.variables, names])
