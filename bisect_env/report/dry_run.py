"""What a run would do, before it does it: cells, downloads, disk, time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bisect_env.engine.disk import download_bytes, size
from bisect_env.engine.forecast import Forecast
from bisect_env.environments.records import Lock, Unavailable
from bisect_env.report.grid import Column, draw
from bisect_env.report.rows import cut, short_id
from bisect_env.words import counted, lasting


@dataclass(frozen=True)
class DryRun:
    """What a run would do."""

    cells: tuple[Forecast, ...]
    disk_bytes: int
    """That building takes at most."""
    free_bytes: int
    stop_early: bool = True
    """As in the matrix."""

    @property
    def to_build(self) -> dict[str, Lock]:
        """Environments that are not there, by address."""
        return {item.lock.address: item.lock for item in self.cells if isinstance(item.lock, Lock) and not item.built}

    @property
    def trials(self) -> int:
        """To run; with ``stop_early`` at most."""
        return sum(item.trials_left for item in self.cells)

    @property
    def seconds(self) -> float | None:
        """Of all its trials, by those that are stored: cells without any take as long as the slowest. None: there are
        none."""
        known = [item.seconds_per_trial for item in self.cells if item.seconds_per_trial is not None]
        if not known:
            return None
        return sum(item.trials_left * (item.seconds_per_trial or max(known)) for item in self.cells)


def describe(dry: DryRun, fmt: str = "simple") -> str:
    """The cells as a table, in a format of tabulate's, then the totals."""
    rows = []
    for item in dry.cells:
        if isinstance(item.lock, Unavailable):
            state, packages, download = f"UNRESOLVABLE: {item.lock.reason}", "", ""
        else:
            state = "built" if item.built else "to build"
            packages = str(len(item.lock.pins))
            download = "" if item.built or item.lock.download_bytes is None else size(item.lock.download_bytes)
        rows.append((item.cell.id, state, packages, download, str(item.trials_left)))
    heads = ("cell", "environment", "packages", "wheels", "trials to run")
    columns = [Column(head, tuple(row[number] for row in rows)) for number, head in enumerate(heads)]
    return "\n".join([draw(columns, fmt), "", *_reasons(dry.cells), *_totals(dry)])


def structure(dry: DryRun) -> dict[str, Any]:
    """The same for programs."""
    return {
        "cells": [_cell(item) for item in dry.cells],
        "environments": len(dry.to_build),
        "download_bytes": download_bytes([*dry.to_build.values()]),
        "disk_bytes": dry.disk_bytes,
        "free_bytes": dry.free_bytes,
        "trials": dry.trials,
        "stop_early": dry.stop_early,
        "seconds": dry.seconds,
    }


def _cell(item: Forecast) -> dict[str, Any]:
    lock = item.lock if isinstance(item.lock, Lock) else None
    return {
        "id": item.cell.id,
        "key": item.cell.key,
        "show": short_id(item.cell),
        "levels": dict(item.cell.levels),
        "unavailable": asdict(item.lock) if isinstance(item.lock, Unavailable) else None,
        "address": lock and lock.address,
        "built": item.built,
        "pins": None if lock is None else dict(lock.pins),
        "download_bytes": lock and (0 if item.built else lock.download_bytes),
        "trials": item.trials_left,
        "seconds_per_trial": item.seconds_per_trial,
    }


def room(download: int, disk: int, free: int) -> str:
    """What building fetches and takes, in bytes, and what is free."""
    return f"Download: up to {size(download)}, less what uv has cached. Disk: at most {size(disk)}; {size(free)} free."


def _reasons(forecasts: Sequence[Forecast]) -> list[str]:
    reasons = dict.fromkeys(
        f"{item.cell.id}: {cut(item.lock.message, 300)}" for item in forecasts if isinstance(item.lock, Unavailable)
    )
    return [*reasons, ""] if reasons else []


def _totals(dry: DryRun) -> list[str]:
    early = " (a racing cell stops early)" if dry.stop_early else ""
    lines = [
        f"{counted(len(dry.cells), 'cell')}, {counted(len(dry.to_build), 'environment')} to build, "
        f"{'at most ' if dry.stop_early else ''}{counted(dry.trials, 'trial')} to run{early}.",
    ]
    if dry.to_build:
        lines.append(room(download_bytes([*dry.to_build.values()]), dry.disk_bytes, dry.free_bytes))
    if dry.seconds is not None and dry.trials:
        beside = min(dry.trials, max(item.beside for item in dry.cells))
        at_a_time = f" with {beside} at a time" if beside > 1 else ""
        lines.append(f"Trials: about {lasting(dry.seconds / beside)}{at_a_time}, from the trials stored so far.")
    elif dry.trials:
        lines.append("Trials: no time is known yet; the first trials of this reproducer here will tell.")
    return lines
