"""The time round a collision as text, in plain ASCII: a lane a thread, a row for each kind of window, a letter each."""

from __future__ import annotations

from collections.abc import Sequence

from bisect_env.explanation.records import Account, Collision
from bisect_env.report.explanation_lanes import (
    MEANING,
    Kind,
    Mark,
    Row,
    Sign,
    Span,
    around,
    instant,
    lanes,
)
from bisect_env.report.explanation_words import begin, lasting, moment, noun
from bisect_env.words import counted

LETTERS = {
    Kind.BACKWARD: "B",
    Kind.WAIT: "w",
    Kind.LOCK: "L",
    Kind.COMPILE: "C",
    Kind.COMPILING: "I",
    Kind.TRACE: "T",
    Kind.TRACING: "F",
    Kind.ANNOTATION: "A",
    Kind.PATCHER: "P",
    Kind.METRICS: "N",
    Kind.KERNEL: "K",
    Kind.UNFUSED: "U",
    Kind.LEFT: "M",
    Kind.OTHER: "S",
}
SIGNS = {Sign.FAILED: "X", Sign.EAGER: "E", Sign.HUNG: "H", Sign.OBEYED: "o", Sign.CALL: "c", Sign.READ: "r"}
"""Of two in one column the first is shown."""
NAME = 14
"""Most characters of a thread's name; of a longer one the end is kept, where its number stands."""
KIND = max(map(len, Kind))
MOST = 8
"""Lanes."""
LEAST = 20
"""Columns of time, however narrow the terminal is."""


def draw(account: Account, collision: Collision, width: int) -> tuple[str, str]:
    """The picture, and a paragraph that says what its letters mean.

    Args:
        account: the trial.
        collision: what the picture is about.
        width: characters a line; with fewer than some 50 it becomes wider than that.
    """
    span = around(account, collision)
    every = lanes(account, span, collision)
    chosen = every[:MOST]
    names = {lane.thread: _name(lane.thread) for lane in chosen}
    left = max(map(len, names.values()), default=0) + KIND + 2
    columns = _Columns(span, max(LEAST, width - left), collision)
    rows: list[tuple[str, str, str]] = []
    for lane in chosen:
        drawn = [(str(row.kind), _bars(row, columns)) for row in lane.rows]
        drawn += [("", _marks(lane.marks, columns))] if lane.marks else []
        titles = [names[lane.thread]] + [""] * len(drawn)
        rows += [(title, kind, cells) for title, (kind, cells) in zip(titles, drawn, strict=False)]
    lines = [f"{title.ljust(left - KIND - 2)} {kind.ljust(KIND)} {cells}".rstrip() for title, kind, cells in rows]
    picture = "\n".join([" " * left + columns.ruler(), " " * left + columns.pointer(), *lines])
    met = "They met" if collision.culprit else "It happened"
    at = moment(instant(collision) - begin(account))
    more = counted(len(every) - len(chosen), "further thread")
    rest = f" {more} did something in this time." if len(every) > len(chosen) else ""
    return picture, f"{_legend({kind for _, kind, _ in rows}, rows)}. {met} {at} after the start.{rest}"


def _legend(kinds: set[str], rows: Sequence[tuple[str, str, str]]) -> str:
    """What stands in those rows."""
    marks = "".join(cells for _, kind, cells in rows if not kind)
    bars = "".join(cells for _, kind, cells in rows if kind)
    told = [f"{LETTERS[kind]} {MEANING[kind]}" for kind in Kind if kind in kinds]
    told += [f"{letter} {sign}" for sign, letter in SIGNS.items() if letter in marks]
    told += ["# the window that was open when they met"] if "#" in bars else []
    return "; ".join([*told, *(["< or > at an edge: it goes on"] if "<" in bars or ">" in bars else [])])


class _Columns:
    """Moments to columns."""

    def __init__(self, span: Span, count: int, collision: Collision) -> None:
        self.span, self.count, self.name = span, count, noun(collision)
        self.instant = instant(collision)
        self.at = self.of(self.instant)

    def of(self, t: float) -> int:
        """The column of a moment; before and after the picture, its first and its last."""
        share = (t - self.span.start) / (self.span.end - self.span.start)
        return min(self.count - 1, max(0, int(share * self.count)))

    def blank(self) -> list[str]:
        """A row in which nothing happens."""
        return ["|" if column == self.at else " " for column in range(self.count)]

    def ruler(self) -> str:
        """How far its ends are from the collision."""
        before, after = f"-{lasting(self.instant - self.span.start)}", f"+{lasting(self.span.end - self.instant)}"
        return before + after.rjust(max(len(after) + 1, self.count - len(before)))

    def pointer(self) -> str:
        """The collision's name, beside its column."""
        if self.at > len(self.name):
            return f"{self.name} v".rjust(self.at + 1)
        return f"{' ' * self.at}v {self.name}"


def _bars(row: Row, columns: _Columns) -> str:
    cells = columns.blank()
    span = columns.span
    for bar in sorted(row.bars, key=lambda bar: bar.culprit):
        first, last = columns.of(bar.start), columns.of(span.end if bar.end is None else bar.end)
        cells[first : last + 1] = LETTERS[row.kind] * (last + 1 - first)
        if bar.start < span.start:
            cells[0] = "<"
        if bar.end is None or bar.end > span.end:
            cells[-1] = ">"
        if bar.culprit and first <= columns.at <= last:
            cells[columns.at] = "#"
    return "".join(cells)


def _marks(marks: Sequence[Mark], columns: _Columns) -> str:
    cells = columns.blank()
    order = list(SIGNS)
    for mark in sorted(marks, key=lambda mark: (mark.hit, -order.index(mark.sign))):
        cells[columns.of(mark.t)] = SIGNS[mark.sign]
    return "".join(cells)


def _name(thread: str) -> str:
    shown = thread.encode("ascii", "replace").decode()
    return shown if len(shown) <= NAME else ".." + shown[-NAME + 2 :]
