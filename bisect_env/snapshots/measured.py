"""What the store knows of a cell, an environment or a trial, as a snapshot."""

from __future__ import annotations

from dataclasses import replace

from bisect_env.environments.records import Environment, Lock, Unavailable
from bisect_env.errors import BadInput
from bisect_env.snapshots.forms import pip_freeze
from bisect_env.snapshots.pieces import versioned
from bisect_env.snapshots.records import Distribution, Snapshot, Target, in_order
from bisect_env.snapshots.variables import public
from bisect_env.store.cells import Match
from bisect_env.store.database import Store
from bisect_env.trials.records import TrialRecord

FORM = "stored cell"
_WANTED = "cell:ID with an id from a table, or its beginning; `bisect-env show ID` tells what there is"
_MOST = 10


def snapshot(name: str, store: Store | None, origin: str) -> Snapshot:
    """What a cell's trials ran in: its lock, what was really installed, its variables, and the devices of the last one.

    Raises BadInput: there is no store, no such thing in it or several, or the cell has no environment.
    """
    match = _only(name, store, origin)
    assert store is not None
    if match.kind == "environment":
        return _of_environment(store.environment(match.id), None, origin)
    if match.kind == "trial":
        trial = store.trial(match.id)
        assert trial is not None
        taken = _of_environment(store.environment(trial.record.environment), None, origin)
        return _with_devices(taken, trial.record)
    stored = store.cells(match.id)[0].cell
    lock = store.lock(stored.request.key)
    if not isinstance(lock, Lock):
        why = f"{lock.reason}: {lock.message}" if isinstance(lock, Unavailable) else "it was never resolved"
        raise BadInput(origin, "", f"the cell {stored.id} has no environment: {why}"[:600], "a cell that was built")
    taken = _of_environment(store.environment(lock.address), lock, origin)
    trials = store.trials_of_cell(match.id)
    if trials:
        taken = _with_devices(taken, trials[-1].record)
    said = f"Its compile cache is its condition's ({stored.condition.cache}): not a folder that was counted."
    return replace(taken, variables=public(stored.variables), missing=(*taken.missing, said))


def _only(name: str, store: Store | None, origin: str) -> Match:
    if store is None:
        raise BadInput(origin, "", "there is no store here", "--store, with the folder of an earlier run")
    matches = [match for match in store.find(name) if match.kind != "run"] if name else []
    if len(matches) != 1:
        listed = "\n    ".join(f"cell:{match.id}  {match.about}" for match in matches[:_MOST])
        found = f"{len(matches)} things begin with {name!r}" if matches else f"nothing is called {name!r}"
        raise BadInput(origin, "", found, f"one of\n    {listed}" if matches else _WANTED)
    return matches[0]


def _of_environment(environment: Environment | None, lock: Lock | None, origin: str) -> Snapshot:
    lock = environment.lock if environment is not None else lock
    if lock is None:
        raise BadInput(origin, "", "its environment is not in the store any more", _WANTED)
    python, pins = lock.interpreter, dict(lock.pins)
    if environment is not None and environment.freeze.strip():
        host = Target(python.version, "linux", python.platform.rpartition("-")[2])
        installed = pip_freeze.read(environment.freeze, origin, host).distributions
    else:
        installed = tuple(versioned(name, version) for name, version in lock.pins)
    return Snapshot(
        origin,
        FORM,
        in_order(_with_version(each, pins) for each in installed),
        python=python.version,
        platform=python.platform,
        cuda=lock.cuda,
        missing=(f"It stands on {lock.base}: what is installed there is not in it.",) if lock.base else (),
        partial=lock.base is not None,
    )


def _with_version(distribution: Distribution, pins: dict[str, str]) -> Distribution:
    """``uv pip freeze`` tells only where a git or a local one came from; the lock has its version."""
    if distribution.version is None and distribution.name in pins:
        return replace(distribution, version=pins[distribution.name], note="")
    return distribution


def _with_devices(taken: Snapshot, trial: TrialRecord) -> Snapshot:
    drivers = sorted({device.driver for device in trial.devices if device.driver})
    return replace(
        taken,
        driver=drivers[0] if len(drivers) == 1 else None,
        gpus=tuple(device.name for device in trial.devices),
    )
