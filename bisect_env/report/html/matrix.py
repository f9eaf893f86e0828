"""The HTML report of a matrix: the coloured grid, throughput as distributions, every cell's evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

from bisect_env.matrix.cells import Matrix
from bisect_env.report import evidence, summary, table
from bisect_env.report.grid import Column
from bisect_env.report.html import cells, layout, paper, strips, tones
from bisect_env.report.html.cells import Shown
from bisect_env.report.html.layout import Levels
from bisect_env.report.html.strips import Chart, Measured
from bisect_env.report.origin import Origin, described
from bisect_env.report.pieces import Facts, Grid, Section, Words
from bisect_env.report.rows import Row, label, level, measured_on, short_id, together, varying
from bisect_env.report.sections import ABOUT_CACHES, ABOUT_MITIGATIONS, cache_columns, mitigation_columns
from bisect_env.verdicts.hardware import Hardware, told
from bisect_env.verdicts.records import Headline
from bisect_env.verdicts.samples import by_side
from bisect_env.verdicts.throughput import rates
from bisect_env.words import counted


class Count(NamedTuple):
    """How many cells have a headline."""

    headline: str
    tone: tones.Tone
    sign: str
    number: int


class Placed(NamedTuple):
    """A grid with the cells as they are shown."""

    title: Levels
    rows: tuple[str, ...]
    column: str
    across: Levels
    lines: tuple[tuple[Levels, tuple[tuple[Shown, ...], ...]], ...]


def page(rows: Sequence[Row], matrix: Matrix, max_race_rate: float, origin: Origin | None = None) -> str:
    """The report as one HTML document.

    Args:
        rows: one a cell, in the order of the table.
        matrix: that they are of.
        max_race_rate: the highest rate of failures at which a cell is recommended.
        origin: where and when the trials were measured; None where that is not told.
    """
    axes = varying(rows, matrix.axes)
    shown = {row.cell.key: cells.shown(row, axes) for row in rows}
    common = [(axis, level(rows[0], axis)) for axis in matrix.axes if axis not in axes] if rows else []
    facts = [("all cells", ", ".join(f"{axis} {found}" for axis, found in common))] if common else []
    facts += described(origin, matrix.reproducer.name) if origin is not None else []
    return paper.write(
        "matrix.html",
        title=f"{matrix.name}: {counted(len(rows), 'cell')}",
        sentences=summary.sentences(rows, max_race_rate),
        counts=_counts(rows),
        facts=Facts(tuple(facts)),
        shared=table.shared_remarks(rows),
        grids=[_placed(grid, shown) for grid in layout.grids(rows, matrix.axes)],
        charts=charts(rows, matrix, axes),
        sections=_below(rows, matrix),
        cells=[shown[row.cell.key] for row in rows],
    )


def charts(rows: Sequence[Row], matrix: Matrix, axes: Sequence[str]) -> list[Chart]:
    """Throughput, a chart for each reference cell with what is compared with it; the rest in one of their own.

    What was measured on another GPU model or driver is in another chart.
    """
    groups: dict[tuple[str, Hardware | None], list[Row]] = {}
    for row in rows:
        if row.verdict.throughput is not None:
            reference = matrix.reference_of(row.cell)
            place = (reference.key if reference is not None else "", measured_on(row))
            groups.setdefault(place, []).append(row)
    kinds = {found for _, found in groups if found is not None}
    titles = {row.cell.key: f"Compared with {label(row, axes)}" for row in rows}
    alone = "Without a reference cell: nothing is compared" if matrix.reference else ""
    return [
        strips.chart(
            _titled(titles.get(key, alone), found, kinds), [_measured(row, axes, row.cell.key == key) for row in group]
        )
        for (key, found), group in groups.items()
    ]


def _titled(title: str, found: Hardware | None, kinds: Collection[Hardware]) -> str:
    """A chart's title, with the GPUs where cells have different ones."""
    if found is None or len(kinds) < 2:
        return title
    return f"{title}, on {told(found, kinds)}" if title else f"On {told(found, kinds)}"


def _measured(row: Row, axes: Sequence[str], is_reference: bool) -> Measured:
    found = row.verdict.throughput
    assert found is not None
    words = dict(evidence.figures(row))
    text = ", ratio ".join(words[name] for name in ("tokens/s", "ratio") if name in words)
    return Measured(short_id(row.cell), label(row, axes), rates(by_side(row.samples)), found, text, is_reference)


def _counts(rows: Sequence[Row]) -> list[Count]:
    """In the order of the headlines."""
    numbers = Counter(row.verdict.headline for row in rows)
    present = [headline for headline in Headline if numbers[headline]]
    tone = {headline: tones.of(headline) for headline in present}
    return [Count(each.value, tone[each], tones.sign(tone[each]), numbers[each]) for each in present]


def _placed(grid: layout.Grid, shown: dict[str, Shown]) -> Placed:
    lines = tuple(
        (levels, tuple(tuple(shown[row.cell.key] for row in place) for place in places))
        for levels, places in grid.lines
    )
    return Placed(grid.title, grid.rows, grid.column, grid.across, lines)


def _below(rows: Sequence[Row], matrix: Matrix) -> list[Section]:
    """What the text report has below its table, and the table itself."""
    parts: list[tuple[str, Sequence[Column], str]] = [
        ("Mitigations", mitigation_columns(rows, matrix, wide=True), ABOUT_MITIGATIONS),
        ("Compile caches", cache_columns(rows, matrix), ABOUT_CACHES),
        ("All figures", table.columns(together(rows), matrix.axes) if rows else [], ""),
    ]
    return [
        Section(title, (Grid(tuple(columns)), *([Words(about)] if about else [])))
        for title, columns, about in parts
        if columns
    ]
