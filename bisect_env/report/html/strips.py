"""Throughput as it was measured: a dot for each round, a box from quartile to quartile, beside the reference's.

Places along a line are percentages of its width, so that the drawing follows the page's width and its dots stay round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, log10

from bisect_env.report.rows import tokens
from bisect_env.verdicts.records import Throughput

MARGIN = 0.04
"""Of the width, left and right of the outermost dots."""
APART = 1.1
"""Percent of the width below which two dots would cover each other: the later one moves up or down."""
STEP, LIMIT = 4.0, 12.0
"""Pixels by which it moves, and at most."""
TICKS = 4
ALIKE = 1e-4
"""Share of a value below which a difference is none: spread over the whole width it would look like noise."""


@dataclass(frozen=True)
class Measured:
    """What a line is drawn of."""

    key: str
    """Of the cell."""
    label: str
    rates: tuple[float, ...]
    """Tokens a second, a round or a trial each; empty where only the quartiles are known."""
    quartiles: Throughput
    text: str
    """The same in words."""
    reference: bool = False


@dataclass(frozen=True)
class Strip:
    """One line of the chart."""

    key: str
    label: str
    text: str
    reference: bool
    dots: tuple[tuple[float, float], ...]
    """Percent along the line, and pixels off its middle."""
    low: float
    median: float
    high: float
    """Percent along the line."""


@dataclass(frozen=True)
class Chart:
    """Lines with one scale."""

    title: str
    strips: tuple[Strip, ...]
    ticks: tuple[tuple[float, str], ...]
    reference: float | None
    """Percent along the line of the reference's median."""


def chart(title: str, measured: Sequence[Measured]) -> Chart:
    """The lines on a common scale, which does not begin at 0: dots show where they lie, no length is compared."""
    values = [value for each in measured for value in (*each.rates, each.quartiles.low, each.quartiles.high)]
    least, most = min(values), max(values)
    apart = most - least if most - least > abs(most) * ALIKE else 0.0
    room = apart * MARGIN or abs(most) * MARGIN or 1.0
    low, high = least - room, most + room

    def place(value: float) -> float:
        return round(100 * (value - low) / (high - low), 2)

    strips = tuple(
        Strip(
            each.key,
            each.label,
            each.text,
            each.reference,
            swarm([place(rate) for rate in each.rates]),
            place(each.quartiles.low),
            place(each.quartiles.median),
            place(each.quartiles.high),
        )
        for each in measured
    )
    reference = next((strip.median for strip in strips if strip.reference), None)
    return Chart(title, strips, tuple((place(tick), text) for tick, text in _ticks(low, high)), reference)


def swarm(places: Sequence[float]) -> tuple[tuple[float, float], ...]:
    """Dots in order of their places, each moved off the middle as far as those before it are in its way."""
    found: list[tuple[float, float]] = []
    offsets = [0.0, *(sign * step * STEP for step in range(1, int(LIMIT / STEP) + 1) for sign in (-1, 1))]
    for place in sorted(places):
        near = [taken for other, taken in found if place - other < APART]
        free = next((offset for offset in offsets if offset not in near), offsets[len(near) % len(offsets)])
        found.append((place, free))
    return tuple(found)


def _ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Round values within the scale, some four of them."""
    rough = (high - low) / TICKS
    power = 10.0 ** floor(log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough)
    first = floor(low / step) + 1
    ticks = [index * step for index in range(first, floor(high / step) + 1)]
    short = [tokens(tick) for tick in ticks]
    return list(zip(ticks, short if len(set(short)) == len(short) else [f"{tick:,g}" for tick in ticks], strict=True))
