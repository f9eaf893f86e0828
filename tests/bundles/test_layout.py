"""The law of the cut: parts of the size, whatever the wheels, which give the wheels back."""

from __future__ import annotations

from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from bisect_env.bundles import layout
from bisect_env.bundles.records import Wheel

PARTS = st.integers(1, 40)
SIZES = st.lists(st.integers(1, 200), min_size=1, max_size=8)


def named(sizes: list[int]) -> list[tuple[str, int]]:
    return [(f"w{at}", size) for at, size in enumerate(sizes)]


def content(wheel: str, size: int) -> bytes:
    return bytes((ord(wheel[-1]) * 7 + at * 13) % 251 for at in range(size))


def length(part: layout.Content) -> int:
    return sum(run.length for run in part)


@given(SIZES, PARTS)
def test_the_pieces_give_every_wheel_back(sizes: list[int], part_bytes: int) -> None:
    wheels = named(sizes)
    bytes_of = {wheel: content(wheel, size) for wheel, size in wheels}
    parts = layout.cut(wheels, part_bytes)
    files = {
        f"p{at}": b"".join(bytes_of[run.wheel][run.offset : run.offset + run.length] for run in part)
        for at, part in enumerate(parts)
    }
    pieces = layout.pieces((f"p{at}", part) for at, part in enumerate(parts))
    for wheel, size in wheels:
        joined = b"".join(files[p.part][p.part_offset : p.part_offset + p.length] for p in pieces[wheel])
        assert joined == bytes_of[wheel]
        ends = list(accumulate(piece.length for piece in pieces[wheel]))
        assert [piece.wheel_offset for piece in pieces[wheel]] == [0, *ends[:-1]] and ends[-1] == size


@given(SIZES, PARTS)
def test_no_part_is_wasted(sizes: list[int], part_bytes: int) -> None:
    parts = layout.cut(named(sizes), part_bytes)
    assert len(parts) == -(-sum(sizes) // part_bytes)
    assert sum(length(part) < part_bytes for part in parts) <= 1 and max(map(length, parts)) <= part_bytes


@given(SIZES, SIZES, PARTS)
def test_full_parts_of_a_large_wheel_do_not_depend_on_its_company(
    sizes: list[int], others: list[int], part_bytes: int
) -> None:
    def full(parts: tuple[layout.Content, ...]) -> set[layout.Content]:
        return {part for part in parts if length(part) == part_bytes and len(part) == 1 and part[0].wheel == "w0"}

    alone = full(layout.cut(named(sizes[:1]), part_bytes))
    own = {part for part in alone if part[0].offset % part_bytes == 0}
    assert own <= set(layout.cut([*named(sizes), *((f"x{at}", size) for at, size in enumerate(others))], part_bytes))


@given(SIZES, SIZES, PARTS)
def test_what_is_needed_first_comes_first(first: list[int], then: list[int], part_bytes: int) -> None:
    wheels = named([*first, *then])
    parts = layout.cut(wheels, part_bytes)
    needed = -(-sum(first) // part_bytes)
    own = {wheel for wheel, _ in wheels[: len(first)]}
    holding = [at for at, part in enumerate(parts) if any(run.wheel in own for run in part)]
    # One more than the least at most: the open end of the stream may already hold something of the next.
    assert max(holding) <= needed + sum(size // part_bytes for size in then)
    assert len(holding) <= needed + 1


def test_pieces_are_kept_while_all_parts_are_there_and_small_enough() -> None:
    pieces = layout.pieces([("a", (layout.Run("w", 0, 10),)), ("b", (layout.Run("w", 10, 4), layout.Run("v", 0, 3)))])
    wheels = [Wheel(f"{sha}.whl", sha, "1", sha, 14, own) for sha, own in pieces.items()]
    assert layout.kept(wheels, {"a": 10, "b": 7}, 10) == pieces
    assert layout.kept(wheels, {"b": 7}, 10) == {"v": pieces["v"]}
    assert layout.kept(wheels, {"a": 10, "b": 7}, 8) == {"v": pieces["v"]}
    assert layout.in_order(wheels) == ("a", "b")
