"""The calibration tables of docs/search.md and of the search among factors as one picture: stated against true.

    python benchmarks/calibration_plot.py docs/search.md docs/results/search-subsets.md -o docs/results/calibration.svg

A point is a row: how probable the answers were said to be on average, and how many of them were right, with the 95 %
interval. On the line what is stated is true; above it the search is more careful than it says.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

SIDE, EDGE, LOWEST = 420, 50, 0.5
COLOURS = ("#0b6bcb", "#b54708", "#2e7d32")
NUMBER = r"([\d.]+)\s*%?"
ROWS = (
    re.compile(rf"^\| [\d.]+ \| {NUMBER} \| {NUMBER} \({NUMBER}-{NUMBER}\) \|"),
    re.compile(rf"^\| [\d.]+ to [\d.]+ \| \d+ \| {NUMBER} \| {NUMBER} \| {NUMBER} to {NUMBER} \|"),
)
"""Of the two documents: stated, right, and the interval, all in percent."""


def points(text: str) -> Iterator[tuple[float, ...]]:
    """The rows of the tables that say what was stated, as shares of 1."""
    inside = False
    for line in text.splitlines():
        inside = line.startswith("|") and (inside or "stated" in line)
        matches = [pattern.match(line) for pattern in ROWS] if inside else []
        yield from (tuple(float(value) / 100 for value in match.groups()) for match in matches if match)


def at(share: float, up: bool = False) -> float:
    """A share's place on an axis, in the picture's units."""
    place = (max(share, LOWEST) - LOWEST) / (1 - LOWEST) * (SIDE - 2 * EDGE)
    return SIDE - EDGE - place if up else EDGE + place


def picture(series: list[tuple[str, list[tuple[float, ...]]]]) -> str:
    """The whole as SVG."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIDE} {SIDE}" font-family="sans-serif" font-size="12">',
        "<title>Stated against true probability</title>",
        f'<rect width="{SIDE}" height="{SIDE}" fill="white"/>',
        f'<path d="M{at(0.5)} {at(0.5, True)} L{at(1)} {at(1, True)}" stroke="#888" stroke-dasharray="4 3"/>',
        f'<path d="M{at(0.5)} {at(1, True)} V{at(0.5, True)} H{at(1)}" stroke="#222" fill="none"/>',
    ]
    for tick in (0.5, 0.6, 0.7, 0.8, 0.9, 1.0):
        parts += [
            f'<text x="{at(tick)}" y="{at(0.5, True) + 16}" text-anchor="middle">{tick:.0%}</text>',
            f'<text x="{at(0.5) - 6}" y="{at(tick, True) + 4}" text-anchor="end">{tick:.0%}</text>',
        ]
    parts.append(f'<text x="{SIDE / 2}" y="{SIDE - 12}" text-anchor="middle">stated, on average</text>')
    parts.append(f'<text transform="translate(12 {SIDE / 2}) rotate(-90)" text-anchor="middle">right</text>')
    for number, (name, found) in enumerate(series):
        colour = COLOURS[number % len(COLOURS)]
        for stated, right, low, high in found:
            parts += [
                f'<path d="M{at(stated):.1f} {at(low, True):.1f} V{at(high, True):.1f}" stroke="{colour}"/>',
                f'<circle cx="{at(stated):.1f}" cy="{at(right, True):.1f}" r="3.5" fill="{colour}"/>',
            ]
        parts.append(f'<text x="{EDGE + 12}" y="{EDGE + 4 + 16 * number}" fill="{colour}">{name}</text>')
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    """Write the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("line", type=Path, help="document with the table along a line")
    parser.add_argument("factors", type=Path, nargs="?", help="document with the table among factors")
    parser.add_argument("-o", "--output", type=Path, required=True)
    chosen = parser.parse_args()
    named = [("along a line", chosen.line), ("among factors", chosen.factors)]
    series = [(name, list(points(path.read_text(encoding="utf-8")))) for name, path in named if path is not None]
    chosen.output.write_text(picture(series), encoding="utf-8")


if __name__ == "__main__":
    main()
