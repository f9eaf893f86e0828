"""Verdicts over time, and what changed between two runs, as text for people and as a document for programs. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from bisect_env.engine.past import CellPast, Moment, Past
from bisect_env.engine.recall import HOST
from bisect_env.matrix.urls import without_credentials
from bisect_env.report.bisection_words import value as shown
from bisect_env.report.grid import Column
from bisect_env.report.machine import plain
from bisect_env.report.pieces import Grid, Part, Points, Section, Words, text
from bisect_env.report.rows import below, interval, short_id, speed
from bisect_env.store.runs import StoredRun
from bisect_env.verdicts.records import Verdict
from bisect_env.words import counted

SCHEMA = 1
"""Grows when a key is renamed, removed or changes its meaning; not when one is added."""
MOST = 12
"""Runs, and lines of a cell, that the text shows: the latest. The document has all."""
NAMED = 4
"""Changes of distributions that a sentence names."""
NONE = "none"


@dataclass(frozen=True)
class Shift:
    """Something that was otherwise when the cell was measured before."""

    what: str
    """``verdict``, ``distribution``, ``environment``, ``python``, ``driver``, ``GPUs``, ``host``, ``reproducer``,
    ``bisect-env``, ``plan``, ``condition``, ``variable``."""
    name: str
    """Of the distribution, the condition's key or the variable; empty for the others."""
    before: str | None
    """None: absent."""
    after: str | None


def changes(before: Moment, after: Moment) -> list[Shift]:
    """In what two moments of a cell differ, the verdict first."""
    found = [Shift("verdict", "", before.verdict.text, after.verdict.text)]
    found += _pins(before, after)
    found += _keys("condition", *(moment.cell.condition.as_dict() for moment in (before, after)))
    found += _keys("variable", *({n: shown(n, v) for n, v in moment.cell.variables} for moment in (before, after)))
    found += [Shift(what, "", told(before), told(after)) for what, told in _FACTS]
    kept = [change for change in found if change.before != change.after and "" not in (change.before, change.after)]
    if before.address != after.address and not any(change.what in ("distribution", "python") for change in kept):
        kept.append(Shift("environment", "", before.address, after.address))
    return kept


def since(found: Past) -> tuple[StoredRun, list[tuple[CellPast, list[Shift]]]] | None:
    """The last run that measured something, and each cell that it measured again with what changed for it.

    None when nothing was ever measured.
    """
    moments = [moment for cell in found.cells for moment in cell.moments]
    if not moments:
        return None
    last = max((moment.run for moment in moments), key=lambda run: run.started)
    again = [cell for cell in found.cells if len(cell.moments) > 1 and cell.moments[-1].run == last]
    return last, [(cell, changes(*cell.moments[-2:])) for cell in again]


def describe(found: Past, width: int) -> str:
    """The runs, what changed with the last one, and each cell's verdicts over time."""
    runs = found.runs[-MOST:]
    head = f"{found.matrix}: {counted(len(found.runs), 'run')}, {counted(len(found.cells), 'cell')}."
    sections = [
        Section("", (Words(head), _runs(found, runs), *_earlier(len(found.runs) - len(runs), "run"))),
        Section("What changed", _changed(found)),
        Section("Verdicts over time", (_table(found.cells), Points(_notes(found.cells)), Words(ABOUT))),
    ]
    return text(sections, width)


ABOUT = (
    "A line a run that measured something of the cell. Each cell is judged by itself, on the trials that counted when "
    "the run ended: SLOW, which compares with a reference cell, is for `bisect-env report`."
)


def document(found: Past) -> dict[str, Any]:
    """Everything, fit for ``json.dumps``; a figure that is not a number is null."""
    latest = since(found)
    result = {
        "schema": SCHEMA,
        "matrix": found.matrix,
        "runs": [_run(run, _own(found, run)) for run in found.runs],
        "last": latest and latest[0].id,
        "changed": [
            {"cell": cell.cell.id, "before": cell.moments[-2].run.id, "changes": [asdict(change) for change in differs]}
            for cell, differs in (latest[1] if latest else [])
            if differs
        ],
        "cells": [
            {
                "id": cell.cell.id,
                "key": cell.cell.key,
                "show": short_id(cell.cell),
                "levels": dict(cell.cell.levels),
                "moments": [
                    _moment(moment, changes(before, moment) if before else [])
                    for before, moment in zip((None, *cell.moments), cell.moments, strict=False)
                ],
                "now": cell.now and {"headline": cell.now.headline, "text": cell.now.text, "reason": cell.now.reason},
            }
            for cell in found.cells
        ],
    }
    clean: dict[str, Any] = plain(result, without_credentials)
    return clean


