"""What a run would do, before it does it: cells, downloads, disk, time."""

from __future__ import annotations

from collections.abc import Sequence

from tabulate import tabulate

from bisect_env.engine.disk import download_bytes, size
from bisect_env.engine.forecast import Forecast
from bisect_env.environments.records import Lock, Unavailable
from bisect_env.report.rows import cut
from bisect_env.words import counted


def describe(forecasts: Sequence[Forecast], disk_bytes: int, free_bytes: int, stop_early: bool = True) -> str:
    """The cells as a table, then the totals; ``stop_early`` as in the matrix."""
    rows = []
    for item in forecasts:
        if isinstance(item.lock, Unavailable):
            state, packages, download = f"UNRESOLVABLE: {item.lock.reason}", "", ""
        else:
            state = "built" if item.built else "to build"
            packages = str(len(item.lock.pins))
            download = "" if item.built or item.lock.download_bytes is None else size(item.lock.download_bytes)
        rows.append((item.cell.id, state, packages, download, item.trials_left))
    text = tabulate(rows, ["cell", "environment", "packages", "wheels", "trials to run"], disable_numparse=True)
    return "\n".join([text, "", *_reasons(forecasts), *_totals(forecasts, disk_bytes, free_bytes, stop_early)])


def _reasons(forecasts: Sequence[Forecast]) -> list[str]:
    reasons = dict.fromkeys(
        f"{item.cell.id}: {cut(item.lock.message, 300)}" for item in forecasts if isinstance(item.lock, Unavailable)
    )
    return [*reasons, ""] if reasons else []


def _totals(forecasts: Sequence[Forecast], disk_bytes: int, free_bytes: int, stop_early: bool) -> list[str]:
    to_build = {item.lock.address for item in forecasts if isinstance(item.lock, Lock) and not item.built}
    fetched = download_bytes([item.lock for item in forecasts if isinstance(item.lock, Lock) and not item.built])
    trials = sum(item.trials_left for item in forecasts)
    early = " (a racing cell stops early)" if stop_early else ""
    lines = [
        f"{counted(len(forecasts), 'cell')}, {counted(len(to_build), 'environment')} to build, "
        f"{'at most ' if stop_early else ''}{counted(trials, 'trial')} to run{early}.",
    ]
    if to_build:
        lines.append(
            f"Download: up to {size(fetched)}, less what uv has cached. Disk: at most {size(disk_bytes)}; "
            f"{size(free_bytes)} free."
        )
    known = [item.seconds_per_trial for item in forecasts if item.seconds_per_trial is not None]
    if known and trials:
        seconds = sum(item.trials_left * (item.seconds_per_trial or max(known)) for item in forecasts)
        lines.append(f"Trials: about {seconds / 60:.0f} min, from the trials stored so far.")
    elif trials:
        lines.append("Trials: no time is known yet; the first trials of this reproducer here will tell.")
    return lines
