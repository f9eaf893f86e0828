"""The table: a line a cell, what is the same in all cells above it, notes below it."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence

from bisect_env.errors import BadInput
from bisect_env.report.grid import FITTED, NOTED, Column, draw, fitted
from bisect_env.report.rows import (
    Row,
    below,
    cut,
    fault,
    gigabytes,
    interval,
    level,
    measured_on,
    path,
    ratio,
    short_id,
    speed,
    together,
    varying,
)
from bisect_env.verdicts.records import Headline, percent

DROPPED = ("exposures/trial", "exposures", "peak", "race rate", "util", "ratio", "path", "tok/s", "control")
"""Columns of a table in a terminal that may go, the least needed first."""
REPEATED = ("exposures/failure", "signature")
"""Columns for programs only: a reader has them from other columns, and from the notes."""
EXPLAINED = (
    Headline.UNRESOLVABLE,
    Headline.BUILD_FAILED,
    Headline.IMPORT_FAILED,
    Headline.BROKEN,
    Headline.WRONG,
    Headline.UNSURE,
    Headline.SKIPPED,
    Headline.NOT_RUN,
)
"""Headlines whose reason is a note: the figures do not speak for themselves."""
VERDICT = "verdict"
NO_TRIAL = "no trial was run yet"
"""The reason of NOT RUN that says no more than the headline."""
NOTE_LENGTH = 400
SIGNATURES = 3
"""Most signatures of a cell that become notes; ``bisect-env show`` has all."""


def check_format(name: str) -> None:
    """Refuse a format that tabulate does not have.

    Raises:
        BadInput: with the formats that there are.
    """
    from tabulate import tabulate_formats

    if name not in tabulate_formats:
        raise BadInput("--format", "", f"{name!r} is not a table format", f"one of {', '.join(tabulate_formats)}")


def render(rows: Sequence[Row], axes: Sequence[str], fmt: str = "simple", width: int = 120) -> str:
    """The table as text.

    Args:
        rows: one a cell, in the order of the table.
        axes: names of the matrix's axes, in order.
        fmt: any format of tabulate's.
        width: columns of the terminal; only plain and simple tables are fitted to it.
    """
    rows = together(rows)
    if fmt not in NOTED:
        every = [*_axes(rows, axes), *_hardware(rows), *_figures(rows)]
        said = Column("notes", tuple("; ".join((*notes(row), *remarks(row))) for row in rows))
        return draw([*every[:-1], said, every[-1]], fmt)

    shown = varying(rows, axes)
    above = ", ".join(f"{axis} {level(rows[0], axis)}" for axis in axes if axis not in shown) if rows else ""
    shared = shared_remarks(rows)
    notes_of = [[*notes(row), *(note for note in remarks(row) if note not in shared)] for row in rows]
    numbers: dict[str, int] = {}
    for note in (note for notes in notes_of for note in notes):
        numbers.setdefault(note, len(numbers) + 1)
    marked = (_marked(row, [numbers[note] for note in notes]) for row, notes in zip(rows, notes_of, strict=True))
    brief = fmt in FITTED
    special = {
        VERDICT: Column(VERDICT, tuple(marked)),
        "failed": Column("failed", tuple(map(rate, rows))),
        "path": Column("path", tuple(path(row.verdict, brief=brief) for row in rows)),
    }
    shown_columns = [column if column.axis else special.get(column.header, column) for column in columns(rows, axes)]
    table, hidden = fitted(shown_columns, fmt, width, DROPPED)
    parts = [f"All cells: {above}"] if above else []
    if shared:
        text = f"All cells that were measured: {'; '.join(shared)}"
        parts.append(textwrap.fill(text, width) if brief else text)
    parts.append(table)
    if hidden:
        parts.append(textwrap.fill(f"Not shown at {width} columns: {', '.join(hidden)}.", width))
    if numbers:
        parts.append("\n".join(_note(number, note, fmt, width) for note, number in numbers.items()))
    return "\n\n".join(parts)


def columns(rows: Sequence[Row], axes: Sequence[str]) -> list[Column]:
    """The axes and the GPUs in which the cells differ, and all figures that a reader wants of them."""
    figures = [column for column in _figures(rows) if column.header not in REPEATED]
    return [*_axes(rows, varying(rows, axes)), *_hardware(rows), *figures]


def _axes(rows: Sequence[Row], axes: Sequence[str]) -> list[Column]:
    return [Column(axis, tuple(level(row, axis) for row in rows), axis=True) for axis in axes]


def _hardware(rows: Sequence[Row]) -> list[Column]:
    """GPU model and driver, each where several occur: figures of one are not those of another."""
    found = [measured_on(row) for row in rows]
    on_gpu = {each for each in found if each is not None and each.gpus}
    columns = []
    if len({each.models for each in on_gpu}) > 1:
        columns.append(Column("GPU", tuple("" if each is None else each.models for each in found), axis=True))
    if len({each.drivers for each in on_gpu}) > 1:
        columns.append(Column("driver", tuple("" if each is None else each.drivers for each in found), axis=True))
    return columns


def _figures(rows: Sequence[Row]) -> list[Column]:
    return [Column(header, tuple(map(text, rows))) for header, text in _FIGURES]


def _marked(row: Row, numbers: Sequence[int]) -> str:
    return f"{row.verdict.text} [{', '.join(map(str, numbers))}]" if numbers else row.verdict.text


def _note(number: int, note: str, fmt: str, width: int) -> str:
    if fmt not in FITTED:
        return f"{number}. {note}"
    head = f"{number:>2}  "
    return textwrap.fill(note, width, initial_indent=head, subsequent_indent=" " * len(head))


def shared_remarks(rows: Sequence[Row]) -> list[str]:
    """Remarks that are the same for all of several measured cells: said once, above the table."""
    measured = [remarks(row) for row in rows if row.verdict.threads is not None]
    return [note for note in measured[0] if all(note in each for each in measured)] if len(measured) > 1 else []


def notes(row: Row) -> list[str]:
    """What the verdict rests on."""
    verdict = row.verdict
    explained = verdict.headline in EXPLAINED and verdict.reason not in ("", NO_TRIAL)
    found = [cut(verdict.reason, NOTE_LENGTH)] if explained else []
    if verdict.headline is not Headline.IMPORT_FAILED:
        found += [cut(fault(item.signature), NOTE_LENGTH) for item in verdict.signatures[:SIGNATURES]]
    return found


def remarks(row: Row) -> list[str]:
    """How it came about."""
    verdict = row.verdict
    found = ["stopped early: certain at a look fixed beforehand"] if verdict.stopped_early else []
    if row.lock is not None and row.lock.base is not None:
        found.append(f"stands on {row.lock.base}: only what differs is installed, the rest is the base's")
    found += [cut(mark, NOTE_LENGTH) for mark in (*(row.lock.marks if row.lock else ()), *verdict.marks)]
    if verdict.infra:
        found.append(f"{verdict.infra} not counted: they say nothing about the cell (`show` tells why)")
    return found


def _failed(row: Row) -> str:
    return interval(row.verdict.threads)


def rate(row: Row) -> str:
    """As :func:`_failed`; the interval alone where the verdict beside it says how many of how many."""
    found = row.verdict.threads
    if found is None or f" {found.k}/{found.n}" not in row.verdict.text:
        return interval(found)
    return f"{100 * found.low:.0f}-{percent(found.high)}"


def _control(row: Row) -> str:
    serial, solo = row.verdict.serial, row.verdict.solo
    text = f"{serial.k}/{serial.n}" if serial else ""
    if solo is None or (serial is not None and (solo.k, solo.n) == (serial.k, serial.n)):
        return text
    return f"{text}, solo {solo.k}/{solo.n}".lstrip(", ")


def _utilisation(row: Row) -> str:
    share = dict(row.verdict.utilisation).get("attention")
    return "" if share is None else percent(share)


def _bound(row: Row) -> str:
    """Where nothing failed: of the others the interval says it."""
    threads, bound = row.verdict.threads, row.verdict.bound
    return below(bound) if threads is not None and threads.k == 0 else ""


def _signature(row: Row) -> str:
    return cut(row.verdict.signatures[0].signature.type, 28) if row.verdict.signatures else ""


def _whole(number: float | None) -> str:
    return "" if number is None else f"{number:.0f}"


_FIGURES: tuple[tuple[str, Callable[[Row], str]], ...] = (
    (VERDICT, lambda row: row.verdict.text),
    ("failed", _failed),
    ("control", _control),
    ("tok/s", lambda row: speed(row.verdict.throughput)),
    ("ratio", lambda row: ratio(row.verdict.throughput)),
    ("path", lambda row: path(row.verdict)),
    ("util", _utilisation),
    ("peak", lambda row: gigabytes(row.verdict.peak_bytes)),
    ("exposures", lambda row: _whole(row.verdict.exposures)),
    ("exposures/trial", lambda row: _whole(row.verdict.exposures_per_trial)),
    ("exposures/failure", lambda row: _whole(row.verdict.exposures_per_failure)),
    ("race rate", _bound),
    ("signature", _signature),
    ("id", lambda row: short_id(row.cell)),
)