def _run(run: StoredRun, own: int) -> dict[str, Any]:
    versions = dict(run.versions)
    return {
        "id": run.id,
        "path": run.matrix_path,
        "started": run.started,
        "ended": run.ended,
        "status": run.status,
        "host": versions.pop(HOST, ""),
        "versions": versions,
        "planned": {"trials": run.trials, "controls": run.controls, "solo": run.solo} if run.trials else None,
        "trials": own,
    }


def _moment(moment: Moment, differs: list[Shift]) -> dict[str, Any]:
    verdict = moment.verdict
    return {
        "run": moment.run.id,
        "key": moment.cell.key,
        "headline": verdict.headline,
        "text": verdict.text,
        "reason": verdict.reason,
        "threads": verdict.threads and asdict(verdict.threads),
        "bound": verdict.bound,
        "throughput": verdict.throughput and asdict(verdict.throughput),
        "peak_bytes": verdict.peak_bytes,
        "environment": moment.address,
        "drivers": list(_drivers(moment)),
        "gpus": list(_gpus(moment)),
        "reproducer": moment.samples[-1].record.reproducer,
        "trials": len(moment.samples),
        "own": moment.own,
        "changes": [asdict(change) for change in differs],
    }


def _runs(found: Past, runs: tuple[StoredRun, ...]) -> Grid:
    return Grid(
        (
            Column("run", tuple(run.id for run in runs)),
            Column("started (UTC)", tuple(_when(run.started) for run in runs)),
            Column("host", tuple(dict(run.versions).get(HOST, "") for run in runs)),
            Column("bisect-env", tuple(dict(run.versions).get("bisect-env", "") for run in runs)),
            Column("planned", tuple(_plan(run) for run in runs)),
            Column("trials run", tuple(str(_own(found, run)) for run in runs)),
            Column("ended", tuple(run.status or "did not end" for run in runs)),
        ),
        ("bisect-env", "planned", "host"),
    )


def _changed(found: Past) -> tuple[Part, ...]:
    latest = since(found)
    if latest is None:
        return (Words("Nothing was measured yet."),)
    run, cells = latest
    if not cells:
        again = (
            "The next run that measures these cells again will be compared with it: after a change of versions, driver "
            "or reproducer, or with --fresh."
        )
        return (Words(f"{run.id}, the last run that measured something, measured no cell again. {again}"),)
    other = sum(cell.moments[-1].verdict.headline != cell.moments[-2].verdict.headline for cell, _ in cells)
    measured = counted(len(cells), "cell")
    head = f"{run.id} measured {measured} again; {counted(other, 'verdict') if other else 'no verdict'} changed."
    lines = [f"{cell.cell.id}, since {cell.moments[-2].run.id}: {_said(differs)}" for cell, differs in cells if differs]
    return Words(head), Points(tuple(lines))


def _table(cells: tuple[CellPast, ...]) -> Grid:
    lines = [(cell, moment) for cell in cells for moment in cell.moments[-MOST:]]
    first = {id(cell.moments[-MOST:][0]): cell for cell in cells if cell.moments}
    heads = [first.get(id(moment)) for _, moment in lines]
    verdicts = [moment.verdict for _, moment in lines]
    return Grid(
        (
            Column("cell", tuple(cell.cell.id if cell else "" for cell in heads)),
            Column("id", tuple(short_id(cell.cell) if cell else "" for cell in heads)),
            Column("run", tuple(moment.run.id for _, moment in lines)),
            Column("verdict", tuple(verdict.text for verdict in verdicts)),
            Column("failed", tuple(interval(verdict.threads) for verdict in verdicts)),
            Column("race rate", tuple(_bound(verdict) for verdict in verdicts)),
            Column("tok/s", tuple(speed(verdict.throughput) for verdict in verdicts)),
            Column("new trials", tuple(str(moment.own) for _, moment in lines)),
        ),
        ("race rate", "new trials", "id", "failed", "tok/s"),
    )


