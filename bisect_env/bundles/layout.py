"""How wheels are cut into parts: pure, so that the same wheels and the same size always make the same parts.

A wheel larger than a part gives as many full parts as it holds, which depend on it and on the part size alone. What is
left of it, and the small wheels, form one stream in the order in which they are needed, cut where a part is full. A
wheel that an earlier bundle in the same folder has keeps its pieces, so that a further version adds only its own parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bisect_env.bundles.records import Piece, Wheel


@dataclass(frozen=True)
class Run:
    """A run of a wheel's bytes, before it is known which part it goes to."""

    wheel: str
    """SHA-256."""
    offset: int
    length: int


Content = tuple[Run, ...]
"""What a part holds, one run after another."""


def cut(wheels: Iterable[tuple[str, int]], part_bytes: int) -> tuple[Content, ...]:
    """The parts of wheels, given as SHA-256 and size in the order in which they are needed.

    Every part but the last has exactly ``part_bytes``. In the order of their first need.
    """
    parts: list[Content] = []
    stream: list[Run] = []
    place: int | None = None
    """Where in ``parts`` the open part of the stream belongs."""
    filled = 0
    for wheel, size in wheels:
        offset = 0
        while size - offset >= part_bytes:
            parts.append((Run(wheel, offset, part_bytes),))
            offset += part_bytes
        while offset < size:
            if place is None:
                place = len(parts)
                parts.append(())
            length = min(size - offset, part_bytes - filled)
            stream.append(Run(wheel, offset, length))
            offset, filled = offset + length, filled + length
            parts[place] = tuple(stream)
            if filled == part_bytes:
                stream, place, filled = [], None, 0
    return tuple(parts)


def pieces(parts: Iterable[tuple[str, Content]]) -> dict[str, tuple[Piece, ...]]:
    """The pieces of each wheel, from the parts' SHA-256 and contents; in the order of the wheel's bytes."""
    found: dict[str, list[Piece]] = {}
    for part, content in parts:
        at = 0
        for run in content:
            found.setdefault(run.wheel, []).append(Piece(part, at, run.offset, run.length))
            at += run.length
    return {wheel: tuple(sorted(own, key=lambda piece: piece.wheel_offset)) for wheel, own in found.items()}


def kept(earlier: Iterable[Wheel], sizes: Mapping[str, int], part_bytes: int) -> dict[str, tuple[Piece, ...]]:
    """Pieces of the wheels of an earlier manifest whose parts can all be used again.

    ``sizes`` has the bytes of each part that is still there. A part larger than ``part_bytes`` is not used.
    """
    usable = {part for part, size in sizes.items() if size <= part_bytes}
    return {
        wheel.sha256: wheel.pieces
        for wheel in earlier
        if wheel.pieces and all(piece.part in usable for piece in wheel.pieces)
    }


def in_order(wheels: Sequence[Wheel]) -> tuple[str, ...]:
    """SHA-256 of the parts, each once, in the order in which the wheels need them."""
    return tuple(dict.fromkeys(piece.part for wheel in wheels for piece in wheel.pieces))
