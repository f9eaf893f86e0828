"""Snapshots, questions and trials for tests of the gate's pure parts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from bisect_env.bisection.records import Specification
from bisect_env.environments.records import Interpreter, Lock
from bisect_env.matrix.cells import Condition, ReproducerChoice
from bisect_env.snapshots.factors import difference
from bisect_env.snapshots.records import Distribution, Snapshot
from bisect_env.store.trials import StoredTrial
from bisect_env.trials.records import Outcome, Side, TrialRecord

COLD = Condition.of({"cache": "cold", "device": "cpu", "threads": 2})


def side(origin: str, *, ranges: tuple[str, ...] = (), **pins: str) -> Snapshot:
    """A snapshot of these distributions."""
    found = tuple(Distribution(name, version) for name, version in sorted(pins.items()))
    return Snapshot(origin, "pip freeze", found, ranges=ranges)


def asked(baseline: Snapshot, candidate: Snapshot, **more: Any) -> Specification:
    """The two, to be compared."""
    found = difference(baseline, candidate)
    reproducer = ReproducerChoice("command", ("python", "trial.py"))
    return replace(Specification(baseline, candidate, found, COLD, COLD, reproducer), **more)


def lock(**pins: str) -> Lock:
    """A lock of these distributions."""
    text = "".join(f"{name}=={version}\n" for name, version in sorted(pins.items()))
    python = Interpreter(Path("/usr/bin/python3"), "3.11.2", "cpython", "linux-x86_64")
    return Lock(text, python, tuple(sorted(pins.items())), None, "0" * 24)


def trial(
    block: int, outcome: Outcome = Outcome.CLEAN, side: Side = Side.THREADS, run: str = "r1", **more: Any
) -> StoredTrial:
    """A stored trial; its seed is its block unless it is told."""
    record = TrialRecord(f"t{run}{side}{block}", "env", "hash", COLD, side, block, outcome)
    return StoredTrial(replace(record, **more), block, run)
