"""Which factors: distributions, pairs, variables, the compile cache; and ends that are not what they are said to be."""

from __future__ import annotations

import pytest

from bisect_env.bisection.records import Answer, Budget, Finding, Measure, Question, Stage
from tests.bisection.world import Bisections, Listener, Rules

RACE = "tracing flag was set"


def names(found: Finding) -> list[str]:
    return [factor.name for factor in found.factors]


def test_a_variable_is_found_among_packages(bisections: Bisections) -> None:
    for name in ("alpha", "beta"):
        bisections.offer(name, "1.0", "2.0")
    rules: Rules = [{"when": {"OMP_NUM_THREADS": "8"}, "rate": 0.9, "says": RACE}]
    specification = bisections.specification(
        {"alpha": "1.0", "beta": "1.0"},
        {"alpha": "2.0", "beta": "2.0"},
        rules,
        variables=({"OMP_NUM_THREADS": "1"}, {"OMP_NUM_THREADS": "8"}),
    )
    listener = Listener()
    found = bisections.found(specification, listener)
    assert found.answer is Answer.CULPRIT, found.sentence
    assert names(found) == ["OMP_NUM_THREADS"]
    assert found.probability > 0.95
    assert found.signature == f"RuntimeError: {RACE}"
    assert {each.factor for each in found.eliminated} == {"alpha", "beta"}
    assert listener.stages == [Stage.ENDS, Stage.FACTORS, Stage.CONFIRM]
    assert listener.last == found.suspects
    assert listener.last[0] == ("OMP_NUM_THREADS", pytest.approx(1, abs=0.05))
    assert found.confirmation is not None
    assert found.locks is not None and found.locks[0] == found.locks[1]
    assert [dict(values)["OMP_NUM_THREADS"] for values in found.variables] == ["1", "8"]


def test_the_incident_a_deleted_compile_cache_and_restoring_every_package_changes_nothing(
    bisections: Bisections,
) -> None:
    for name in ("transformers", "tokenizers", "triton-lang"):
        bisections.offer(name, "1.0", "2.0")
    cache = bisections.folder / "cache"
    (cache / "triton").mkdir(parents=True)
    (cache / "entry").write_text("compiled")
    rules: Rules = [{"when": {"warm": False}, "rate": 0.8, "says": RACE}]
    versions = ("transformers", "tokenizers", "triton-lang")
    specification = bisections.specification(
        dict.fromkeys(versions, "1.0"),
        dict.fromkeys(versions, "2.0"),
        rules,
        conditions=({"cache": str(cache)}, {"cache": "cold"}),
    )
    found = bisections.found(specification)
    assert found.answer is Answer.CULPRIT, found.sentence
    assert names(found) == ["cache"]
    assert {each.factor for each in found.eliminated} == set(versions)
    assert "compile cache" in found.sentence


def test_a_warmed_cache_is_a_level_too(bisections: Bisections) -> None:
    bisections.offer("alpha", "1.0", "2.0")
    rules: Rules = [{"when": {"warm": False}, "rate": 1, "says": RACE}]
    specification = bisections.specification(
        {"alpha": "1.0"}, {"alpha": "2.0"}, rules, conditions=({"cache": "warm"}, {"cache": "cold"})
    )
    found = bisections.found(specification)
    assert (found.answer, names(found)) == (Answer.CULPRIT, ["cache"])


def test_two_that_only_fail_together(bisections: Bisections) -> None:
    versions = ("alpha", "beta", "gamma", "delta")
    for name in versions:
        bisections.offer(name, "1.0", "2.0")
    rules: Rules = [{"when": {"beta": ">=2", "delta": ">=2"}, "rate": 0.9, "says": RACE}]
    good, bad = dict.fromkeys(versions, "1.0"), dict.fromkeys(versions, "2.0")
    found = bisections.found(bisections.specification(good, bad, rules))
    assert found.answer is Answer.PAIR, found.sentence
    assert sorted(names(found)) == ["beta", "delta"]
    assert found.confirmation is not None and len(found.confirmation.arms) == 6


