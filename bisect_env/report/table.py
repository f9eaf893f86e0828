"""The table: a line a cell, what is the same in all cells above it, notes below it."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from bisect_env.errors import BadInput
from bisect_env.report.rows import Row, cut, fault, interval, level, short_id, tokens, varying
from bisect_env.verdicts.records import Headline, percent

NOTED = ("plain", "simple", "github", "pipe")
"""Formats read as they stand: columns that are empty or alike are left out, and notes are numbered below. The others
are read by programs or typeset: every column is there, and the notes stand in theirs."""
FITTED = ("plain", "simple")
"""Formats for a terminal, whose columns are dropped, least needed first, until the table fits."""
DROPPED = ("signature", "dense", "race rate", "control", "ratio", "tok/s")
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
NOTE_LENGTH = 400
SIGNATURES = 3
"""Most signatures of a cell that become notes; ``bisect-env show`` has all."""


@dataclass(frozen=True)
class _Column:
    header: str
    value: Callable[[Row], str]


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
    from tabulate import tabulate

    columns = [_Column(axis, partial(_level, axis)) for axis in axes] + _FIGURES
    if fmt not in NOTED:
        columns.insert(-1, _Column("notes", lambda row: "; ".join(_notes(row))))
        body = [[column.value(row) for column in columns] for row in rows]
        return tabulate(body, [column.header for column in columns], tablefmt=fmt, disable_numparse=True)

    shown = varying(rows, axes)
    above = ", ".join(f"{axis} {level(rows[0], axis)}" for axis in axes if axis not in shown) if rows else ""
    numbers: dict[str, int] = {}
    for row in rows:
        for note in _notes(row):
            numbers.setdefault(note, len(numbers) + 1)

    def verdict(row: Row) -> str:
        marks = ", ".join(str(numbers[note]) for note in _notes(row))
        return f"{row.verdict.text} [{marks}]" if marks else row.verdict.text

    columns = [
        replace(column, value=verdict) if column.header == VERDICT else column
        for column in columns
        if column.header not in set(axes) - set(shown) and any(column.value(row) for row in rows)
    ]

    def draw() -> str:
        body = [[column.value(row) for column in columns] for row in rows]
        return tabulate(body, [column.header for column in columns], tablefmt=fmt, disable_numparse=True)

    table, hidden = draw(), []
    for header in DROPPED if fmt in FITTED else ():
        if max(map(len, table.splitlines()), default=0) <= width:
            break
        kept = [column for column in columns if column.header != header]
        if len(kept) < len(columns):
            columns = kept
            hidden.append(header)
            table = draw()
    parts = [f"All cells: {above}"] if above else []
    parts.append(table)
    if hidden:
        parts.append(f"Not shown at {width} columns: {', '.join(hidden)}.")
    if numbers:
        parts.append("\n".join(_note(number, note, fmt, width) for note, number in numbers.items()))
    return "\n\n".join(parts)


def _note(number: int, note: str, fmt: str, width: int) -> str:
    if fmt not in FITTED:
        return f"{number}. {note}"
    head = f"{number:>2}  "
    return textwrap.fill(note, width, initial_indent=head, subsequent_indent=" " * len(head))


def _notes(row: Row) -> list[str]:
    verdict = row.verdict
    notes = [cut(verdict.reason, NOTE_LENGTH)] if verdict.headline in EXPLAINED and verdict.reason else []
    if verdict.headline is not Headline.IMPORT_FAILED:
        notes += [cut(fault(item.signature), NOTE_LENGTH) for item in verdict.signatures[:SIGNATURES]]
    if verdict.stopped_early:
        notes.append("stopped early: certain at a look fixed beforehand")
    if row.lock is not None and row.lock.base is not None:
        notes.append(f"stands on {row.lock.base}: only what differs is installed, the rest is the base's")
    notes += [cut(mark, NOTE_LENGTH) for mark in (*(row.lock.marks if row.lock else ()), *verdict.marks)]
    if verdict.infra:
        notes.append(f"{verdict.infra} not counted: they say nothing about the cell (`show` tells why)")
    return notes


def _level(axis: str, row: Row) -> str:
    return level(row, axis)


def _failed(row: Row) -> str:
    return interval(row.verdict.threads)


def _control(row: Row) -> str:
    serial, solo = row.verdict.serial, row.verdict.solo
    text = f"{serial.k}/{serial.n}" if serial else ""
    if solo is None or (serial is not None and (solo.k, solo.n) == (serial.k, serial.n)):
        return text
    return f"{text}, solo {solo.k}/{solo.n}".lstrip(", ")


def _tokens(row: Row) -> str:
    return tokens(row.verdict.throughput.median) if row.verdict.throughput else ""


def _ratio(row: Row) -> str:
    speed = row.verdict.throughput
    return f"{speed.ratio:.2f}" if speed is not None and speed.ratio is not None else ""


def _dense(row: Row) -> str:
    return percent(max(item.share for item in row.verdict.dense)) if row.verdict.dense else ""


def _bound(row: Row) -> str:
    """Where nothing failed: of the others the interval says it."""
    threads, bound = row.verdict.threads, row.verdict.bound
    return f"<{percent(bound)}" if bound is not None and threads is not None and threads.k == 0 else ""


def _signature(row: Row) -> str:
    return cut(row.verdict.signatures[0].signature.type, 28) if row.verdict.signatures else ""


_FIGURES = [
    _Column(VERDICT, lambda row: row.verdict.text),
    _Column("failed", _failed),
    _Column("control", _control),
    _Column("tok/s", _tokens),
    _Column("ratio", _ratio),
    _Column("dense", _dense),
    _Column("race rate", _bound),
    _Column("signature", _signature),
    _Column("id", lambda row: short_id(row.cell)),
]
