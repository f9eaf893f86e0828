"""Checks as JUnit XML, as Jenkins, GitLab, GitHub's actions and most other services read it. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from junitparser import Error, Failure, Skipped
from junitparser.xunit2 import JUnitXml, TestCase, TestSuite

from bisect_env.matrix.urls import without_credentials
from bisect_env.report.checks import Check, State

_UNFIT = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What no XML document may hold, not even escaped (XML 1.0, production 2): most control characters, halves of pairs."""
_RESULTS = {State.FAILED: Failure, State.ERROR: Error, State.SKIPPED: Skipped}


def document(name: str, checks: Sequence[Check], facts: Sequence[tuple[str, str]] = (), began: float = 0.0) -> str:
    """One suite, a case a check; valid against Jenkins's ``junit-10.xsd``.

    Characters that XML has no place for are written as in Python's source, ``\\x1b``; URLs lose their credentials.

    Args:
        name: of the suite, ``matrix laptop``; class name of its cases.
        checks: in their order.
        facts: properties of the suite.
        began: Unix time of the first trial; 0: there was none.
    """
    suite = TestSuite(_fit(name))
    if began:
        suite.timestamp = datetime.fromtimestamp(began, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    for key, value in facts:
        suite.add_property(_fit(key), _fit(value))
    suite.add_testcases([_case(name, check) for check in checks])
    root = JUnitXml("bisect-env")
    root.add_testsuite(suite)
    root.update_statistics()
    text: bytes = root.tostring()
    return text.decode()


def _case(group: str, check: Check) -> TestCase:
    case = TestCase(_fit(check.name), _fit(group), round(check.seconds, 3))
    if check.state is State.PASSED:
        case.system_out = _fit(f"{check.message}\n{check.evidence}")
        return case
    result = _RESULTS[check.state](_fit(check.message), _fit(check.kind))
    result.text = _fit(check.evidence)
    case.result = result
    return case


def _fit(text: str) -> str:
    return _UNFIT.sub(lambda found: found[0].encode("unicode_escape").decode(), without_credentials(text))
