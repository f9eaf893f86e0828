"""One difference forces another along: the bad engine requires a helper that is older than the good side's."""

from __future__ import annotations

import pytest

from bisect_env.bisection.records import Answer, Finding, Question, Stage
from tests.bisection.world import Bisections, Rules

RACE = "tracing flag was set"
GOOD = {"helper": "84.0", "engine": "2.13", "other": "1.0"}
BAD = {"helper": "81.0", "engine": "2.11", "other": "2.0"}


@pytest.fixture
def world(bisections: Bisections) -> Bisections:
    bisections.offer("helper", "81.0", "82.0", "84.0")
    bisections.offer("engine", "2.11", requires=["helper<82"])
    bisections.offer("engine", "2.12", "2.13", requires=["helper>=80"])
    bisections.offer("other", "1.0", "2.0")
    return bisections


def names(found: Finding) -> list[str]:
    return [factor.name for factor in found.factors]


def overridden(found: Finding) -> set[Stage]:
    return {seen.stage for seen in found.observations if seen.off_pin}


def test_what_forces_the_other_is_told_from_it_by_overriding_and_walked_with_its_pins_kept(world: Bisections) -> None:
    rules: Rules = [{"when": {"engine": "<2.13"}, "rate": 0.9, "says": RACE}]
    found = world.found(world.specification(GOOD, BAD, rules))
    assert (found.answer, names(found), found.perhaps_with) == (Answer.CULPRIT, ["engine"], ()), found.sentence
    assert found.versions is not None
    assert (found.versions.last_good, found.versions.first_bad) == ("2.13", "2.12")
    assert {each.factor for each in found.eliminated} >= {"helper"}
    # Only the one mix that no installer would make was overridden; the versions were walked beside the old helper.
    assert overridden(found) == {Stage.SPLIT}
    (note,) = [note for note in found.notes if "does not resolve" in note]
    assert note.startswith("engine 2.11 with helper 84.0 does not resolve (")
    assert "helper<82" in note and "overridden: " in note and note.endswith("trials fail")


def test_what_is_forced_along_is_to_blame(world: Bisections) -> None:
    rules: Rules = [{"when": {"helper": "<84"}, "rate": 0.9, "says": RACE}]
    found = world.found(world.specification(GOOD, BAD, rules))
    assert (found.answer, names(found)) == (Answer.CULPRIT, ["helper"]), found.sentence
    assert found.versions is not None
    # Beside the bad engine its newer versions do not resolve, so that it is walked beside the good one.
    assert (found.versions.last_good, found.versions.first_bad, found.versions.background) == ("84.0", "82.0", "good")
    assert overridden(found) == set()


def test_both_are_needed_and_both_are_walked(world: Bisections) -> None:
    rules: Rules = [{"when": {"engine": "<2.13", "helper": "<84"}, "rate": 0.9, "says": RACE}]
    found = world.found(world.specification(GOOD, BAD, rules))
    assert (found.answer, names(found)) == (Answer.PAIR, ["engine", "helper"]), found.sentence
    assert found.versions is not None and found.second_versions is not None
    assert (found.versions.distribution, found.versions.first_bad) == ("engine", "2.12")
    assert (found.second_versions.distribution, found.second_versions.first_bad) == ("helper", "82.0")
    assert "engine 2.12 (2.13 is the last good version) and helper 82.0 (84.0 is" in found.sentence
    assert found.confirmation is not None and found.confirmation.confirmed and len(found.confirmation.arms) == 6
    assert found.locks is not None and "engine==2.13" in found.locks[0] and "helper==82.0" in found.locks[1]


@pytest.mark.parametrize("needs", [{}, {"helper": "<84"}])
def test_where_even_overriding_tells_nothing_what_is_needed_is_named_and_walked(
    world: Bisections, needs: dict[str, str]
) -> None:
    rules: Rules = [
        {"when": {"engine": "<2.12", "helper": ">=82"}, "rate": 1, "says": "the engine needs the old helper"},
        {"when": {"engine": "<2.13", **needs}, "rate": 0.9, "says": RACE},
    ]
    found = world.found(world.specification(GOOD, BAD, rules))
    assert (found.answer, names(found)) == (Answer.CULPRIT, ["engine"]), found.sentence
    assert [factor.name for factor in found.perhaps_with] == ["helper"]
    assert "perhaps only together with helper 84.0 -> 81.0" in found.sentence
    assert found.versions is not None and found.versions.first_bad == "2.12"
    assert found.confirmation is not None and found.confirmation.confirmed
    assert any("no trial of it says anything" in note or "only other failures" in note for note in found.notes)


