"""Where and when the trials of a report were measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from bisect_env.report.rows import Row
from bisect_env.store.runs import StoredRun
from bisect_env.words import counted


@dataclass(frozen=True)
class Origin:
    """What the trials that a report shows have behind them."""

    hosts: tuple[str, ...]
    """Their names; empty where the runs did not say (older versions)."""
    gpus: tuple[tuple[str, int], ...]
    """Model, and how many different ones took part; empty for trials on no GPU."""
    drivers: tuple[str, ...]
    pythons: tuple[str, ...]
    """``cpython 3.12.3, linux-x86_64``"""
    reproducers: tuple[str, ...]
    """Content hashes."""
    trials: int
    first: float
    """Unix time of the first trial's start."""
    last: float
    """The same of the last one's end."""
    runs: tuple[tuple[str, str], ...]
    """Id and how it ended, the earliest first."""


def origin(rows: Sequence[Row], runs: Sequence[StoredRun], host_key: str) -> Origin:
    """The origin of the rows' trials.

    Args:
        rows: of the table.
        runs: that these trials are of, the earliest first.
        host_key: name of the host's name among a run's facts.
    """
    records = [sample.record for row in rows for sample in row.samples]
    devices = {device.uuid: device for record in records for device in record.devices}
    models = [device.name for device in devices.values()]
    interpreters = [row.lock.interpreter for row in rows if row.lock is not None and row.samples]
    return Origin(
        hosts=_distinct(dict(run.versions).get(host_key, "") for run in runs),
        gpus=tuple((model, models.count(model)) for model in _distinct(models)),
        drivers=_distinct(device.driver for record in records for device in record.devices),
        pythons=_distinct(f"{found.implementation} {found.version}, {found.platform}" for found in interpreters),
        reproducers=_distinct(record.reproducer for record in records),
        trials=len(records),
        first=min((record.started for record in records), default=0.0),
        last=max((record.started + record.seconds for record in records), default=0.0),
        runs=tuple((run.id, run.status or "not ended") for run in runs),
    )


def described(found: Origin, reproducer: str) -> list[tuple[str, str]]:
    """Name and text of each fact; one that says so where nothing was measured.

    Args:
        found: the origin.
        reproducer: name of the reproducer.
    """
    if not found.trials:
        return [("measured", "nothing: the store holds no trial of these cells")]
    gpus = ", ".join(f"{count} x {model}" for model, count in found.gpus)
    driver = f", driver {' and '.join(found.drivers)}" if found.drivers else ""
    runs = ", ".join(f"{name} ({status})" if status != "completed" else name for name, status in found.runs)
    facts = [
        ("host", ", ".join(found.hosts)),
        ("GPUs", f"{gpus}{driver}" if gpus else "none"),
        (
            "measured",
            f"{_span(found.first, found.last)}, {found.trials} trials in {counted(len(found.runs), 'run')}: {runs}",
        ),
        ("python", " and ".join(found.pythons)),
        ("reproducer", f"{reproducer}, content hash {' and '.join(found.reproducers)}"),
    ]
    return [(name, text) for name, text in facts if text]


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({name for name in names if name}))


def _span(first: float, last: float) -> str:
    """``2026-11-30 03:54 to 04:06 UTC``, with the date twice where it differs."""
    start, end = (datetime.fromtimestamp(t, UTC) for t in (first, last))
    until = f"{end:%H:%M}" if start.date() == end.date() else f"{end:%Y-%m-%d %H:%M}"
    return f"{start:%Y-%m-%d %H:%M} to {until} UTC"
