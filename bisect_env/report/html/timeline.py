"""A witnessed trial as a drawing: lanes of threads over time, the collision a line from one thread to the other.

Places along it are percentages of its width, so that it follows the page's width and its text stays readable; places
down it are pixels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, log10

from bisect_env.explanation.records import Account, Collision
from bisect_env.report.explanation_lanes import (
    MEANING,
    Bar,
    Kind,
    Lane,
    Sign,
    Span,
    around,
    instant,
    lanes,
    met_by,
    whole,
)
from bisect_env.report.explanation_words import begin, lasting, moment, noun
from bisect_env.report.grid import Column
from bisect_env.report.html.crowding import THIN, merged
from bisect_env.report.pieces import Grid
from bisect_env.words import counted

TOP = 22.0
"""Pixels above the first lane: the collision's name stands there."""
TITLE, ROW, GAP, MARKS = 20.0, 16.0, 10.0, 18.0
"""Pixels of a thread's name, a row of bars, the space between lanes, and a row of marks."""
BAR = 12.0
"""Pixels of a bar, of its row."""
BESIDE = 2.0
"""Percent of the width within which a mark is at the collision."""
BOTTOM = 26.0
"""Pixels below the last lane, for the scale."""
LANES = 12
"""Threads of one drawing."""
ROWS = 60
"""Of the table that says the same."""
TICKS = 6


@dataclass(frozen=True)
class Box:
    """A bar as it is drawn."""

    kind: Kind
    x: float
    width: float
    y: float
    culprit: bool
    several: bool
    """It stands for more than one."""
    text: str


@dataclass(frozen=True)
class Pin:
    """A mark as it is drawn."""

    sign: Sign
    x: float
    y: float
    hit: bool
    text: str


@dataclass(frozen=True)
class Band:
    """A thread: its name, and its rows' short names with their places."""

    name: str
    y: float
    rows: tuple[tuple[str, float], ...]
    boxes: tuple[Box, ...]
    pins: tuple[Pin, ...]


@dataclass(frozen=True)
class Picture:
    """One drawing."""

    id: str
    title: str
    bands: tuple[Band, ...]
    height: float
    ticks: tuple[tuple[float, str], ...]
    """Percent along it, and its moment."""
    at: float | None
    """Percent along it of the collision."""
    name: str
    """Of the collision: what to call it."""
    joint: tuple[float, float] | None
    """Pixels down it of the culprit's window and of the victim's mark."""
    part: tuple[float, float] | None
    """Percent along it, and the width, of what another drawing shows larger."""
    kinds: tuple[Kind, ...]
    signs: tuple[Sign, ...]
    text: str
    """The drawing in a sentence."""
    left_out: str
    figures: Grid
    """The same as a table."""


def near(account: Account, collision: Collision, name: str) -> Picture:
    """The time round a collision; moments count from it. ``name`` tells drawings of one page apart."""
    span = around(account, collision)
    when = moment(instant(collision) - begin(account))
    text = f"{lasting(span.end - span.start)} round the {noun(collision)}, {when} after the start"
    return _picture(account, collision, span, instant(collision), f"near-{name}", text, None)


def entire(account: Account, collision: Collision | None, name: str) -> Picture:
    """The whole trial; moments count from the witness's start. What :func:`near` shows is framed."""
    span = whole(account)
    part = around(account, collision) if collision is not None else None
    text = f"All that the witness saw, {lasting(span.end - span.start)}"
    return _picture(account, collision, span, begin(account), f"whole-{name}", text, part)


def legend(pictures: Sequence[Picture]) -> tuple[tuple[tuple[Kind, str], ...], tuple[Sign, ...]]:
    """Bars of those drawings with what they mean, and their marks."""
    kinds = [kind for kind in Kind if any(kind in picture.kinds for picture in pictures)]
    signs = [sign for sign in Sign if any(sign in picture.signs for picture in pictures)]
    return tuple((kind, MEANING[kind]) for kind in kinds), tuple(signs)


def _picture(
    account: Account, collision: Collision | None, span: Span, zero: float, name: str, text: str, part: Span | None
) -> Picture:
    scale = _Scale(span)
    every = lanes(account, span, collision)
    kept = every[:LANES]
    drawn, apart = merged(kept, scale.length)
    bands, y = [], TOP
    for lane in drawn:
        band, y = _band(lane, y, scale, zero)
        bands.append(band)
    said = (
        [f"{counted(len(every) - len(kept), 'further thread')} did something in this time."]
        if every[len(kept) :]
        else []
    )
    if any(bar.count > 1 for lane in drawn for row in lane.rows for bar in row.bars):
        said.append(f"Fainter bars stand for several that lie closer together than {lasting(apart)}.")
    if any(mark.count > 1 and not mark.hit for lane in drawn for mark in lane.marks):
        said.append(f"A mark may stand for several within {lasting(apart)}.")
    at = scale.place(instant(collision)) if collision is not None else None
    joint = _joint(bands, met_by(collision), at) if collision is not None and at is not None else None
    shown = [lane.thread for lane in drawn]
    bars = counted(sum(len(band.boxes) for band in bands), "bar")
    about = f"{text}: {counted(len(bands), 'thread')} ({', '.join(shown)}), {bars}"
    frame = None if part is None else _frame(part, scale)
    kinds = [kind for kind in Kind if any(row.kind is kind for lane in drawn for row in lane.rows)]
    signs = [sign for sign in Sign if any(mark.sign is sign for lane in drawn for mark in lane.marks)]
    return Picture(
        name,
        text,
        tuple(bands),
        y + BOTTOM,
        tuple((scale.place(t), label) for t, label in _ticks(span, zero)),
        at,
        noun(collision) if collision is not None else "",
        joint,
        frame,
        tuple(kinds),
        tuple(signs),
        about + ".",
        " ".join(said),
        _figures(drawn, zero),
    )


