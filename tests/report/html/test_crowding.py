"""Bars and marks that become one: none is lost, long ones stay, and the collision's own are never touched."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bisect_env.report.explanation_lanes import Bar, Kind, Lane, Mark, Row, Sign
from bisect_env.report.html.crowding import MOST, THIN, merged

LENGTH = 100.0
SIGNS = (Sign.READ, Sign.OBEYED)
moments = st.floats(0, LENGTH, allow_nan=False)
bars = st.builds(
    lambda start, length, culprit: Bar(start, None if length is None else start + length, culprit=culprit),
    moments,
    st.none() | st.floats(0, 3),
    st.booleans(),
)
marks = st.builds(
    lambda t, sign, text, hit: Mark(t, sign, text, hit=hit),
    moments,
    st.sampled_from(SIGNS),
    st.sampled_from("ab"),
    st.booleans(),
)


@given(st.lists(bars, max_size=40), st.lists(marks, max_size=40))
def test_nothing_is_lost(drawn: list[Bar], read: list[Mark]) -> None:
    lane = Lane("w0", (Row(Kind.TRACE, tuple(drawn)),), tuple(sorted(read, key=lambda mark: mark.t)))
    ((found,), apart) = merged([lane], LENGTH)
    kept = found.rows[0].bars
    assert sum(bar.count for bar in kept) == len(drawn) and sum(mark.count for mark in found.marks) == len(read)
    assert {bar for bar in drawn if bar.culprit} <= set(kept) and {mark for mark in read if mark.hit} <= set(
        found.marks
    )
    long = {bar for bar in drawn if bar.end is None or bar.end - bar.start >= apart}
    assert long <= set(kept)
    for bar in drawn:
        end = LENGTH if bar.end is None else bar.end
        assert any(each.start <= bar.start and (each.end is None or end <= each.end) for each in kept)


def test_as_many_become_one_as_it_takes() -> None:
    crowd = tuple(Bar(0.01 * at, 0.01 * at + 0.004) for at in range(10_000))
    lanes = [Lane(f"w{number}", (Row(Kind.TRACE, crowd[number::8]),), ()) for number in range(8)]
    found, apart = merged(lanes, LENGTH)
    assert sum(len(lane.rows[0].bars) for lane in found) <= MOST and apart >= THIN / 100 * LENGTH
    few, apart = merged([Lane("w0", (Row(Kind.TRACE, (Bar(1, 2), Bar(50, 50.1), Bar(50.2, 50.3))),), ())], LENGTH)
    assert [bar.count for bar in few[0].rows[0].bars] == [1, 2] and apart == THIN / 100 * LENGTH
