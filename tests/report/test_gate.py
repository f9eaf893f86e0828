"""The gate's report: the answer first, a line a question, and what to do next."""

from __future__ import annotations

import json
from io import StringIO

from rich.console import Console

from bisect_env.gate.records import Announcement, Decision, Line, Question
from bisect_env.report import gate as report
from bisect_env.report import gate_machine
from bisect_env.report.gate_live import GateLines, GateLive
from tests.report.html.pages import gate

PASSES = Line(Question.RACES, Decision.PASS, "0 of 59 went wrong", "0 of 59", "0 of 59")
NOT_ASKED = Line(Question.MEMORY, Decision.NOT_ASKED, "there is no GPU", "", "")


def test_the_answer_comes_first_with_what_decided_it() -> None:
    assert report.report(gate()).startswith("FAIL on races: candidate new.txt against baseline base.txt.")
    passed = gate(PASSES, NOT_ASKED, decision=Decision.PASS, bisect_command="")
    assert report.report(passed).startswith("PASS on races: ")
    open_ = gate(
        Line(Question.RACES, Decision.INCONCLUSIVE, "3 of 10", "", "", more="20 trials are still to come"),
        Line(Question.THROUGHPUT, Decision.INCONCLUSIVE, "too noisy", "", "", more="--pairs 40"),
        decision=Decision.INCONCLUSIVE,
    )
    text = report.report(open_)
    assert text.startswith("INCONCLUSIVE on races and throughput: ")
    assert "What it would take to decide" in text and "--pairs 40" in text


def test_every_question_has_its_line_and_the_rest_its_section() -> None:
    text = report.report(gate(notes=("conda and pip disagree about numpy",)), width=110)
    for words in (
        "environment  PASS\n",
        "races        FAIL          0/8 (0-37 %)  2/8 (3-65 %)\n",
        "memory       not asked",
        "bisect-env bisect --good base.txt --bad new.txt",
        "59 clean trials of the candidate pass",
        "conda and pip disagree about numpy",
        "32 trials, 2 environments built, 13 min; gate g0abcde",
    ):
        assert words in text
    assert all(len(line) <= 110 for line in text.splitlines())
    markdown = report.report(gate(), "markdown")
    assert "## Question by question" in markdown and "```sh\nbisect-env bisect" in markdown
    assert "<details><summary>Every trial of the candidate" in markdown


def test_nothing_is_announced_that_was_not_said() -> None:
    text = report.report(gate(trials=0, builds=0))
    assert "Announced before" not in text


def test_a_plan_says_what_it_takes() -> None:
    text = report.plan(gate(id="", trials=0))
    assert "nothing was run" in text and "What it takes" in text and "59 clean trials" in text


def test_the_document_has_everything_and_is_json() -> None:
    document = json.loads(json.dumps(gate_machine.document(gate())))
    assert document["decision"] == "fail" and document["schema"] == gate_machine.SCHEMA
    assert document["lines"][1]["figures"] == {"failed": 2, "trials": 8, "low": 0.0319}
    assert document["candidate"]["distributions"] == {"torch": "2.11.0"}
    assert {trial["side"] for trial in document["candidate"]["trials"]} >= {"threads", "rounds"}
    assert document["announcement"]["clean_trials"] == 59 and document["rules"]["max_race_rate"] == 0.05


def test_lines_say_what_is_new() -> None:
    console = Console(record=True, width=200, file=StringIO())
    shown = GateLines(console)
    first = Announcement(59, 59, (), None, None, (), ("59 clean trials.", "How long is not known."))
    shown.announced(first)
    shown.announced(Announcement(59, 59, (), None, 60.0, (), ("59 clean trials.", "It takes 1 min.")))
    for block in range(1, 13):
        shown.remaining(600.0)
        shown.stands(block, 59, (0, int(block >= 5)), (block, block))
    text = console.export_text()
    assert text.count("59 clean trials.") == 1 and "It takes 1 min." in text
    said = [line[line.index("block") :] for line in text.splitlines() if "block" in line]
    assert said == [
        "block 5 of 59: went wrong: baseline 0 of 5, candidate 1 of 5; about 10 min of trials left",
        "block 10 of 59: went wrong: baseline 0 of 10, candidate 1 of 10; about 10 min of trials left",
    ]


def test_a_terminal_has_a_bar_of_blocks() -> None:
    console = Console(record=True, width=120, force_terminal=True, file=StringIO())
    with GateLive(console) as shown:
        shown.announced(Announcement(59, 59, (), None, None, (), ("59 clean trials.",)))
        shown.stands(7, 59, (0, 2), (7, 7))
        task = shown.progress.tasks[0]
        assert (task.completed, task.total) == (7, 59)
    assert "59 clean trials." in console.export_text()
