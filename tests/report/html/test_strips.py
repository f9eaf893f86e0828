"""Distributions: every round is a dot in its place, and the box is the verdict's own."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bisect_env.report.html.strips import LIMIT, Measured, chart, swarm
from bisect_env.verdicts.records import Throughput
from bisect_env.verdicts.statistics import quartiles

RATES = st.lists(st.floats(1, 1e7), min_size=1, max_size=60)


def measured(rates: list[float], reference: bool = False) -> Measured:
    low, middle, high = quartiles(rates)
    return Measured("k", "torch", tuple(rates), Throughput(middle, low, high, len(rates)), "words", reference)


@given(RATES, RATES)
def test_all_lines_share_a_scale_on_which_every_dot_lies(one: list[float], other: list[float]) -> None:
    found = chart("", [measured(one, reference=True), measured(other)])
    for strip, rates in zip(found.strips, (one, other), strict=True):
        assert len(strip.dots) == len(rates)
        assert all(0 <= place <= 100 and abs(off) <= LIMIT for place, off in strip.dots)
        assert 0 <= strip.low <= strip.median <= strip.high <= 100
        order = sorted(range(len(rates)), key=rates.__getitem__)
        assert [place for place, _ in strip.dots] == sorted(place for place, _ in strip.dots)
        assert len(order) == len(strip.dots)
    assert found.reference == found.strips[0].median
    least, most = (f([*one, *other]) for f in (min, max))
    ends = [place for strip in found.strips for place, _ in strip.dots]
    if most - least > 1.1e-4 * most:
        assert min(ends) < 5 and max(ends) > 95
    assert all(0 <= place <= 100 for place, _ in found.ticks)
    labels = [label for _, label in found.ticks]
    assert len(labels) == len(set(labels))


@given(st.lists(st.floats(0, 100), max_size=7))
def test_few_dots_never_cover_each_other(places: list[float]) -> None:
    found = swarm(places)
    assert len(set(found)) == len(found) or len(set(places)) < len(places)
    close = [(one, other) for at, one in enumerate(found) for other in found[at + 1 :] if other[0] - one[0] < 1.1]
    assert all(one[1] != other[1] for one, other in close)


def test_quartiles_alone_are_a_box_without_dots() -> None:
    (strip,) = chart("", [Measured("k", "x", (), Throughput(10, 8, 12, 4), "words")]).strips
    assert strip.dots == () and strip.low < strip.median < strip.high
