"""What an interrupted command left in Slurm's hands: what its jobs come to is stored once, then they are forgotten."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

from bisect_env.cluster import job, pending
from bisect_env.cluster.asking import placed
from bisect_env.cluster.flight import QUICK, SLOW, SLOWER, Flight
from bisect_env.cluster.job import ItemResult
from bisect_env.cluster.settings import SlurmSettings
from bisect_env.cluster.submitting import Cluster
from bisect_env.store.database import Store
from bisect_env.store.trials import StoredTrial
from bisect_env.trials.runner import Stopped
from bisect_env.verdicts.hardware import ran_on
from bisect_env.verdicts.samples import counts


def take_in(
    settings: SlurmSettings,
    root: Path,
    store: Store,
    tell: Callable[[str], None],
    stop: threading.Event,
    leave: Callable[[str], bool],
) -> int:
    """Store what earlier commands' jobs come to, and wait for those that have not ended; how many records.

    Args:
        settings: of the cluster.
        root: the project's folder.
        store: its store.
        tell: gets lines for whoever watches.
        stop: ends the wait when set.
        leave: asked when the wait is interrupted: whether to leave the jobs in Slurm's hands.

    Raises:
        Stopped: ``stop`` was set; what had ended is stored.
        BadInput: this host has no Slurm.
        InfrastructureError: a file of theirs cannot be read.
    """
    flights = [Flight(settings, Cluster(settings, left.folder), left, tell) for left in pending.left(root)]
    stored = 0
    try:
        for flight in flights:
            tell(
                "an earlier command was interrupted; its jobs are taken in before anything is started: "
                f"{flight.described()} (Ctrl-C ends the wait)"
            )
            stored += _drained(flight, store, stop)
    except BaseException as error:
        missing = [flight for flight in flights if flight.watch.jobs]
        described = "; ".join(flight.described() for flight in missing)
        if isinstance(error, KeyboardInterrupt) and missing and leave(described):
            for flight in missing:
                tell(flight.left_running())
        else:
            for flight in missing:
                _cancelled(flight, store)
        raise
    return stored


def _cancelled(flight: Flight, store: Store) -> None:
    """What its jobs had come to by then is stored, and nothing else of them is wanted."""
    jobs = flight.watch.jobs
    flight.cancel()
    over = {each.key for each in jobs} - {each.key for each in flight.watch.jobs}
    for each in jobs:
        if each.key in over:
            for result in job.results(each.folder).values():
                _stored(store, result, each.key)
    flight.clean()


def _drained(flight: Flight, store: Store, stop: threading.Event) -> int:
    stored, pause = 0, QUICK
    flight.watch.look(now=True)
    while flight.watch.jobs:
        for over in flight.watch.over():
            stored += sum(_stored(store, result, over.job.key) for result in over.results)
            if over.why:
                flight.tell(f"a job was lost: {over.why}")
            flight.forget(over.job)
        flight.look()
        flight.progress()
        if flight.watch.jobs and stop.wait(pause):
            raise Stopped
        pause = min(SLOW, pause * SLOWER)
    return stored


def _stored(store: Store, result: ItemResult, of: str) -> bool:
    """Store a record, unless it is there, or another one in its place was counted meanwhile."""
    sample, record = placed(result.sample, of), result.sample.record
    if store.trial(record.id) is not None or _replaced(store, result.cell_key, sample):
        return False
    try:
        store.put_trial(record, result.cell_key, sample.run_id, sample.block, record.reproducer)
    except sqlite3.IntegrityError:  # Its run stands in a store that was removed since.
        return False
    return True


def _replaced(store: Store, cell_key: str, sample: StoredTrial) -> bool:
    """Whether its own run, or one since that did not wait for it (on this host), has a trial that counts in its place.

    What other GPUs came to is not in its place: only one of the two counts.
    """
    record, run = sample.record, store.run(sample.run_id)
    if run is None or not counts(record):
        return False
    others = store.trials(cell_key, record.environment, record.reproducer)
    return any(
        (other.record.side, other.block) == (record.side, sample.block)
        and counts(other.record)
        and (other.run_id == sample.run_id or other.record.started >= run.started)
        and ran_on(other.record) == ran_on(record)
        for other in others
    )
