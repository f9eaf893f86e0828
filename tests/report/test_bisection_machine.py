"""The JSON documents: whole, without secrets, and fit for any parser."""

from __future__ import annotations

import json
from dataclasses import fields

from bisect_env.bisection.records import Finding
from bisect_env.report import bisection_machine
from bisect_env.verdicts.records import Interval
from tests.report import findings


def test_everything_of_a_finding_is_there() -> None:
    document = bisection_machine.document(findings.culprit())
    assert {field.name for field in fields(Finding)} | {"schema"} == set(document)
    again = json.loads(json.dumps(document, allow_nan=False))
    assert again == document
    assert again["answer"] == "culprit" and again["probability"] == 0.97
    assert again["factors"][0]["members"][1] == {
        "name": "triton",
        "good": "3.7.0",
        "bad": "3.4.0",
        "good_source": "",
        "bad_source": "",
    }
    assert again["locks"] == {"good": findings.GOOD_LOCK, "bad": findings.BAD_LOCK}
    assert again["conditions"]["bad"] == {"cache": "cold", "threads": 2}
    assert again["suspects"][0] == {"name": "torch", "probability": 0.97}
    assert again["confirmation"]["bad"]["k"] == 13
    assert again["observations"][0]["point"] == {"torch": "bad"}
    assert again["observations"][0]["trials"] == ["t1", "t2", "t3", "t4", "t5"]


def test_secrets_are_left_out() -> None:
    found = findings.culprit(notes=("index https://user:word@host/simple",))
    text = json.dumps(bisection_machine.document(found))
    assert "hf_secret" not in text and "word@" not in text
    assert bisection_machine.document(found)["variables"]["bad"] == {"HF_TOKEN": "***"}


def test_what_is_not_known_is_null() -> None:
    found = findings.culprit()
    assert found.confirmation is not None
    nothing = Interval(0, 0, float("nan"), float("nan"))
    confirmation = type(found.confirmation)(nothing, nothing, "bad", float("nan"), (), False)
    document = bisection_machine.document(findings.unfinished(confirmation=confirmation))
    assert document["confirmation"]["p_value"] is None and document["locks"] is None and document["commands"] is None
    json.dumps(document, allow_nan=False)


def test_a_plan() -> None:
    document = bisection_machine.plan(findings.plan())
    assert document["schema"] == 1 and document["versions"] == {"torch": 9}
    assert document["unresolvable"] == [{"point": {"torch": "bad"}, "reason": "Because a==1\n  depends on b==2"}]
    assert [factor["kind"] for factor in document["factors"]] == ["distribution", "cache"]
    json.dumps(document, allow_nan=False)
