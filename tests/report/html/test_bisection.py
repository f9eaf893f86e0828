"""The page of a bisection: the finding, and the posterior as the replayed log has it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bisect_env.bisection.records import Answer, Finding, Stage
from bisect_env.bisection.state import Belief
from bisect_env.report.bisection_words import probability
from bisect_env.report.html import bisection as html
from bisect_env.report.html import posterior
from tests.report.findings import culprit, unfinished
from tests.report.html.pages import bisection
from tests.report.html.reading import read


@pytest.mark.parametrize("seed", range(3))
def test_the_finding_the_batches_and_the_lines_agree(seed: int) -> None:
    found, history = bisection(seed)
    root = read(html.page(found, history))
    assert found.answer is Answer.CULPRIT and found.sentence in root.text
    searches = [each.title for each in posterior.panels(history)]
    assert searches == ["Which difference", "Which version"]
    drawn = [each for each in root.all("svg") if "probability of each suspect" in each.get("aria-label")]
    assert len(drawn) == len(searches)
    last = posterior.panels(history)[-1]
    best, chance = found.suspects[0]
    assert (last.series[0].name, last.series[0].last) == (best, probability(chance))
    rows = root.all("table")[-1].all("tr")[1:]
    assert len(rows) == len(found.observations)
    assert found.confirmation is not None
    assert len(root.all("circle", "rate")) == len(found.confirmation.arms)


def test_a_line_has_a_point_for_every_batch_and_one_before() -> None:
    found, history = bisection()
    for panel, stage in zip(posterior.panels(history), (Stage.FACTORS, Stage.VERSIONS), strict=True):
        batches = [seen for seen in found.observations if seen.stage is stage]
        told = [point.text.partition(",")[0] for point in panel.series[0].points]
        assert told[0] == "before the first batch"
        # A search begins with what was tried at its own ends, and goes on to the last batch of its stage.
        assert told[1:] == [f"batch {seen.batch}" for seen in batches][1 - len(told) :] and len(told) > 4
        for series in panel.series:
            assert [point.x for point in series.points] == sorted(point.x for point in series.points)
            assert len(series.points) == len(told) and series.points[-1].x == 100
        # Together they are certain: what has no line of its own is in the last one.
        for at in range(len(told)):
            heights = [series.points[at].y for series in panel.series]
            shares = [1 - (y - posterior.TOP) / posterior.HEIGHT for y in heights]
            assert sum(shares) == pytest.approx(1, abs=0.02)


def test_searches_are_told_apart_even_where_two_are_of_one_stage() -> None:
    one = [Belief(Stage.VERSIONS, ("a",), seen, (("a", 0.5),)) for seen in (4, 5, 6)]
    other = [Belief(Stage.VERSIONS, ("b",), seen, (("b", 0.5),)) for seen in (6, 7)]
    again = [Belief(Stage.VERSIONS, ("b",), 7, (("b", 0.5),))]
    assert posterior.searches([*one, *other, *again]) == [one, other, again]


def test_many_suspects_share_a_line() -> None:
    suspects = tuple((f"p{number}", 0.05) for number in range(20))
    beliefs = [Belief(Stage.FACTORS, (), 0, suspects)]
    panel = posterior.panel(beliefs, [], [], 0.95)
    assert len(panel.series) == posterior.NAMED + 1
    assert panel.series[-1].name == "the other 14 together" and panel.series[-1].last == "70 %"


def test_without_a_log_there_is_the_report_alone() -> None:
    root = read(html.page(culprit()))
    assert not [each for each in root.all("h2") if "How likely" in each.text]
    assert "torch 2.11.0 is to blame" in root.text and "hf_secret" not in root.text
    links = [each for each in root.all("a") if each.get("href").startswith("https://")]
    assert [each.get("rel") for each in links] == ["noopener noreferrer"]


def test_a_link_that_is_no_web_address_stays_text() -> None:
    found = culprit()
    bad = replace(found, links=(replace(found.links[0], url="javascript:alert(1)"),))
    root = read(html.page(bad))
    assert "javascript:alert(1)" in root.text and not [a for a in root.all("a") if "javascript" in a.get("href")]


def test_no_section_is_empty() -> None:
    for found in (unfinished(), Finding("", Answer.NOTHING, "Nothing to bisect.", 0.0), culprit()):
        root = read(html.page(found))
        assert found.sentence in root.text
        for section in root.all("section"):
            assert len(section.text) > len(section.all("h2")[0].text)
