from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisect_env.report.mitigations import Effect, effect, failures, mitigations
from bisect_env.report.sections import result
from bisect_env.verdicts.records import Headline, Interval
from bisect_env.verdicts.statistics import clopper_pearson
from tests.report.build import Judged, row, speed, under
from tests.verdicts.build import paths


def mitigated(mitigation: str, threads: str, serial: str = "......", torch: str = "2.11.0", rate: float = 0) -> Judged:
    steps = speed(rate) if rate else ()
    return under(row(torch, "5.6.0", threads, serial, steps=steps), "mitigation", mitigation)


@pytest.mark.parametrize(
    ("none", "own", "expected"),
    [
        ("FFFFFF", "......", "cleared"),
        ("FFFF..", "......", "cleared"),
        ("FFF...", "......", "unsure (p = 0.091)"),
        ("FFFFFF", "..", "unsure (4 trials to come)"),
        ("FFFFFF", "F.....", "not cleared"),
        ("FFFFFF", "H.....", "not cleared"),
        ("HHHHHH", "......", "cleared"),
        ("HHHFFF", "......", "cleared"),
        ("FFFFFF", "O.....", "not cleared"),
        ("FFFFFF", "W.....", "not cleared"),
        ("......", "......", "nothing to clear"),
        ("FFFFFF", "", "not run"),
        ("FFFFFF", "XX", "not run"),
        ("", "......", "unsure"),
    ],
)
def test_what_a_mitigation_does(none: str, own: str, expected: str) -> None:
    ((_, (found,)),) = mitigations([mitigated("none", none), mitigated("lock-all", own)], 6)
    assert (found.mitigation, result(found)) == ("lock-all", expected)


def test_a_mitigation_that_breaks_the_control_clears_nothing() -> None:
    ((_, (found,)),) = mitigations([mitigated("none", "FFFFFF"), mitigated("warmup", "......", "FFFFFF")], 6)
    assert result(found) == "not cleared (BROKEN)"


def test_what_runs_dense_in_silence_is_said() -> None:
    dense = paths(("w0", 100, {"math_attention": 63, "library_choice": 63}))
    quiet = under(row("2.11.0", "5.6.0", "......", paths=dense), "mitigation", "no-nested-trace-error")
    ((_, (found,)),) = mitigations([mitigated("none", "FFFFFF"), quiet], 6)
    assert found.effect is Effect.CLEARED and result(found) == "cleared, but dense"
    ((_, (unsure,)),) = mitigations([mitigated("none", "FF...."), quiet], 6)
    assert result(unsure) == "unsure (p = 0.23), dense"


def test_cells_are_compared_within_one_environment() -> None:
    rows = [
        mitigated("none", "FFFFFF"),
        mitigated("warmup", "......"),
        mitigated("none", "......", torch="2.14.1"),
        mitigated("warmup", "......", torch="2.14.1"),
        mitigated("warmup", "......", torch="2.15.0"),
        row("2.11.0", "5.6.0", "FFFFFF"),
    ]
    found = mitigations(rows, 6)
    assert [(none.cell.id, [twin.row.cell.id for twin in twins]) for none, twins in found] == [
        (rows[0].cell.id, [rows[1].cell.id]),
        (rows[2].cell.id, [rows[3].cell.id]),
    ]


def test_it_counts_every_way_to_fail() -> None:
    counted = failures(mitigated("none", "FHOWXK.."))
    assert counted is not None and (counted.k, counted.n) == (4, 6)
    assert failures(mitigated("none", "XK")) is None


HEADLINES = st.sampled_from([Headline.FULL, Headline.DENSE, Headline.SLOW, Headline.UNSURE, Headline.RACE])


@st.composite
def counts(draw: st.DrawFn, fewest: int = 0) -> Interval:
    n = draw(st.integers(1, 14))
    return clopper_pearson(draw(st.integers(min(fewest, n), n)), n)


@given(counts(), counts(fewest=1), HEADLINES, st.integers(1, 14))
def test_what_failed_is_never_cleared(none: Interval, own: Interval, headline: Headline, planned: int) -> None:
    assert effect(none, own, headline, planned) is Effect.NOT_CLEARED


@given(counts(), st.integers(1, 14), HEADLINES, st.integers(1, 14))
def test_more_failures_without_it_never_take_a_clearing_back(
    none: Interval, n: int, headline: Headline, planned: int
) -> None:
    own = clopper_pearson(0, n)
    if effect(none, own, headline, planned) is Effect.CLEARED:
        worse = clopper_pearson(min(none.k + 1, none.n), none.n)
        assert effect(worse, own, headline, planned) is Effect.CLEARED
        assert n >= planned


@given(st.integers(1, 14), st.integers(1, 14), HEADLINES)
def test_equal_rates_clear_nothing(n: int, m: int, headline: Headline) -> None:
    assert effect(clopper_pearson(0, m), clopper_pearson(0, n), headline, n) is not Effect.CLEARED
