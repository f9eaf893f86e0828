"""One trial of a cell, from the lease of its GPU to its row in the store."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bisect_env.engine.plan import Slot, seed_of
from bisect_env.engine.settings import Settings
from bisect_env.environments.records import Environment
from bisect_env.errors import InfrastructureError
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


def run_trial(
    bench: Bench, slot: Slot, environment: Environment, silence: float, counts_hang: bool, counts_slowed: bool = True
) -> TrialRecord:
    """Run one trial and store it; the record says itself when it is not to be counted.

    Args:
        silence: seconds without an event after which it hangs.
        counts_hang: False while no hang of the cell has been confirmed; a hang is then kept, but not counted.
        counts_slowed: False when a trial whose GPU was throttled is to be run again.
    """
    with trial_folder(bench) as folder:
        cache = cache_to_copy(bench, slot.cell, environment)
        record = _execute(bench, slot, environment, silence, folder, cache)
    # One that made progress until its whole time was up would only take longer under another limit.
    silent = record.longest_silence >= silence
    if record.outcome is Outcome.HANG and silent and not counts_hang:
        message = f"hung under the first limit of {silence:.0f} s, which has to be confirmed under a longer one"
        record = replace(record, outcome=Outcome.INFRA, message=message)
    slowed = gpu.slowed(record.host)
    if slowed and not counts_slowed and record.outcome is not Outcome.INFRA:
        # Whatever its outcome was: to run only the clean ones again would flatter no cell, but accuse some.
        record = replace(record, outcome=Outcome.INFRA, message=f"the GPU was slowed down: {', '.join(slowed)}")
    bench.store.put_trial(record, slot.cell.key, bench.run_id, slot.index, bench.reproducer.content_hash)
    return record


def warm_up(bench: Bench, cell: Cell, environment: Environment) -> TrialRecord:
    """Fill the cell's prepared compile cache by a single-threaded trial, which is stored and never counted.

    Where it does not end clean there is no prepared cache: the cell's trials then start cold and say that they missed.

    Raises:
        InfrastructureError: the cache cannot be kept.
    """
    slot = Slot(cell, Side.WARMUP, 0)
    with trial_folder(bench) as folder:
        record = _execute(bench, slot, environment, bench.matrix.limits.first_silence, folder, keep=True)
        bench.store.put_trial(record, cell.key, bench.run_id, slot.index, bench.reproducer.content_hash)
        if record.outcome is Outcome.CLEAN:
            prepared = _prepared(bench, cell, environment)
            try:
                caches.keep(folder, prepared)
            except OSError as error:
                raise InfrastructureError(f"{prepared}: the warmed-up compile cache cannot be kept: {error}") from error
    return record


def needs_warm_up(bench: Bench, cell: Cell, environment: Environment) -> bool:
    """Whether the cell wants a warm cache and none has been prepared."""
    return cell.condition.cache == "warm" and not _prepared(bench, cell, environment).is_dir()


def cache_to_copy(bench: Bench, cell: Cell, environment: Environment) -> Path | None:
    """What a trial's compile cache starts from: nothing, the prepared one when there is one, or the user's folder."""
    if cell.condition.cache == "cold":
        return None
    if cell.condition.cache != "warm":
        return Path(cell.condition.cache)
    prepared = _prepared(bench, cell, environment)
    return prepared if prepared.is_dir() else None


def _prepared(bench: Bench, cell: Cell, environment: Environment) -> Path:
    """Folder of the prepared cache, named by what is compiled, by which environment, and for which devices."""
    values = [(key, value) for key, value in cell.condition.values if key != "cache"]
    names = sorted({device.name for device in gpu.devices(bench.settings.gpus)})
    key = digest([environment.lock.address, bench.reproducer.content_hash, values, cell.variables, names])
    return bench.settings.root / "caches" / key


@contextmanager
def trial_folder(bench: Bench) -> Iterator[Path]:
    """A trial's own folder, named by its id, gone afterwards: a later run removes it should this one be killed."""
    trial_id = new_trial_id()
    folder = bench.settings.root / "trials" / trial_id
    bench.store.note_in_flight(trial_id, folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        bench.store.clear_in_flight(trial_id)


def _execute(
    bench: Bench,
    slot: Slot,
    environment: Environment,
    silence: float,
    folder: Path,
    warm_cache: Path | None = None,
    keep: bool = False,
) -> TrialRecord:
    settings, cell = bench.settings, slot.cell
    available = gpu.devices(settings.gpus)
    count = devices_wanted(cell, len(available))
    with leases.lease(
        count, allow_busy=settings.allow_busy, stop=bench.stop, selection=settings.gpus, tell=bench.tell
    ) as devices:
        spec = TrialSpec(
            id=folder.name,
            environment=environment.lock.address,
            python=environment.python,
            pycache=environment.folder / "pycache",
            reproducer=bench.reproducer,
            condition=cell.condition,
            side=slot.side,
            seed=seed_of(settings.seed, cell, slot.index),
            folder=folder,
            limits=bench.matrix.limits,
            silence=silence,
            variables=cell.variables,
            pass_env=bench.matrix.pass_env,
            devices=devices,
            cores=machine.cores(),
            warm_cache=warm_cache,
        )
        before = gpu.health(devices)
        record = runner.run(spec, bench.stop, facts=machine.facts, keep=keep)
        host = record.host + tuple((f"{key} before", value) for key, value in before) + gpu.health(devices)
        record = replace(record, devices=devices, host=host)
        foreign = gpu.foreign_processes(devices, own=())
    if foreign and not settings.allow_busy and record.outcome is not Outcome.INFRA:
        message = f"somebody else used the GPU meanwhile: {', '.join(foreign)}"
        record = replace(record, outcome=Outcome.INFRA, message=message)
    return record