def test_the_bad_end_that_does_not_fail(bisections: Bisections) -> None:
    bisections.offer("alpha", "1.0", "2.0")
    found = bisections.found(bisections.specification({"alpha": "1.0"}, {"alpha": "2.0"}, []))
    assert found.answer is Answer.NOT_REPRODUCED
    assert "0 of 32 trials" in found.sentence and "below 9 %" in found.sentence


def test_a_good_end_that_fails_as_well(bisections: Bisections) -> None:
    bisections.offer("alpha", "1.0", "2.0")
    rules: Rules = [{"when": {}, "rate": 0.8, "says": RACE}]
    found = bisections.found(bisections.specification({"alpha": "1.0"}, {"alpha": "2.0"}, rules))
    assert found.answer is Answer.GOOD_FAILS
    assert found.trials <= 32


def test_sides_that_do_not_differ(bisections: Bisections) -> None:
    found = bisections.found(bisections.specification({"alpha": "1.0"}, {"alpha": "1.0"}, []))
    assert (found.answer, found.trials) == (Answer.NOTHING, 0)


def test_the_budget_ends_it_with_what_is_known(bisections: Bisections) -> None:
    versions = ("alpha", "beta", "gamma", "delta")
    for name in versions:
        bisections.offer(name, "1.0", "2.0")
    rules: Rules = [{"when": {"beta": ">=2"}, "rate": 0.7, "says": RACE}]
    good, bad = dict.fromkeys(versions, "1.0"), dict.fromkeys(versions, "2.0")
    specification = bisections.specification(good, bad, rules, budget=Budget(trials=20))
    found = bisections.found(specification)
    assert found.answer is Answer.INCONCLUSIVE
    assert found.trials <= 20 and "20 trials" in found.sentence
    # To allow more is to go on, and no trial is run again.
    more = bisections.found(bisections.specification(good, bad, rules, budget=Budget(trials=300)))
    assert (more.answer, more.id) == (Answer.CULPRIT, found.id), more.sentence
    assert more.observations[: len(found.observations)] == found.observations


def test_another_failure_on_the_way_counts_for_neither_side(bisections: Bisections) -> None:
    versions = ("alpha", "beta", "gamma")
    for name in versions:
        bisections.offer(name, "1.0", "2.0")
    rules: Rules = [
        {"when": {"gamma": ">=2", "beta": "<2"}, "rate": 1, "says": "quite another thing"},
        {"when": {"beta": ">=2"}, "rate": 0.9, "says": RACE},
    ]
    good, bad = dict.fromkeys(versions, "1.0"), dict.fromkeys(versions, "2.0")
    found = bisections.found(bisections.specification(good, bad, rules))
    assert (found.answer, names(found)) == (Answer.CULPRIT, ["beta"]), found.sentence
    assert [text for text, _ in found.other_signatures] == ["RuntimeError: quite another thing"]


def test_mixes_that_do_not_resolve_are_known_before_anything_is_built(bisections: Bisections) -> None:
    bisections.offer("alpha", "1.0", requires=["beta<2"])
    bisections.offer("alpha", "2.0", requires=["beta>=2"])
    for name in ("beta", "gamma"):
        bisections.offer(name, "1.0", "2.0")
    rules: Rules = [{"when": {"gamma": ">=2"}, "rate": 1, "says": RACE}]
    versions = ("alpha", "beta", "gamma")
    good, bad = dict.fromkeys(versions, "1.0"), dict.fromkeys(versions, "2.0")
    found = bisections.found(bisections.specification(good, bad, rules))
    assert (found.answer, names(found)) == (Answer.CULPRIT, ["gamma"]), found.sentence
    assert found.skipped and all(not seen.skipped for seen in found.observations)


def test_suspects_that_only_resolve_together_are_taken_apart_by_overrides(bisections: Bisections) -> None:
    bisections.offer("alpha", "1.0", requires=["beta<2"])
    bisections.offer("alpha", "2.0", requires=["beta>=2"])
    for name in ("beta", "gamma"):
        bisections.offer(name, "1.0", "2.0")
    rules: Rules = [{"when": {"beta": ">=2"}, "rate": 1, "says": RACE}]
    versions = ("alpha", "beta", "gamma")
    good, bad = dict.fromkeys(versions, "1.0"), dict.fromkeys(versions, "2.0")
    found = bisections.found(bisections.specification(good, bad, rules))
    assert (found.answer, names(found)) == (Answer.CULPRIT, ["beta"]), found.sentence
    assert any(seen.off_pin for seen in found.observations)
    assert any("break pins" in note for note in found.notes)


