from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from junitparser.xunit2 import JUnitXml

from bisect_env.report.checks import Check, State, of_matrix
from bisect_env.report.junit import document
from tests.report.build import laptop

# Of Jenkins's junit-10.xsd (xunit plugin): attributes and children of each element, those that it demands first.
RESULT: tuple[set[str], set[str], set[str]] = (set(), {"type", "message"}, set())
SHAPE: dict[str, tuple[set[str], set[str], set[str]]] = {
    "testsuites": (set(), {"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors"},
        {"group", "time", "skipped", "timestamp", "hostname", "id", "package", "file", "log", "url"},
        {"testsuite", "properties", "testcase", "system-out", "system-err"},
    ),
    "testcase": (
        {"name"},
        {"time", "classname", "group"},
        {"skipped", "error", "failure", "system-out", "system-err"},
    ),
    "properties": (set(), set(), {"property"}),
    "property": ({"name", "value"}, set(), set()),
    **dict.fromkeys(("failure", "error", "skipped"), RESULT),
    **dict.fromkeys(("system-out", "system-err"), (set(), set(), set())),
}
TIME = re.compile(r"(([0-9]{0,3},)*[0-9]{3}|[0-9]{0,3})*(\.[0-9]*)?")


def checked(text: str) -> ElementTree.Element:
    """The root of a document that has the shape which the schema demands."""
    root = ElementTree.fromstring(text)
    assert root.tag == "testsuites"
    for element in root.iter():
        demanded, allowed, children = SHAPE[element.tag]
        assert demanded <= set(element.attrib) <= demanded | allowed, element.attrib
        assert {child.tag for child in element} <= children
        assert "time" not in element.attrib or element.tag == "testcase" or TIME.fullmatch(element.attrib["time"])
    for suite in root.iter("testsuite"):
        cases = suite.findall("testcase")
        assert int(suite.attrib["tests"]) == len(cases)
        for count, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.attrib[count]) == sum(case.find(tag) is not None for case in cases)
    return root


def test_the_cells_of_a_matrix() -> None:
    rows = laptop()
    root = checked(document("matrix laptop", of_matrix(rows, ()), [("reproducer", "compile_race")], 1_796_000_000.0))
    suite = root.find("testsuite")
    assert suite is not None and suite.attrib["timestamp"] == "2026-11-30T00:53:20"
    cases = {case.attrib["name"]: case for case in suite.findall("testcase")}
    assert list(cases) == [row.cell.id for row in rows]
    race, full = cases["torch-2.11.0_transformers-4.52.4_hot"].find("failure"), cases[rows[2].cell.id]
    assert race is not None and race.attrib["type"] == "RACE" and race.attrib["message"].startswith("RACE 4/4: ")
    assert race.text is not None and "symbolically trace" in race.text and "bisect-env show " in race.text
    assert len(full) == 1 and full[0].tag == "system-out" and (full[0].text or "").startswith("FULL: ")
    error = cases[rows[4].cell.id].find("error")
    assert (
        error is not None and error.attrib["type"] == "UNRESOLVABLE" and "b==2 is asked for" in error.attrib["message"]
    )


def test_another_reader_counts_the_same() -> None:
    read = JUnitXml.fromstring(document("matrix laptop", of_matrix(laptop(), ())))
    assert (read.tests, read.failures, read.errors) == (5, 3, 1)


def test_no_check_is_an_empty_suite() -> None:
    assert checked(document("gate", [])).find("testsuite/testcase") is None


@given(text=st.text(st.characters(exclude_categories=()), max_size=60), state=st.sampled_from(State))
def test_any_text_gives_a_document_that_is_read_back(text: str, state: State) -> None:
    root = checked(document(text, [Check(text, state, text, text, text, 1e-9)], [(text, text)]))
    assert root.find("testsuite/testcase") is not None


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("plain <b>&amp;\" ' ]]>\ttext\n", "plain <b>&amp;\" ' ]]>\ttext\n"),
        ("\x1b[31mred\x00", r"\x1b[31mred\x00"),
        ("half \udc80, none \ufffe, one \U0001f600", r"half \udc80, none \ufffe, one " + "\U0001f600"),
        ("from https://user:hunter2@example.org/simple", "from https://***@example.org/simple"),
    ],
)
def test_what_becomes_of_captured_output(given: str, read: str) -> None:
    case = checked(document("suite", [Check("case", State.FAILED, "RACE", "failed", given)])).find(".//failure")
    assert case is not None and case.text == read
