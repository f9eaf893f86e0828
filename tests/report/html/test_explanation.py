"""The page of an explanation: two drawings of the trial, the stacks, and the ledger."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bisect_env.explanation.records import Account
from bisect_env.report import explanation_words as words
from bisect_env.report.html import crowding
from bisect_env.report.html import explanation as html
from tests.report.explanations import busy, eager, explanation, hung, raced, silent, stuck
from tests.report.html.reading import Element, read


def drawings(root: Element) -> list[Element]:
    return [each for each in root.all("svg") if each.get("role") == "img"]


def test_it_has_the_answer_the_account_and_both_stacks() -> None:
    found = explanation()
    root = read(html.page(found))
    assert root.all("p", "lead")[0].text == words.headline(found)
    assert root.all("span", "decision")[0].text == "\N{MULTIPLICATION X}another thread's trace"
    told = words.primary(found)
    assert told is not None
    assert [each.text for each in root.all("ol", "account")[0].all("li")] == list(told.sentences)
    stacks = root.all("div", "beside")[0].all("details")
    assert [each.get("open") for each in stacks] == ["", ""] and all("open" in each.attributes for each in stacks)
    assert "_symbolic_trace.py:801 trace" in stacks[0].text and "compile_wrapper" in stacks[1].text


@pytest.mark.parametrize("account", [raced(), stuck(), eager(), hung()], ids=lambda account: account.trial)
def test_the_collision_joins_the_window_and_what_met_it(account: Account) -> None:
    root = read(html.page(explanation(account)))
    near, whole = drawings(root)
    for drawing in (near, whole):
        (joint,) = drawing.all("line", "joint")
        assert joint.get("x1") == joint.get("x2")
        (culprit,) = drawing.all("rect", "culprit")
        top, at = float(culprit.get("y")), float(joint.get("x1").rstrip("%"))
        assert top < float(joint.get("y1")) < top + 12 and float(joint.get("y2")) > float(joint.get("y1"))
        left, width = (float(culprit.get(name).rstrip("%")) for name in ("x", "width"))
        assert left - 0.3 <= at <= left + width + 0.3, "they met while it was open"
    assert len(whole.all("rect", "part")) == 1 and not near.all("rect", "part")


def test_each_thread_has_a_lane_and_each_bar_says_what_it_is() -> None:
    root = read(html.page(explanation(raced())))
    near, _ = drawings(root)
    assert [each.text for each in near.all("text", "thread")] == ["worker-0", "worker-1", "worker-2"]
    bars = [each for each in near.all("rect") if each.get("class").startswith("k-")]
    assert len(bars) == 5 and all(each.all("title")[0].text for each in bars)
    assert any("has the FX tracing flag set: from -9.50 ms to" in each.text for each in bars)
    assert near.all("svg", "m-failed") and near.all("svg", "m-obeyed") and near.all("svg", "m-read")


def test_the_drawing_is_there_as_a_table_too() -> None:
    root = read(html.page(explanation(raced())))
    tables = [each for each in root.all("details", "inner") if each.all("summary")[0].text == "The same as a table"]
    assert len(tables) == 2
    assert "worker-1" in tables[0].text and "the call failed (another thread's trace)" in tables[0].text


def test_the_ledger_says_what_became_of_each() -> None:
    found = explanation()
    (table,) = read(html.page(found)).all("table", "ledger")
    rows = table.all("tr")[1:]
    assert [row.all("th")[0].text for row in rows] == [each.name for each in words.ledger(found)]
    for row, each in zip(rows, words.ledger(found), strict=True):
        assert each.standing.value in row.all("span", "badge")[0].text and all(
            said in row.text for said in each.evidence
        )


def test_a_frame_is_a_line_that_wraps_for_itself() -> None:
    found = explanation()
    account = words.primary(found)
    assert account is not None
    shown = read(html.page(found)).all("div", "beside")[0].all("details")[0].all("span", "frame")
    assert [each.text.strip() for each in shown] == words.stacks(account.collisions[0], 0.0)[0][1].splitlines()


def test_commands_in_facts_are_shown_as_such() -> None:
    root = read(html.page(replace(explanation(), cost="Not known (`bisect-env matrix` runs them).")))
    (cost,) = [each for each in root.all("dd") if "Not known" in each.text]
    assert cost.text == "Not known (bisect-env matrix runs them)." and cost.all("code")[0].text == "bisect-env matrix"


def test_other_trials_are_told_in_short() -> None:
    root = read(html.page(explanation(raced(), silent(), hung())))
    others = root.all("details", "evidence")
    assert [each.all("h3")[0].text for each in others] == ["00c0ffee", "5d0c44b1"]
    assert not drawings(others[0]) and len(drawings(others[1])) == 1


def test_a_long_trial_stays_below_a_megabyte_and_says_what_it_drew_together() -> None:
    accounts = [replace(busy(), trial=f"t{number}") for number in range(8)]
    page = html.page(explanation(*accounts))
    assert len(page.encode()) < 1_000_000
    root = read(page)
    _, whole = drawings(root)[:2]
    bars = [each for each in whole.all("rect") if each.get("class").startswith("k-")]
    assert 50 < len(bars) <= crowding.MOST and len(whole.all("rect", "culprit")) == 1
    assert "Fainter bars stand for several that lie closer together than" in root.text
    covered = max(float(each.get("x").rstrip("%")) + float(each.get("width").rstrip("%")) for each in bars)
    assert covered > 95, "the end of the trial is drawn as well"


@pytest.mark.parametrize("account", [silent(), replace(silent(), outcome="clean")], ids=["failed", "clean"])
def test_without_a_collision_there_is_no_drawing_of_one(account: Account) -> None:
    root = read(html.page(explanation(account)))
    assert not drawings(root) and not root.all("div", "beside")
    expected = "not explained" if account.outcome == "failed" else "nothing to explain"
    assert expected in root.all("span", "decision")[0].text


def test_a_trial_without_a_collision_is_drawn_as_a_whole() -> None:
    root = read(html.page(explanation(replace(raced(), collisions=()))))
    (whole,) = drawings(root)
    assert not whole.all("line", "joint") and not whole.all("rect", "part")
