"""One trial of a cell, from its GPU to its row in the store, and the compile caches that trials start from."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bisect_env.engine.attempt import Attempt, Prepared
from bisect_env.engine.places import Place, alike
from bisect_env.engine.plan import seed_of
from bisect_env.environments.records import Environment
from bisect_env.errors import InfrastructureError
from bisect_env.matrix.cells import Cell, Matrix, digest
from bisect_env.store.database import Store
from bisect_env.store.ids import new_trial_id
from bisect_env.trials import caches, gpu, machine, runner
from bisect_env.trials.records import Device, Outcome, Reproducer, Side, TrialRecord, TrialSpec
from bisect_env.trials.sharing import Company, Stay, alone
from bisect_env.verdicts.hardware import Hardware

if TYPE_CHECKING:  # The settings name the executor, which is built on this file.
    from bisect_env.engine.settings import Settings

BESIDE_OTHERS = "out of device memory beside other trials of this run, which says nothing about the cell alone"
"""Message of such a trial: it is to be run again by itself."""
PREPARED = ("warm", "stale")
"""Caches that a single-threaded trial fills beforehand."""


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
    """Gets a line when something is waited for; from any thread."""
    addresses: Mapping[str, str] = field(default_factory=dict)
    """By the key of a request the address of its environment, for all cells of the matrix; names prepared caches."""
    company: Company | None = None
    """Watches over the GPUs that the run has leased for all trials; None: each trial leases its own."""


def devices_wanted(cell: Cell, available: int) -> int:
    """GPUs that a trial of the cell leases: none on ``device: cpu`` or where there is none, else ``gpus`` (1)."""
    if cell.condition.device == "cpu" or available == 0:
        return 0
    return int(cell.condition.get("gpus", 1))


def run_attempt(bench: Bench, attempt: Attempt, place: Place) -> TrialRecord:
    """Run what the attempt says: :func:`run_trial` or :func:`warm_up`, whose exceptions it raises."""
    return (warm_up if attempt.warms_up else run_trial)(bench, attempt, place)


def run_trial(bench: Bench, attempt: Attempt, place: Place) -> TrialRecord:
    """Run one trial and store it; the record says itself when it is not to be counted.

    Raises:
        InfrastructureError: the store cannot be written, or there are not enough GPUs.
        Stopped, LeaseStopped: the bench's stop event was set.
    """
    slot = attempt.slot
    with trial_folder(bench) as folder:
        cache = cache_to_copy(slot.cell, attempt.prepared)
        record = _execute(bench, attempt, place, folder, cache)
    # One that made progress until its whole time was up would only take longer under another limit. After a reset no
    # hang counts anyway.
    silent = record.longest_silence >= attempt.silence and not record.undecided
    if record.outcome is Outcome.HANG and silent and not attempt.counts_hang:
        message = f"hung under the first limit of {attempt.silence:.0f} s, which has to be confirmed under a longer one"
        record = replace(record, outcome=Outcome.INFRA, message=message)
    slowed = gpu.slowed(record.host)
    if slowed and not attempt.counts_slowed and record.outcome is not Outcome.INFRA:
        # Whatever its outcome was: to run only the clean ones again would flatter no cell, but accuse some.
        record = replace(record, outcome=Outcome.INFRA, message=f"the GPU was slowed down: {', '.join(slowed)}")
    if cache is not None and attempt.prepared is not None and slot.cell.condition.cache == "stale":
        filler = f"environment {attempt.prepared.filler}"
        record = replace(record, extra=(*record.extra, ("compile cache filled by", filler)))
    bench.store.put_trial(record, slot.cell.key, bench.run_id, slot.index, bench.reproducer.content_hash)
    return record


def warm_up(bench: Bench, attempt: Attempt, place: Place) -> TrialRecord:
    """Fill the cell's prepared compile cache by a single-threaded trial, which is stored and never counted.

    Where it does not end clean there is no prepared cache: the cell's trials then start cold and say that they missed.

    Raises:
        InfrastructureError: the cache cannot be kept, or as :func:`run_trial`.
    """
    assert attempt.prepared is not None, "only a cell that has a prepared cache is warmed up"
    prepared, slot = attempt.prepared.folder, attempt.slot
    with trial_folder(bench) as folder:
        record = _execute(bench, attempt, place, folder, keep=True)
        bench.store.put_trial(record, slot.cell.key, bench.run_id, slot.index, bench.reproducer.content_hash)
        if record.outcome is Outcome.CLEAN:
            try:
                caches.keep(folder, prepared)
            except OSError as error:
                raise InfrastructureError(f"{prepared}: the warmed-up compile cache cannot be kept: {error}") from error
    return record


def cache_to_copy(cell: Cell, prepared: Prepared | None) -> Path | None:
    """What a trial's compile cache starts from: nothing, the prepared one when there is one, or the user's folder."""
    if cell.condition.cache == "cold":
        return None
    if cell.condition.cache not in PREPARED:
        return Path(cell.condition.cache)
    return prepared.folder if prepared is not None and prepared.folder.is_dir() else None


def prepared_cache(bench: Bench, cell: Cell, environment: Environment, models: Iterable[str]) -> Prepared | None:
    """The prepared cache of a cell that starts from one, named by what is compiled, by which environment, for what.

    So a stale cache is the other torch's warm one, where the two conditions are otherwise the same.

    Args:
        models: of the GPUs that it is compiled for, or what else tells them apart.
    """
    if cell.condition.cache not in PREPARED:
        return None
    values = [(key, value) for key, value in cell.condition.values if key != "cache"]
    source = bench.matrix.stale_source_of(cell) if cell.condition.cache == "stale" else None
    filler = bench.addresses[source.request.key] if source else environment.lock.address
    key = digest([filler, bench.reproducer.content_hash, values, cell.variables, sorted(set(models))])
    return Prepared(bench.settings.root / "caches" / key, filler)


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


def spec_of(
    bench: Bench,
    cell: Cell,
    environment: Environment,
    folder: Path,
    side: Side,
    seed: int,
    silence: float,
    devices: tuple[Device, ...],
    cores: tuple[int, ...],
) -> TrialSpec:
    """A trial of the cell with a cold cache and nothing beside it; ``folder`` is its own and named by its id."""
    return TrialSpec(
        id=folder.name,
        environment=environment.lock.address,
        python=environment.python,
        pycache=environment.folder / "pycache",
        reproducer=bench.reproducer,
        condition=cell.condition,
        side=side,
        seed=seed,
        folder=folder,
        limits=bench.matrix.limits,
        silence=silence,
        variables=cell.variables,
        pass_env=bench.matrix.pass_env,
        devices=devices,
        cores=cores,
    )


def _execute(
    bench: Bench, attempt: Attempt, place: Place, folder: Path, warm_cache: Path | None = None, keep: bool = False
) -> TrialRecord:
    cell, slot = attempt.slot.cell, attempt.slot
    with _gpus(bench, attempt, place) as stay:
        spec = replace(
            spec_of(
                bench, cell, attempt.environment, folder, slot.side,
                seed_of(bench.settings.seed, cell, slot.index), attempt.silence, stay.devices, place.cores,
            ),
            warm_cache=warm_cache,
            only_repeat=attempt.only_repeat,
            at_once=bench.matrix.at_once,
        )  # fmt: skip
        before = gpu.health(stay.devices)
        record = runner.run(spec, bench.stop, facts=machine.facts, keep=keep)
        host = record.host + tuple((f"{key} before", value) for key, value in before) + gpu.health(stay.devices)
    record = replace(record, host=host)
    if stay.others and record.outcome is not Outcome.INFRA:
        message = f"somebody else used the GPU meanwhile: {', '.join(stay.others)}"
        record = replace(record, outcome=Outcome.INFRA, message=message)
    if record.outcome is Outcome.OOM and stay.shared:
        record = replace(record, outcome=Outcome.INFRA, message=BESIDE_OTHERS)
    return record


def _gpus(bench: Bench, attempt: Attempt, place: Place) -> AbstractContextManager[Stay]:
    settings = bench.settings
    if bench.company is not None and place.devices is not None:
        return bench.company.stay(place.devices, attempt.by_itself)
    devices = gpu.devices(settings.gpus)
    count = devices_wanted(attempt.slot.cell, len(devices))
    selection = narrowed(settings.gpus, devices, attempt.hardware, count)
    return alone(count, settings.allow_busy, selection, bench.stop, bench.tell)


def narrowed(selection: str | None, devices: Sequence[Device], wanted: Hardware | None, count: int) -> str | None:
    """``--gpus`` as it is, or, where it leaves several kinds of GPUs, so that it leaves those of the cell alone.

    Args:
        selection: ``--gpus``.
        devices: that it leaves.
        wanted, count: as for :func:`bisect_env.engine.places.alike`.
    """
    found = alike(devices, wanted, count)
    return selection if len(found) == len(devices) else ",".join(device.uuid for device in found)
