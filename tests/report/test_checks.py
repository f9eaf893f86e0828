from __future__ import annotations

from dataclasses import replace

import pytest

from bisect_env.gate.records import Decision, Line, Question
from bisect_env.report.checks import LINES, Level, State, of_matrix, of_question
from bisect_env.verdicts.records import Headline
from tests.report.build import Judged, laptop, row


def not_run(infra: int = 0) -> Judged:
    shown = laptop()[0]
    verdict = replace(shown.verdict, headline=Headline.NOT_RUN, reason="no trial was run yet", infra=infra)
    return replace(shown, verdict=verdict, samples=[])


def states(rows: list[Judged], *fail_on: Headline, trouble: str = "") -> list[tuple[str, str | None]]:
    return [(check.state.value, check.level) for check in of_matrix(rows, fail_on, trouble)]


def test_without_a_wish_what_is_to_be_avoided_fails() -> None:
    # RACE, RACE, FULL, DENSE, UNRESOLVABLE
    assert states(laptop()) == [
        ("failed", Level.WARNING),
        ("failed", Level.WARNING),
        ("passed", None),
        ("failed", Level.WARNING),
        ("error", Level.WARNING),
    ]


def test_with_fail_on_only_what_decides_the_exit_code_fails() -> None:
    assert states(laptop(), Headline.DENSE) == [
        ("passed", Level.WARNING),
        ("passed", Level.WARNING),
        ("passed", None),
        ("failed", Level.ERROR),
        ("skipped", Level.WARNING),
    ]
    assert states(laptop(), Headline.UNRESOLVABLE)[4] == ("failed", Level.ERROR)


@pytest.mark.parametrize("headline", list(Headline))
def test_fail_on_fails_exactly_the_headline_that_it_names(headline: Headline) -> None:
    rows = [
        replace(shown, verdict=replace(shown.verdict, headline=each)) for shown in laptop()[:1] for each in Headline
    ]
    failed = [check.kind for check in of_matrix(rows, {headline}) if check.state is State.FAILED]
    assert failed == [headline.value]


def test_what_was_not_measured_is_skipped_unless_the_machine_is_to_blame() -> None:
    assert states([not_run()]) == [("skipped", Level.NOTICE)]
    assert states([not_run(infra=2)]) == [("error", Level.ERROR)]
    [check] = of_matrix([not_run()], (), "the disk is full")
    assert (check.state, check.level) == (State.ERROR, Level.ERROR) and "the disk is full" in check.message


def test_the_evidence_names_trials_signature_and_where_there_is_more() -> None:
    shown = row("2.11.0", "4.52.4", "FFFF", "....")
    first = shown.samples[0]
    failure = replace(first.record.failures[0], traceback="\n".join(f"line {number}" for number in range(100)))
    record = replace(first.record, failures=(failure,), seconds=2.5)
    shown = replace(shown, samples=[replace(first, record=record), *shown.samples[1:]])
    [check] = of_matrix([shown], ())
    assert check.message.startswith("RACE 4/4: 4 of 4 threaded trials")
    assert "threads: 4/4 (40-100 %) went wrong" in check.evidence and "serial: 0/4" in check.evidence
    assert "trials: threads-1 (threads failed)" in check.evidence
    lines = check.evidence.splitlines()
    assert "line 99" in lines and "line 59" not in lines and f"({100 - LINES} lines before are left out)" in lines
    assert lines[-1] == f"More: bisect-env show {shown.cell.key[:8]}"
    assert (
        check.seconds == pytest.approx(sum(sample.record.seconds for sample in shown.samples)) and check.seconds >= 2.5
    )


@pytest.mark.parametrize(
    ("decision", "state", "level"),
    [
        (Decision.PASS, State.PASSED, None),
        (Decision.FAIL, State.FAILED, Level.ERROR),
        (Decision.INCONCLUSIVE, State.ERROR, Level.WARNING),
        (Decision.NOT_ASKED, State.SKIPPED, Level.NOTICE),
    ],
)
def test_only_a_pass_of_a_gate_passes(decision: Decision, state: State, level: Level | None) -> None:
    line = Line(Question.RACES, decision, "It is so.", "0/19", "1/19", (("bound", 0.226),), "40 more trials.")
    check = of_question(line, row("2.11.0", "4.52.4", "F...", "....").samples)
    assert (check.name, check.state, check.kind, check.level) == ("races", state, decision.value, level)
    assert check.message == "It is so. 40 more trials."
    assert check.evidence.splitlines()[:3] == ["baseline: 0/19", "candidate: 1/19", "bound: 0.226"]
    assert "trials: threads-1 (threads failed)" in check.evidence
