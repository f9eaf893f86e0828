"""The published schemas are those of the code, and a document that lost a key, at any depth, is noticed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from bisect_env.engine.forecast import Forecast
from bisect_env.environments.records import Reason, Unavailable
from bisect_env.inspection.facts import Fact, Facts
from bisect_env.inspection.inspected import Cost
from bisect_env.inspection.records import Scope
from bisect_env.report import bisection_machine, difference, explain_plan, explanation_machine, machine, plan_machine
from bisect_env.report.documents import DOCUMENTS
from bisect_env.report.dry_run import DryRun
from bisect_env.report.schemas import DIALECT, schema
from bisect_env.report.static_facts import Shared, folded
from bisect_env.snapshots import factors
from bisect_env.snapshots.records import Distribution, Snapshot
from tests.report.build import cell, laptop, lock, matrix, row, under
from tests.report.explanations import explanation, raced
from tests.report.findings import culprit, plan, unfinished
from tests.report.plans import planned
from tests.support.schemas import FOLDER, closed, matching, published


def a_matrix() -> dict[str, Any]:
    """With everything that it can have: mitigations and caches too."""
    mitigated = [
        under(under(row("2.11.0", "5.6.0", "FFFF", exposures=9), "mitigation", name), "cache", cache)
        for name, cache in (("none", "cold"), ("warmup", "cold"), ("none", "warm"))
    ]
    rows = [*laptop(), *mitigated]
    return machine.document(rows, matrix(rows), 0.05)


def a_plan() -> dict[str, Any]:
    """Of a cell that can be built, and of one that cannot."""
    can, cannot = cell("2.14.1", "5.8.1"), cell("2.9.9", "5.8.1")
    missing = Unavailable("resolve", Reason.NO_SUCH_VERSION, "no torch 2.9.9")
    dry = DryRun((Forecast(cannot, missing, False, 0, None), Forecast(can, lock(), False, 12, 1.5)), 10, 20)
    facts = Facts(
        Fact(Scope.PROCESS, "flag"),
        Fact(Scope.PROCESS, "compiling", held=True),
        Fact(None, "no such module"),
        Fact(Scope.ABSENT, "annotates nothing", held=False),
    )
    return plan_machine.document("tiny", dry, Shared(folded([(can, "2.14.1", facts)]), Cost(1, 0, 1, 1.0)))


def a_diff() -> dict[str, Any]:
    def side(torch: str, driver: str, name: str) -> Snapshot:
        return Snapshot(name, "pip freeze", distributions=(Distribution("torch", torch),), driver=driver)

    good, bad = side("2.11.0", "570.1", "good.txt"), side("2.14.1", "580.2", "bad.txt")
    return difference.structure(good, bad, factors.difference(good, bad))


AGAIN = "python -m bisect_env.report.schemas docs/schema"
DOCUMENTED = {
    "matrix": a_matrix,
    "matrix-plan": a_plan,
    "bisect": lambda: bisection_machine.document(culprit()),
    "bisect-plan": lambda: bisection_machine.plan(plan()),
    "diff": a_diff,
    "explain-plan": lambda: explain_plan.document(planned()),
    "explain": lambda: explanation_machine.document(explanation(raced())),
}


@pytest.mark.parametrize("name", sorted(DOCUMENTS))
def test_what_is_published_is_what_the_code_says(name: str) -> None:
    made = schema(name)
    Draft202012Validator.check_schema(made)
    assert made["$schema"] == DIALECT and made["$id"] == f"urn:bisect-env:{name}:1"
    known = published(name)
    assert bare(known) == bare(made), f"after a change of a document: {AGAIN}"
    # Older versions of pydantic find fewer words in the code.
    assert set(words(made)) <= set(words(known)), f"after a change of words: {AGAIN}"


def test_nothing_else_is_published() -> None:
    assert sorted(path.stem for path in FOLDER.iterdir()) == sorted(DOCUMENTS)


@pytest.mark.parametrize("name", sorted(DOCUMENTED))
def test_documents_are_what_their_schemas_say(name: str) -> None:
    document = json.loads(json.dumps(DOCUMENTED[name](), allow_nan=False))
    matching(name, document)
    Draft202012Validator(published(name)).validate(document | {"later": "a key of a newer version"})
    assert not Draft202012Validator(closed(published(name))).is_valid(document | {"unknown": 1})


def test_an_unfinished_bisection_is_one_too() -> None:
    matching("bisect", json.loads(json.dumps(bisection_machine.document(unfinished()))))


@pytest.mark.parametrize("name", sorted(DOCUMENTED))
def test_a_key_that_is_missing_is_noticed(name: str) -> None:
    document = json.loads(json.dumps(DOCUMENTED[name]()))
    validator = Draft202012Validator(published(name))
    free = {"levels", "condition", "versions", "pins", "reference", "point", "good", "bad"}
    removed = 0
    for place, holder, key in keys(document):
        if place and place[-1] in free:
            continue  # Names of the user's own: axes, distributions, variables.
        value = holder.pop(key)
        assert not validator.is_valid(document), f"{'.'.join(place)}.{key}"
        holder[key] = value
        removed += 1
    assert removed > 20


def bare(node: Any) -> Any:
    """A schema without its words, and with a constant written in one of the two ways that pydantic's versions have."""
    if isinstance(node, list):
        return [bare(item) for item in node]
    if not isinstance(node, dict):
        return node
    left_out = {"description", "enum"} if "const" in node else {"description"}
    return {key: bare(value) for key, value in node.items() if key not in left_out or isinstance(value, dict)}


def words(node: Any) -> list[str]:
    """The sentences of a schema."""
    if isinstance(node, list):
        return [text for item in node for text in words(item)]
    if not isinstance(node, dict):
        return []
    own = [node["description"]] if isinstance(node.get("description"), str) else []
    return sorted([*own, *(text for value in node.values() for text in words(value))])


def keys(node: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], dict[str, Any], str]]:
    """Every key of every object, with the object and its place; of a list the first item stands for all."""
    if isinstance(node, list):
        yield from (found for item in node[:1] for found in keys(item, place))
    elif isinstance(node, dict):
        for key in list(node):
            yield place, node, key
            yield from keys(node[key], (*place, key))