def test_a_torch_that_cannot_be_imported_may_be_the_question(bisections: Bisections) -> None:
    bisections.offer("torch", "1.0")
    bisections.offer("torch", "2.0", broken=["2.0"])
    bisections.offer("beta", "1.0", "2.0")
    good, bad = {"torch": "1.0", "beta": "1.0"}, {"torch": "2.0", "beta": "2.0"}
    found = bisections.found(bisections.specification(good, bad, [], imports=["torch"]))
    assert (found.answer, names(found)) == (Answer.CULPRIT, ["torch"]), found.sentence
    assert found.signature is not None and "libnothing" in found.signature


def test_an_end_that_no_resolver_would_make_is_what_it_is(bisections: Bisections) -> None:
    """pip installs what conflicts, with a warning; such a freeze does not resolve."""
    bisections.offer("alpha", "1.0", "2.0", requires=["beta<2"])
    bisections.offer("beta", "1.0", "2.0")
    rules: Rules = [{"when": {"alpha": ">=2"}, "rate": 1, "says": RACE}]
    good, bad = {"alpha": "1.0", "beta": "2.0"}, {"alpha": "2.0", "beta": "2.0"}
    found = bisections.found(bisections.specification(good, bad, rules))
    assert (found.answer, names(found)) == (Answer.CULPRIT, ["alpha"]), found.sentence
    assert all(seen.off_pin for seen in found.observations)


def test_an_end_that_cannot_be_had_is_told(bisections: Bisections) -> None:
    bisections.offer("alpha", "1.0")
    found = bisections.found(bisections.specification({"alpha": "1.0"}, {"alpha": "9.0"}, []))
    assert found.answer is Answer.INCONCLUSIVE
    assert "The bad end cannot be tested" in found.sentence and "alpha==9.0" in found.sentence


@pytest.mark.parametrize(
    ("measure", "words"),
    [
        (Measure.MEMORY_ABOVE, "no trial told its peak memory: this needs a GPU, or a reproducer that reports it"),
        (Measure.THROUGHPUT_BELOW, "no trial told its speed: this needs a reproducer that reports warm steps"),
    ],
)
def test_a_figure_that_no_trial_tells_ends_it_at_once(bisections: Bisections, measure: Measure, words: str) -> None:
    bisections.offer("alpha", "1.0", "2.0")
    asked = bisections.specification({"alpha": "1.0"}, {"alpha": "2.0"}, [], question=Question(measure, 1e9))
    found = bisections.found(asked)
    assert found.answer is Answer.INCONCLUSIVE
    assert words in found.sentence
    assert found.trials == 8


def test_along_an_innocent_is_no_answer_and_says_what_to_do(bisections: Bisections) -> None:
    bisections.offer("alpha", "1.0", "1.5", "2.0")
    bisections.offer("beta", "1.0", "2.0")
    rules: Rules = [{"when": {"beta": ">=2"}, "rate": 0.9, "says": RACE}]
    good, bad = {"alpha": "1.0", "beta": "1.0"}, {"alpha": "2.0", "beta": "2.0"}
    found = bisections.found(bisections.specification(good, bad, rules, along="alpha"))
    assert (found.answer, found.probability, found.versions) == (Answer.NONE, 0.0, None), found.sentence
    assert found.sentence.startswith("alpha alone makes no difference: with everything else at bad ")
    assert found.sentence.endswith("Leave out --along: then all that differs is searched.")
    assert not any(level == "1.5" for seen in found.observations for _, level in seen.point)


def test_several_trials_at_once(bisections: Bisections) -> None:
    for name in ("alpha", "beta"):
        bisections.offer(name, "1.0", "2.0")
    rules: Rules = [{"when": {"beta": ">=2"}, "rate": 0.8, "says": RACE}]
    good, bad = {"alpha": "1.0", "beta": "1.0"}, {"alpha": "2.0", "beta": "2.0"}
    found = bisections.found(bisections.specification(good, bad, rules, at_once=2))
    assert (found.answer, names(found)) == (Answer.CULPRIT, ["beta"]), found.sentence
