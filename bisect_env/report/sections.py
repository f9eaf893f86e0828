"""The whole report as text: the table, below it what mitigations and compile caches do, and the last sentence."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import TypeVar

from bisect_env.matrix.cells import Matrix
from bisect_env.report import summary, table
from bisect_env.report.caches import KEY as CACHE
from bisect_env.report.caches import Cached, caches
from bisect_env.report.grid import FITTED, NOTED, Column, fitted
from bisect_env.report.mitigations import KEY as MITIGATION
from bisect_env.report.mitigations import NONE, Effect, Mitigated, failures, mitigations
from bisect_env.report.origin import Origin, described
from bisect_env.report.rows import Row, below, interval, is_dense, level, path, ratio, short_id, speed
from bisect_env.verdicts.records import Headline

DROPPED = ("path", "hits/misses", "control", "bound", "ratio", "tok/s")
"""Columns of the sections that may go, the least needed first."""
ABOUT_MITIGATIONS = (
    "cleared: none of the planned trials failed, and without the mitigation significantly more do (Fisher's exact "
    "test, one-sided, 95 %, each mitigation by itself). bound: of the rate of failures, 95 %. ratio: to the tokens/s "
    "without a mitigation."
)
ABOUT_CACHES = "hits/misses: of the compile cache in a threaded trial, medians."

Item = TypeVar("Item")


def report(
    rows: Sequence[Row],
    matrix: Matrix,
    max_race_rate: float,
    fmt: str = "simple",
    width: int = 120,
    origin: Origin | None = None,
) -> str:
    """Everything that is printed of a run; ``fmt`` and ``width`` as for :func:`bisect_env.report.table.render`.

    With an ``origin`` that is said above the table. It and the sections below the table are left out of formats that
    programs read: the JSON document has them.
    """
    parts = [table.render(rows, matrix.axes, fmt, width)]
    if fmt in NOTED:
        parts.insert(0, "" if origin is None else _origin(origin, matrix.reproducer.name, fmt, width))
        parts += [_mitigations(rows, matrix, fmt, width), _caches(rows, matrix, fmt, width)]
    parts.append(summary.sentence(rows, max_race_rate))
    return "\n\n".join(part for part in parts if part)


def _origin(found: Origin, reproducer: str, fmt: str, width: int) -> str:
    facts = described(found, reproducer)
    if fmt not in FITTED:
        return "\n".join(f"- {name}: {text}" for name, text in facts)
    indent = max(len(name) for name, _ in facts) + 2
    return "\n".join(
        textwrap.fill(text, width, initial_indent=name.ljust(indent), subsequent_indent=" " * indent)
        for name, text in facts
    )


def _mitigations(rows: Sequence[Row], matrix: Matrix, fmt: str, width: int) -> str:
    columns = mitigation_columns(rows, matrix, fmt not in FITTED)
    return _section("Mitigations", columns, ABOUT_MITIGATIONS, fmt, width) if columns else ""


def mitigation_columns(rows: Sequence[Row], matrix: Matrix, wide: bool) -> list[Column]:
    """Each cell without a mitigation, and below it its twins with one; nothing where there are none.

    Args:
        rows: of the table.
        matrix: says how many trials were planned.
        wide: room for the intervals of the ratios.
    """
    lines: list[tuple[Row, Mitigated | None]] = []
    for none, twins in mitigations(rows, matrix.trials):
        lines += [(none, None), *((twin.row, twin) for twin in twins)]
    if not lines:
        return []
    return [
        *_axes([row for row, _ in lines], matrix.axes, MITIGATION),
        _column(MITIGATION, lines, lambda line: line[1].mitigation if line[1] else NONE),
        _column("result", lines, lambda line: result(line[1]) if line[1] else line[0].verdict.headline.value),
        _column("failed", lines, lambda line: interval(line[1].failed if line[1] else failures(line[0]))),
        _column("bound", lines, lambda line: _bound(line[1])),
        _column("tok/s", lines, lambda line: speed(line[1].throughput if line[1] else line[0].verdict.throughput)),
        _column("ratio", lines, lambda line: ratio(line[1].throughput, wide) if line[1] else ""),
        _column("path", lines, lambda line: path(line[0].verdict, share=True)),
        _column("id", lines, lambda line: short_id(line[0].cell)),
    ]


def result(found: Mitigated) -> str:
    """A mitigation's effect with what must be said beside it."""
    text = _effect(found)
    if not is_dense(found.row.verdict):
        return text
    # A mitigation that hides the error in unfused attention must not look like a cure.
    return f"{text}, but dense" if found.effect is Effect.CLEARED else f"{text}, dense"


def _bound(found: Mitigated | None) -> str:
    """Where nothing failed: of the others the interval says it."""
    return below(found.bound) if found is not None and found.failed is not None and found.failed.k == 0 else ""


def _effect(found: Mitigated) -> str:
    headline = found.row.verdict.headline
    if found.effect is Effect.NOT_CLEARED and found.failed is not None and found.failed.k == 0:
        return f"{found.effect} ({headline})"
    if found.effect is Effect.UNSURE and found.missing:
        return f"{found.effect} ({found.missing} trials to come)"
    if found.effect is Effect.UNSURE and found.p_value is not None and headline is not Headline.UNSURE:
        return f"{found.effect} (p = {found.p_value:.2g})"
    return found.effect.value


def _caches(rows: Sequence[Row], matrix: Matrix, fmt: str, width: int) -> str:
    columns = cache_columns(rows, matrix)
    return _section("Compile caches", columns, ABOUT_CACHES, fmt, width) if columns else ""


def cache_columns(rows: Sequence[Row], matrix: Matrix) -> list[Column]:
    """The cells that the matrix has under several states of the compile cache; nothing where there are none."""
    lines = [item for group in caches(rows) for item in group]
    if not lines:
        return []
    return [
        *_axes([item.row for item in lines], matrix.axes, CACHE),
        _column(CACHE, lines, lambda item: item.cache),
        _column("verdict", lines, lambda item: item.row.verdict.text),
        _column("failed", lines, lambda item: interval(failures(item.row))),
        _column("control", lines, lambda item: interval(item.row.verdict.serial)),
        _column("hits/misses", lines, _hits),
        _column("tok/s", lines, lambda item: speed(item.row.verdict.throughput)),
        _column("path", lines, lambda item: path(item.row.verdict, share=True)),
        _column("id", lines, lambda item: short_id(item.row.cell)),
    ]


def _hits(item: Cached) -> str:
    if item.hits is None and item.misses is None:
        return ""
    return "/".join("-" if count is None else f"{count:g}" for count in (item.hits, item.misses))


def _axes(rows: Sequence[Row], axes: Sequence[str], key: str) -> list[Column]:
    """The axes in which the rows of a section differ, its own key left out."""
    columns = [Column(axis, tuple(level(row, axis) for row in rows), axis=True) for axis in axes if axis != key]
    return [column for column in columns if len(set(column.texts)) > 1]


def _column(header: str, items: Sequence[Item], text: Callable[[Item], str]) -> Column:
    return Column(header, tuple(map(text, items)))


def _section(title: str, columns: Sequence[Column], about: str, fmt: str, width: int) -> str:
    drawn, hidden = fitted(columns, fmt, width, DROPPED)
    if hidden:
        about += f" Not shown at {width} columns: {', '.join(hidden)}."
    if fmt in FITTED:
        return f"{title}\n\n{drawn}\n\n{textwrap.fill(about, width, break_on_hyphens=False)}"
    return f"**{title}**\n\n{drawn}\n\n{about}"
