"""The time round a collision as text, in plain ASCII: a lane a thread, a row for each kind of window, a letter each."""

from __future__ import annotations

from collections.abc import Sequence

from bisect_env.explanation.records import Account, Collision
from bisect_env.report.explanation_lanes import (
    MEANING,
    Kind,
    Lane,
    Mark,
    Row,
    Sign,
    Span,
    around,
    instant,
    lanes,
    met_by,
)
from bisect_env.report.explanation_words import begin, lasting, moment

LETTERS = {
    Kind.BACKWARD: "B",
    Kind.WAIT: "w",
    Kind.LOCK: "L",
    Kind.COMPILE: "C",
    Kind.COMPILING: "I",
    Kind.TRACE: "T",
    Kind.TRACING: "F",
    Kind.ANNOTATION: "A",
    Kind.KERNEL: "K",
    Kind.UNFUSED: "U",
    Kind.OTHER: "S",
}
SIGNS = {Sign.FAILED: "X", Sign.EAGER: "E", Sign.HUNG: "H", Sign.OBEYED: "o", Sign.CALL: "c", Sign.READ: "r"}
"""Of two in one column the first is shown."""
NAME = 14
"""Most characters of a thread's name; of a longer one the end is kept, where its number stands."""
KIND = max(map(len, Kind))
MOST = 8
"""Lanes: the collision's own and those that follow in the trial's order."""
LEAST = 20
"""Columns of time, however narrow the terminal is."""


def draw(account: Account, collision: Collision, width: int) -> str:
    """The picture; :func:`legend` says what it means.

    Args:
        account: the trial.
        collision: what the picture is about.
        width: characters a line; with fewer than some 50 it becomes wider than that.
    """
    span = around(account, collision)
    every = lanes(account, span, collision)
    chosen = _chosen(every, collision)
    names = {lane.thread: _name(lane.thread) for lane in chosen}
    left = max(map(len, names.values()), default=0) + KIND + 2
    columns = _Columns(span, max(LEAST, width - left), instant(collision))
    lines = [" " * left + columns.ruler(), " " * left + columns.pointer()]
    for lane in chosen:
        titles = [names[lane.thread]] + [""] * len(lane.rows)
        kinds: list[str] = [*([row.kind for row in lane.rows]), ""]
        drawn = [*(_bars(row, columns) for row in lane.rows), _marks(lane.marks, columns)]
        if not lane.marks:
            kinds, drawn = kinds[:-1], drawn[:-1]
        for title, kind, cells in zip(titles, kinds, drawn, strict=False):
            lines.append(f"{title.ljust(left - KIND - 2)} {kind.ljust(KIND)} {''.join(cells)}".rstrip())
    return "\n".join(lines)


def legend(account: Account, collision: Collision) -> str:
    """What letters and signs of that picture mean, in sentences to be wrapped."""
    span = around(account, collision)
    every = lanes(account, span, collision)
    chosen = _chosen(every, collision)
    kinds = dict.fromkeys(row.kind for kind in Kind for lane in chosen for row in lane.rows if row.kind is kind)
    signs = dict.fromkeys(mark.sign for sign in SIGNS for lane in chosen for mark in lane.marks if mark.sign is sign)
    bars = [bar for lane in chosen for row in lane.rows for bar in row.bars]
    told = [*(f"{LETTERS[kind]} {MEANING[kind]}" for kind in kinds), *(f"{SIGNS[sign]} {sign}" for sign in signs)]
    if any(bar.culprit for bar in bars):
        told.append("# the window that was open when they met")
    if any(bar.start < span.start or bar.end is None or bar.end > span.end for bar in bars):
        told.append("< > goes on")
    more = len(every) - len(chosen)
    rest = f" {more} further thread{'s' if more > 1 else ''} did something in this time." if more else ""
    at = moment(instant(collision) - begin(account))
    return f"{'; '.join(told)}. They met {at} after the first event.{rest}"


class _Columns:
    """Moments to columns."""

    def __init__(self, span: Span, count: int, instant: float) -> None:
        self.span, self.count, self.instant = span, count, instant
        self.at = self.of(instant)

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
        if self.at >= len("collision "):
            return "collision v".rjust(self.at + 1)
        return " " * self.at + "v collision"


def _bars(row: Row, columns: _Columns) -> list[str]:
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
    return cells


def _marks(marks: Sequence[Mark], columns: _Columns) -> list[str]:
    cells = columns.blank()
    order = list(SIGNS)
    for mark in sorted(marks, key=lambda mark: (mark.hit, -order.index(mark.sign))):
        cells[columns.of(mark.t)] = SIGNS[mark.sign]
    return cells


def _chosen(every: Sequence[Lane], collision: Collision) -> tuple[Lane, ...]:
    own = [lane for lane in every if lane.thread in (collision.culprit, met_by(collision), collision.victim)]
    rest = [lane for lane in every if lane not in own]
    kept = [*own, *rest[: MOST - len(own)]]
    return tuple(lane for lane in every if lane in kept)


def _name(thread: str) -> str:
    shown = thread.encode("ascii", "replace").decode()
    return shown if len(shown) <= NAME else ".." + shown[-NAME + 2 :]