def test_groups_that_force_each_other_are_told_apart_and_then_taken_apart(bisections: Bisections) -> None:
    """The engine brings its kernels along, models their tokens; the bad engine excludes the good models."""
    for number in ("1.0", "2.0"):
        bisections.offer("kernels", number)
        bisections.offer("tokens", number)
        limit = "models<2" if number == "2.0" else "models"
        bisections.offer("engine", number, requires=[f"kernels=={number}", limit])
        bisections.offer("models", number, requires=[f"tokens=={number}"])
    good = {"engine": "1.0", "kernels": "1.0", "models": "2.0", "tokens": "2.0"}
    bad = {"engine": "2.0", "kernels": "2.0", "models": "1.0", "tokens": "1.0"}
    requires = {
        "engine": lambda version: [f"kernels=={version}"],
        "models": lambda version: [f"tokens=={version}"],
    }
    rules: Rules = [{"when": {"kernels": ">=2"}, "rate": 0.9, "says": RACE}]
    specification = bisections.specification(
        good, bad, rules, pins=lambda each: requires.get(each.name, lambda version: [])(each.version)
    )
    assert {factor.name: len(factor.members) for factor in specification.difference.factors} == {
        "engine": 2,
        "models": 2,
    }
    found = bisections.found(specification)
    assert (found.answer, names(found)) == (Answer.CULPRIT, ["kernels"]), found.sentence
    assert any(note.startswith("engine 2.0 with models 2.0 does not resolve (") for note in found.notes)


def test_neither_can_be_without_the_other_and_overriding_tells_nothing(bisections: Bisections) -> None:
    bisections.offer("alpha", "1.0", requires=["beta<2"])
    bisections.offer("alpha", "2.0", requires=["beta>=2"])
    bisections.offer("beta", "1.0", "2.0")
    rules: Rules = [
        {"when": {"alpha": ">=2", "beta": "<2"}, "rate": 1, "says": "another thing"},
        {"when": {"alpha": "<2", "beta": ">=2"}, "rate": 1, "says": "another thing"},
        {"when": {"beta": ">=2"}, "rate": 0.9, "says": RACE},
    ]
    found = bisections.found(
        bisections.specification({"alpha": "1.0", "beta": "1.0"}, {"alpha": "2.0", "beta": "2.0"}, rules)
    )
    assert (found.answer, found.perhaps_with) == (Answer.RANGE, ()), found.sentence
    assert found.sentence.startswith("One of alpha and beta, which cannot be told apart here")


@pytest.mark.parametrize("name", ["torch", "engine"])
def test_an_overridden_mix_that_cannot_be_imported_blames_nobody_whatever_counts_as_a_failure(
    bisections: Bisections, name: str
) -> None:
    """Torch is imported before there is any trial, another distribution by the trial itself."""
    bisections.offer("helper", "1.0", "2.0")
    bisections.offer(name, "1.0", requires=["helper>=1"])
    text = (
        "import importlib.metadata\n"
        "if importlib.metadata.version('helper') != '1.0':\n"
        "    raise ImportError('undefined symbol')\n"
    )
    wheel = bisections.wheels.wheel(name, "2.0", requires=["helper<2"], files={f"{name}/__init__.py": text})
    bisections.index.add(wheel)
    rules: Rules = [{"when": {name: ">=2", "helper": "<2"}, "rate": 0.9, "says": RACE}]
    good, bad = {name: "1.0", "helper": "2.0"}, {name: "2.0", "helper": "1.0"}
    found = bisections.found(
        bisections.specification(good, bad, rules, imports=[name], question=Question(any_failure=True))
    )
    assert (found.answer, names(found)) == (Answer.CULPRIT, [name]), found.sentence
    assert [factor.name for factor in found.perhaps_with] == ["helper"]
    assert not any(seen.off_pin and seen.failures for seen in found.observations)