def _notes(cells: tuple[CellPast, ...]) -> tuple[str, ...]:
    """What changed with the verdicts, once where it is the same for several cells, and what has no verdict now."""
    causes: dict[str, list[str]] = {}
    for cell in cells:
        for before, after in pairwise(cell.moments[-MOST:]):
            said = _said([change for change in changes(before, after) if change.what != "verdict"])
            if said:
                causes.setdefault(f"{before.run.id} to {after.run.id}: {said}", []).append(cell.cell.id)
    notes = [f"{said} ({_listed(names)})" for said, names in causes.items()]
    return (*notes, *(f"now {_now(cell.now)} ({cell.cell.id})" for cell in cells if cell.now is not None))


def _said(found: list[Shift]) -> str:
    pins = [change for change in found if change.what == "distribution"]
    more = [f"and {len(pins) - NAMED} more distributions"] if len(pins) > NAMED else []
    others = [change for change in found if change.what != "distribution"]
    verdict = [change for change in others if change.what == "verdict"]
    rest = [change for change in others if change.what != "verdict"]
    return ", ".join([*map(_sentence, [*verdict, *pins[:NAMED]]), *more, *map(_sentence, rest)])


def _sentence(change: Shift) -> str:
    name = "" if change.what == "verdict" else f"{change.name or change.what} "
    return f"{name}{change.before or NONE} -> {change.after or NONE}"


def _pins(before: Moment, after: Moment) -> list[Shift]:
    if before.lock is None or after.lock is None:
        return []
    return _keys("distribution", dict(before.lock.pins), dict(after.lock.pins))


def _keys(what: str, before: dict[str, Any], after: dict[str, Any]) -> list[Shift]:
    return [Shift(what, name, _text(before, name), _text(after, name)) for name in sorted({*before, *after})]


def _text(values: dict[str, Any], name: str) -> str | None:
    return str(values[name]) if name in values else None


def _drivers(moment: Moment) -> tuple[str, ...]:
    return _distinct(device.driver for sample in moment.samples for device in sample.record.devices)


def _gpus(moment: Moment) -> tuple[str, ...]:
    return _distinct(device.name for sample in moment.samples for device in sample.record.devices)


def _last(moment: Moment, told: Callable[[Moment], tuple[str, ...]]) -> str:
    """What the moment's own run says: earlier trials may have had another driver."""
    own = tuple(sample for sample in moment.samples if sample.run_id == moment.run.id)
    return ", ".join(told(Moment(moment.run, moment.cell, moment.verdict, moment.lock, own, moment.own)))


_FACTS: tuple[tuple[str, Callable[[Moment], str]], ...] = (
    ("python", lambda moment: moment.lock.interpreter.version if moment.lock else ""),
    ("driver", lambda moment: _last(moment, _drivers)),
    ("GPUs", lambda moment: _last(moment, _gpus) or NONE),
    ("host", lambda moment: dict(moment.run.versions).get(HOST, "")),
    ("reproducer", lambda moment: moment.samples[-1].record.reproducer[:8]),
    ("bisect-env", lambda moment: dict(moment.run.versions).get("bisect-env", "")),
    ("plan", lambda moment: _plan(moment.run)),
)


def _plan(run: StoredRun) -> str:
    return f"{run.trials} and {run.controls} controls" if run.trials else ""


def _own(found: Past, run: StoredRun) -> int:
    return sum(moment.own for cell in found.cells for moment in cell.moments if moment.run == run)


def _bound(verdict: Verdict) -> str:
    return below(verdict.bound) if verdict.threads is not None and verdict.threads.k == 0 else ""


def _now(verdict: Verdict) -> str:
    return f"{verdict.text}: {verdict.reason}" if verdict.reason else verdict.text


def _earlier(count: int, what: str) -> list[Part]:
    return [Words(f"{counted(count, f'earlier {what}')} left out; --json has all.")] if count > 0 else []


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else counted(len(names), "cell")


def _when(t: float) -> str:
    return f"{datetime.fromtimestamp(t, UTC):%Y-%m-%d %H:%M}"


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(names)))