class _Scale:
    """Moments to percent of the width."""

    def __init__(self, span: Span) -> None:
        self.span = span
        self.length = span.end - span.start

    def place(self, t: float) -> float:
        """Cut to what is drawn."""
        return round(min(100.0, max(0.0, 100 * (t - self.span.start) / self.length)), 3)


def _frame(part: Span, scale: _Scale) -> tuple[float, float]:
    low, high = scale.place(part.start), scale.place(part.end)
    return low, round(max(high - low, 2 * THIN), 3)


def _band(lane: Lane, y: float, scale: _Scale, zero: float) -> tuple[Band, float]:
    top, rows, boxes, pins = y, [], [], []
    y += TITLE
    for row in lane.rows:
        rows.append((row.kind.value, y))
        for bar in row.bars:
            low = scale.place(bar.start)
            high = scale.place(scale.span.end if bar.end is None else bar.end)
            low = min(low, 100 - THIN)
            text = f"{lane.thread} {MEANING[row.kind]}: {_lasted(bar, zero)}"
            boxes.append(Box(row.kind, low, round(max(high - low, THIN), 3), y, bar.culprit, bar.count > 1, text))
        y += ROW
    if lane.marks:
        for mark in lane.marks:
            times = f", {mark.count} times" if mark.count > 1 else ""
            text = f"{lane.thread}, {mark.sign} ({mark.text}){times}: {_signed(mark.t - zero)}"
            pins.append(Pin(mark.sign, scale.place(mark.t), y + MARKS / 2, mark.hit, text))
        y += MARKS
    # What must not be covered is drawn last.
    pins.sort(key=lambda pin: (pin.hit, -list(Sign).index(pin.sign)))
    boxes.sort(key=lambda box: box.culprit)
    return Band(lane.thread, top, tuple(rows), tuple(boxes), tuple(pins)), y + GAP


def _joint(bands: Sequence[Band], thread: str, at: float) -> tuple[float, float] | None:
    """From the culprit's window to what the victim met; where nothing marks that, to the lowest row of its thread."""
    window = [box.y + BAR / 2 for band in bands for box in band.boxes if box.culprit]
    own = [band for band in bands if band.name == thread]
    met = [pin.y for band in own for pin in band.pins if pin.hit and abs(pin.x - at) < BESIDE]
    met += [y + BAR / 2 for band in own for _, y in band.rows[-1:]]
    return (window[0], met[0]) if window and met else None


def _lasted(bar: Bar, zero: float) -> str:
    value = f" ({bar.value})" if bar.value else ""
    several = f", {bar.count} times" if bar.count > 1 else ""
    if bar.end is None:
        return f"from {_signed(bar.start - zero)} and never ended{value}"
    length = lasting(bar.end - bar.start)
    return f"from {_signed(bar.start - zero)} to {_signed(bar.end - zero)}, {length}{several}{value}"


def _signed(seconds: float) -> str:
    return f"{'-' if seconds < 0 else '+'}{lasting(abs(seconds))}"


def _figures(drawn: Sequence[Lane], zero: float) -> Grid:
    """What is nearest to zero first cut to so many rows, then in order of time."""
    rows = [
        (bar.start, lane.thread, MEANING[row.kind], _lasted(bar, zero))
        for lane in drawn
        for row in lane.rows
        for bar in row.bars
    ]
    rows += [
        (mark.t, lane.thread, f"{mark.sign} ({mark.text})", _signed(mark.t - zero))
        for lane in drawn
        for mark in lane.marks
    ]
    nearest = sorted(sorted(rows, key=lambda row: abs(row[0] - zero))[:ROWS])
    columns = [tuple(texts) for texts in zip(*(row[1:] for row in nearest), strict=True)] or [(), (), ()]
    return Grid(tuple(Column(name, texts) for name, texts in zip(("thread", "what", "when"), columns, strict=True)))


def _ticks(span: Span, zero: float) -> list[tuple[float, str]]:
    """Round distances from zero within the span, some three to six of them."""
    rough = (span.end - span.start) / TICKS
    size = 10.0 ** floor(log10(rough))
    step = next(size * by for by in (1, 2, 5, 10) if size * by >= rough)
    first = -floor((zero - span.start) / step + 1e-9)
    last = floor((span.end - zero) / step + 1e-9)
    return [
        (zero + at * step, "0" if at == 0 else _round(at * step, span.start < zero)) for at in range(first, last + 1)
    ]


def _round(seconds: float, signed: bool) -> str:
    unit, size = next(
        (unit, size)
        for unit, size in (("s", 1.0), ("ms", 1e-3), ("\N{MICRO SIGN}s", 1e-6))
        if abs(seconds) >= size * 0.9999 or size < 1e-5
    )
    return f"{seconds / size:{'+' if signed else ''}.4g} {unit}"
