"""A finding as a report to read: what it says first, what it rests on, and that nothing of a message is markup."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from bisect_env.bisection.records import Answer, Finding, VersionRange
from bisect_env.report import bisection, bisection_plan
from bisect_env.report.bisection_words import point, probability
from bisect_env.report.pieces import Section, Verbatim, markdown, text
from bisect_env.snapshots.factors import Change, of_members
from bisect_env.words import lasting
from tests.report import findings


def test_the_sentence_comes_first_and_everything_that_it_rests_on_follows() -> None:
    report = bisection.report(findings.culprit(), width=100, files=("x/good.lock.txt", "x/bad.lock.txt"))
    assert report.startswith("torch 2.11.0 is to blame (97 %)")
    for words in (
        "culprit  torch 2.14.1 -> 2.11.0 (with it triton 3.7.0 -> 3.4.0)",
        "torch    2.12.0 is the last that does not fail, 2.11.0 the first that does (over 99 %)",
        "13/20 (41-85 %)",
        "0/20 (0-17 %)",
        "p below 0.0001 (exact, one-sided)",
        "triton    3.7.0    3.4.0",
        "cache     warm     cold",
        "good side's lock  x/good.lock.txt",
        "    bisect-env show bad",
        "- numpy, jinja2 (each below 1 % left): 2 of 12 fail with it at its good level",
        "- driver 550.54 -> 570.10: a driver belongs to the host",
        "- numpy bad, the rest good: no wheel of numpy 1.9 for Python 3.12",
        "- in 2 trials: MemoryError: other",
        "https://github.com/pytorch/pytorch/compare/v2.12.0...v2.11.0",
        "61 trials, 7 environments built, 13 min",
    ):
        assert words in report or words in " ".join(report.split()), words
    assert "Still suspected" not in report, "there is a culprit"
    assert "numpy==2.3.0" not in report, "what is equal is no difference, and the locks are files"
    assert max(map(len, report.splitlines())) <= 100


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal_but_for_what_is_copied(width: int) -> None:
    for line in bisection.report(findings.culprit(), width=width).splitlines():
        assert len(line) <= width or "://" in line or len(line.split()) == 2, line


def test_a_secret_is_never_shown() -> None:
    for form in bisection.FORMATS:
        assert "hf_secret" not in bisection.report(findings.culprit(), form)


def test_markdown_has_the_locks_and_every_batch() -> None:
    report = bisection.report(findings.culprit(), "markdown")
    assert "## Confirmed on fresh trials" in report and "| should fail " in report
    assert "<summary>Lock of the bad side, without hashes</summary>\n\n```\ntorch==2.11.0\ntriton==3.4.0\n" in report
    assert "   3  factors   torch bad, the rest good: 3 of 4 fail, 1 trial not counted" in report
    assert "   4  factors   numpy bad, the rest good: cannot be tested: no matching wheel" in report
    assert "```sh\nbisect-env show bad\n```" in report
    assert report.count("<details>") == report.count("</details>") == 3


def test_nothing_of_a_message_is_markup() -> None:
    message = "TypeError: <b>*a* | `b` __c__ [d](e)</b>"
    report = bisection.report(findings.culprit(signature=message, other_signatures=((message, 1),)), "markdown")
    assert r"&lt;b&gt;\*a\*" in report and "<b>" not in report and "[d](e)" not in report
    fenced = markdown([Section("", (Verbatim("", "```\ninside"),))])
    assert fenced.startswith("````\n") and fenced.endswith("\n````")


def test_without_an_answer_the_suspects_are_listed() -> None:
    report = bisection.report(findings.unfinished())
    assert report.startswith("No answer within the budget")
    assert re.search(r"^torch +61 %$", report, re.MULTILINE) and "and 13 more, 25 % together" in report
    for title in ("Cleared", "Held", "Smallest", "Confirmed", "reproduces"):
        assert title not in report, f"{title}: there is nothing to be said"


def test_what_was_not_confirmed_is_said_in_capitals() -> None:
    found = findings.culprit()
    assert found.confirmation is not None
    report = bisection.report(replace(found, confirmation=replace(found.confirmation, confirmed=False, p_value=0.4)))
    assert "NOT confirmed on fresh trials" in report and "p = 0.4" in report
    certain = bisection.report(replace(found, confirmation=replace(found.confirmation, p_value=0.0034)))
    assert "p = 0.0034" in " ".join(certain.split())


def test_ranges_of_versions_and_commits() -> None:
    versions = VersionRange("torch", "2.11.0", "2.12.0", ("2.12.0", "2.12.1", "2.13.0"), "bad", 0.9)
    several = findings.culprit(answer=Answer.RANGE, versions=versions, commits=findings.commits("a" * 40, "b" * 40))
    report = bisection.report(several, width=200)
    assert "any of 2.12.0, 2.12.1, 2.13.0 may be the first" in report
    assert "one of aaaaaaaaaaaa, bbbbbbbbbbbb, after 000000000000" in report
    one = bisection.report(findings.culprit(commits=findings.commits("a" * 40)), width=200)
    assert "aaaaaaaaaaaa (Faster masks), after 000000000000, of ../transformers (98 %)" in one


def test_what_is_perhaps_needed_too_and_the_versions_of_a_pair() -> None:
    setuptools = of_members((Change("setuptools", "84.2.1", "81.0.0"),))
    perhaps = bisection.report(findings.culprit(perhaps_with=(setuptools,)), width=200)
    assert "perhaps only with  setuptools 84.2.1 -> 81.0.0: at its bad level throughout" in perhaps
    second = VersionRange("triton", "3.4.0", "3.5.0", ("3.5.0",), "bad", 0.97)
    pair = bisection.report(findings.culprit(answer=Answer.PAIR, second_versions=second), width=200)
    assert "3.4.0 is the last that does not fail, 3.5.0 the first that does (97 %)" in pair
    assert "2.12.0 is the last that does not fail" in pair


def test_nothing_is_ever_called_certain() -> None:
    assert [probability(value) for value in (1.0, 0.9951, 0.97, 0.5, 0.012, 0.0001, 0.0)] == [
        "over 99 %",
        "over 99 %",
        "97 %",
        "50 %",
        "1 %",
        "below 1 %",
        "below 1 %",
    ]


def test_points_and_times_in_words() -> None:
    assert point(()) == "the good end"
    assert point((("a", "bad"), ("b", "bad")), "ab") == "the bad end"
    assert point((("a", "bad"), ("b", "bad")), "abc") == "a, b bad, the rest good"
    assert point(tuple((name, "bad") for name in "abcde")) == "a, b, c and 2 more bad"
    assert point(tuple((name, "bad") for name in "abcde"), "abcdefg") == "all bad but f, g"
    assert point((("torch", "2.12.0"),)) == "torch 2.12.0"
    assert point((("a", "bad"), ("b", "bad"), ("torch", "2.12.0"))) == "torch 2.12.0, 2 more bad"
    assert [lasting(value) for value in (0.4, 89, 90, 754, 5399, 11_100)] == [
        "0 s",
        "89 s",
        "2 min",
        "13 min",
        "1 h 30 min",
        "3 h 5 min",
    ]


def test_a_plan() -> None:
    report = bisection_plan.describe(findings.plan(), width=100)
    assert report.startswith("2 suspects; 6 environments resolved, 1 of them impossible. Nothing was built or run.")
    for words in (
        "torch 2.14.1 -> 2.11.0, and with it triton 3.7.0 -> 3.4.0",
        "- torch bad, the rest good: Because a==1 depends on b==2",
        "- driver 550.54 -> 570.10: a driver belongs to the host",
        "25 trials (95 of 100 times at most 51) in 5 environments",
        "1.2 GB",
        "Time: not known yet",
    ):
        assert words in re.sub(r"\n(?! *-)", " ", report) or words in report, words
    assert "about 12 min" in bisection_plan.describe(findings.plan(seconds=720.0)).replace("\n", " ")
    assert bisection_plan.describe(findings.plan(factors=())).startswith("Nothing to bisect")
    assert "| torch " in bisection_plan.describe(findings.plan(), "markdown")


def test_an_empty_section_has_no_title() -> None:
    assert text([Section("Title", ())], 80) == "" and markdown([Section("Title", ())]) == ""


def test_a_commit_is_shown_by_its_hash_and_not_by_the_beginning_of_its_url() -> None:
    url = "git+https://github.com/huggingface/transformers@{}#subdirectory=src"
    named = replace(findings.commits(url.format("1" * 40), url.format("2" * 40)), last_good=url.format("3" * 40))
    report = bisection.report(findings.culprit(commits=named), width=200)
    assert f"one of {'1' * 12}, {'2' * 12}, after {'3' * 12}, of ../transformers" in report
    alone = replace(findings.commits(url.format("1" * 40)), last_good="4.52")
    report = bisection.report(findings.culprit(commits=alone), width=200)
    assert f"{'1' * 12} (Faster masks), after 4.52, of" in report


def test_what_was_never_begun_has_no_log() -> None:
    assert "bisect log" not in bisection.report(Finding("", Answer.NOTHING, "Nothing to bisect.", 0.0), width=100)
