"""A drawing's bars and marks where there are more than can be told apart: those that lie close together become one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from bisect_env.report.explanation_lanes import Bar, Lane, Mark, Sign

THIN = 0.25
"""Percent of the width: a bar is drawn at least as wide, and short bars of a row that lie closer become one."""
MOST = 600
"""Bars and marks of one drawing: where there are more, more of them become one."""


def merged(drawn: Sequence[Lane], length: float) -> tuple[list[Lane], float]:
    """The lanes with few enough bars and marks: what lies closer together than some time becomes one, and that time."""
    apart = THIN / 100 * length
    while True:
        fewer = [
            replace(
                lane,
                rows=tuple(replace(row, bars=tuple(_joined(row.bars, apart))) for row in lane.rows),
                marks=tuple(_gathered(lane.marks, apart)),
            )
            for lane in drawn
        ]
        if apart > length or sum(len(lane.marks) + sum(len(row.bars) for row in lane.rows) for lane in fewer) <= MOST:
            return fewer, apart
        apart *= 2


def _joined(bars: Iterable[Bar], apart: float) -> list[Bar]:
    """Short bars that follow each other closely as one; never the window of the collision."""
    found: list[Bar] = []
    for bar in sorted(bars, key=lambda bar: bar.start):
        last = found[-1] if found else bar
        close = last is not bar and _short(last, apart) and _short(bar, apart)
        if close and last.end is not None and bar.end is not None and bar.start - last.end <= apart:
            found[-1] = replace(last, end=max(last.end, bar.end), count=last.count + bar.count)
        else:
            found.append(bar)
    return found


def _short(bar: Bar, apart: float) -> bool:
    """Whether it may become one with others: a long one stands for itself."""
    return not bar.culprit and (bar.count > 1 or (bar.end is not None and bar.end - bar.start < apart))


def _gathered(marks: Iterable[Mark], apart: float) -> list[Mark]:
    """Marks of one sign that follow each other closely as one; never those of the collision."""
    found: list[Mark] = []
    last: dict[Sign, int] = {}
    for mark in marks:
        before = None if mark.hit else last.get(mark.sign)
        if before is not None and mark.t - found[before].t < apart:
            text = mark.text if mark.text == found[before].text else "several states"
            found[before] = replace(found[before], count=found[before].count + mark.count, text=text)
            continue
        if not mark.hit:
            last[mark.sign] = len(found)
        found.append(mark)
    return found
