"""The page of a gate: a block for each question, and what stands behind the answers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bisect_env.gate.records import Decision
from bisect_env.report import gate as words
from bisect_env.report.html import gate as html
from tests.report.html.pages import gate
from tests.report.html.reading import read


def test_each_question_has_its_block_with_word_sentence_and_evidence() -> None:
    result = gate()
    root = read(html.page(result))
    assert words.headline(result) == root.all("p", "lead")[0].text and result.id in root.all("h1")[0].text
    blocks = root.all("article", "question")
    assert len(blocks) == len(result.lines)
    for block, line in zip(blocks, result.lines, strict=True):
        assert (
            block.all("h3")[0].text
            == f"{dict(html_signs())[line.decision]}{words.answer(line.decision)} {line.question.value}"
        )
        assert line.sentence in block.text and line.more in block.text
        assert all(name in block.text for name, _ in line.figures) and all(trial in block.text for trial in line.trials)


def html_signs() -> list[tuple[Decision, str]]:
    return [(Decision.PASS, "✓"), (Decision.FAIL, "✕"), (Decision.INCONCLUSIVE, "?"), (Decision.NOT_ASKED, "–")]


def test_both_sides_are_drawn_and_their_trials_are_there_once() -> None:
    result = gate()
    root = read(html.page(result))
    strips = root.all("div", "strip")
    assert [strip.all("div", "name")[0].text for strip in strips] == ["baseline (reference)", "candidate"]
    assert all(len(strip.all("circle")) == 24 for strip in strips)
    assert "Every trial of the" not in root.text
    assert [each.all("h3")[0].text for each in root.all("details", "evidence")] == [
        "baseline: base.txt",
        "candidate: new.txt",
    ]
    assert result.bisect_command in root.text and result.announcement.sentences[0] in root.text


@pytest.mark.parametrize("decision", list(Decision))
def test_every_decision(decision: Decision) -> None:
    root = read(html.page(gate(decision=decision)))
    assert words.answer(decision) in root.all("span", "decision")[0].text


def test_a_candidate_that_does_not_resolve() -> None:
    result = gate()
    missing = replace(result.candidate, lock=None, verdict=None, samples=(), address="")
    root = read(html.page(replace(result, candidate=missing, lines=(), bisect_command="")))
    assert "NOT RUN" in root.text and "Find what made it fail" not in root.text
