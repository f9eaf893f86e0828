from __future__ import annotations

import re
from urllib.parse import unquote

from hypothesis import given
from hypothesis import strategies as st

from bisect_env.report.checks import Check, Level, State, of_matrix
from bisect_env.report.github import CUT, LIMIT, MOST, commands, summary
from bisect_env.verdicts.records import Headline
from tests.report.build import laptop

COMMAND = re.compile(r"::(error|warning|notice) ((?:\w+=[^,:]*,?)+)::(.*)")


def loud(count: int, level: Level = Level.ERROR, kind: str = "RACE") -> list[Check]:
    return [Check(f"cell-{number}", State.FAILED, kind, "told", level=level, weight=-number) for number in range(count)]


def test_the_loudest_first_and_what_passed_not_at_all() -> None:
    lines = commands("matrix laptop", of_matrix(laptop(), {Headline.DENSE}), "matrices/laptop.yaml")
    read = [COMMAND.fullmatch(line) for line in lines]
    assert [found and found[1] for found in read] == ["error", "warning", "warning", "warning"]
    first = lines[0]
    name = "torch-2.14.1_transformers-5.8.1_hot"
    assert first.startswith(f"::error file=matrices/laptop.yaml,title=matrix laptop%3A {name}::DENSE 31 %25: ")
    assert "title=matrix laptop%3A torch-2.15.0" in lines[-1], "what cannot be had comes after what races"
    assert all("file=" not in line for line in commands("matrix", of_matrix(laptop(), ())))


def test_no_more_than_are_shown_and_the_rest_is_named() -> None:
    exact = commands("m", loud(MOST) + loud(MOST, Level.WARNING))
    assert len(exact) == 2 * MOST and not any("more::" in line for line in exact)
    lines = commands("m", loud(MOST + 3))
    assert len(lines) == MOST and "title=m%3A cell-12::" in lines[0], "the lowest weight first"
    assert lines[-1] == "::error title=m%3A 4 more::cell-3 (RACE), cell-2 (RACE), cell-1 (RACE), cell-0 (RACE)"


@given(st.text(st.characters(exclude_categories=()), max_size=80), st.text(max_size=20))
def test_no_text_ends_a_command_or_begins_another(text: str, title: str) -> None:
    [line] = commands(title, [Check(text, State.FAILED, text, text, level=Level.ERROR)], text)
    found = COMMAND.fullmatch(line)
    assert found is not None and not re.search(r"[\r\n\x00-\x08]", line)
    assert re.fullmatch(r"(%(25|0D|0A)|[^%])*", found[3])
    # What the runner undoes gives the message back, its white space apart.
    assert "::" not in unquote(found[3]) or "::" in text


def test_credentials_do_not_reach_an_annotation_or_the_summary() -> None:
    text = "cannot fetch https://user:hunter2@example.org/simple"
    assert "hunter2" not in commands("m", [Check("c", State.ERROR, "k", text, level=Level.ERROR)])[0]
    assert b"hunter2" not in summary(text)


@given(st.integers(0, 2000), st.integers(0, LIMIT + 10))
def test_a_summary_never_exceeds_its_limit(lines: int, taken: int) -> None:
    text = "\n".join(["a line of a report, \u00e9\U0001f600, as long as most of them are in reality" * 9] * lines)
    found = summary(text, taken)
    assert len(found) + taken <= max(LIMIT, taken)
    whole = f"{text}\n".encode()
    assert found == whole or not found or (found.endswith(CUT) and whole.startswith(found[: -len(CUT)]))
    found.decode()


def test_a_summary_of_what_is_no_text() -> None:
    assert summary("half \udc80") == b"half \\udc80\n"
