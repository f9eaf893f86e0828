"""The published schemas are those of the code, and a document that lost a key, at any depth, is noticed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from bisect_env.report import bisection_machine, difference, machine
from bisect_env.report.documents import DOCUMENTS
from bisect_env.report.schemas import DIALECT, schema
from bisect_env.snapshots import factors
from bisect_env.snapshots.records import Distribution, Snapshot
from tests.report.build import laptop, matrix, row, under
from tests.report.findings import culprit, plan, unfinished
from tests.support.schemas import FOLDER, closed, matching, published


def a_matrix() -> dict[str, Any]:
    """With everything that it can have: mitigations and caches too."""
    mitigated = [
        under(under(row("2.11.0", "5.6.0", "FFFF", exposures=9), "mitigation", name), "cache", cache)
        for name, cache in (("none", "cold"), ("warmup", "cold"), ("none", "warm"))
    ]
    rows = [*laptop(), *mitigated]
    return machine.document(rows, matrix(rows), 0.05)


def a_diff() -> dict[str, Any]:
    def side(torch: str, driver: str, name: str) -> Snapshot:
        return Snapshot(name, "pip freeze", distributions=(Distribution("torch", torch),), driver=driver)

    good, bad = side("2.11.0", "570.1", "good.txt"), side("2.14.1", "580.2", "bad.txt")
    return difference.structure(good, bad, factors.difference(good, bad))


DOCUMENTED = {
    "matrix": a_matrix,
    "bisect": lambda: bisection_machine.document(culprit()),
    "bisect-plan": lambda: bisection_machine.plan(plan()),
    "diff": a_diff,
}


@pytest.mark.parametrize("name", sorted(DOCUMENTS))
def test_what_is_published_is_what_the_code_says(name: str) -> None:
    made = schema(name)
    Draft202012Validator.check_schema(made)
    assert made["$schema"] == DIALECT and made["$id"] == f"urn:bisect-env:{name}:1"
    assert published(name) == made, "after a change of a document: python -m bisect_env.report.schemas docs/schema"


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


def keys(node: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], dict[str, Any], str]]:
    """Every key of every object, with the object and its place; of a list the first item stands for all."""
    if isinstance(node, list):
        yield from (found for item in node[:1] for found in keys(item, place))
    elif isinstance(node, dict):
        for key in list(node):
            yield place, node, key
            yield from keys(node[key], (*place, key))
