"""What an explanation would do, before it does it (``--dry-run``)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from bisect_env.engine.disk import size
from bisect_env.explanation.planned import Planned, Series
from bisect_env.report import pieces
from bisect_env.report.dry_run import room
from bisect_env.report.grid import Column
from bisect_env.report.machine import plain
from bisect_env.report.pieces import Grid, Section, Words
from bisect_env.words import lasting

SCHEMA = 1
"""Grows when a key is renamed, removed or changes its meaning; not when one is added."""


def describe(plan: Planned, fmt: str = "text", width: int = 100) -> str:
    """The plan as text or as Markdown: environments, downloads, disk, trials by kind, time."""
    environments = plan.environments
    sections = [
        Section("", (Words(f"An explanation of {plan.cell}; nothing was built or run."),)),
        Section("", (_environments(plan),) if environments else ()),
        Section("", (_trials(plan),)),
        Section("", (Words(_totals(plan)),)),
    ]
    return pieces.markdown(sections) if fmt == "markdown" else pieces.text(sections, width)


def document(plan: Planned) -> dict[str, Any]:
    """The same for programs."""
    clean: dict[str, Any] = plain({"schema": SCHEMA, **asdict(plan)})
    return clean


def _environments(plan: Planned) -> Grid:
    wheels = [
        "" if each.built or each.download_bytes is None else size(each.download_bytes) for each in plan.environments
    ]
    return Grid(
        (
            Column("cell", tuple(each.cell for each in plan.environments)),
            Column("environment", tuple("built" if each.built else "to build" for each in plan.environments)),
            Column("packages", tuple(str(each.packages) for each in plan.environments)),
            Column("wheels", tuple(wheels)),
        )
    )


def _trials(plan: Planned) -> Grid:
    rows = [
        ("with the witness", str(plan.witnessed.stored), _to_run(plan.witnessed)),
        ("in one thread", str(plan.serial.stored), _to_run(plan.serial)),
        ("with threads and no witness", str(plan.threads.stored), _to_run(plan.threads)),
    ]
    if plan.warm_up:
        rows.insert(0, ("to fill the compile cache", "0", "1"))
    return Grid(tuple(Column(head, tuple(row[at] for row in rows)) for at, head in enumerate(HEADS)))


HEADS = ("trials", "stored", "to run")


def _to_run(series: Series) -> str:
    return str(series.most) if series.least == series.most else f"{series.least} to {series.most}"


def _totals(plan: Planned) -> str:
    said = []
    if plan.unfinished:
        said.append("Trials of an earlier command are still elsewhere: what they come to is taken in first.")
    if not any(each.most for each in (plan.witnessed, plan.serial, plan.threads)):
        return " ".join([*said, "No trial is missing: without --dry-run what is stored is explained at once."])
    if plan.witnessed.most and plan.until is not None:
        said.append(f"Trials with the witness end when {plan.until} went wrong.")
    if not all(each.built for each in plan.environments):
        said.append(room(plan.download_bytes, plan.disk_bytes, plan.free_bytes))
    if plan.seconds is None:
        said.append("Time: not known yet; the first trials of this reproducer here will tell.")
    else:
        said.append(f"Time: at most about {lasting(plan.seconds)}, by the trials stored so far.")
    return " ".join(said)
