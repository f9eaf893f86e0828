"""Along released versions: skips, ranges, fixes, groups, commits, and histories without one change point."""

from __future__ import annotations

from collections.abc import Sequence

from bisect_env.bisection.records import Answer, Finding, Stage
from bisect_env.snapshots.records import Distribution
from tests.bisection.world import Bisections, Listener, Rules

RACE = "tracing flag was set"
EIGHT = tuple(f"{number}.0" for number in range(1, 9))


def at(version: str, **also: str) -> dict[str, object]:
    return {"when": {"alpha": f">={version}", **also}, "rate": 0.9, "says": RACE}


def along(bisections: Bisections, rules: Rules, good: str = "1.0", bad: str = "8.0", **options: object) -> Finding:
    return bisections.found(bisections.specification({"alpha": good}, {"alpha": bad}, rules, **options))


def test_the_version_of_the_culprit_is_found_with_the_rest_held(bisections: Bisections) -> None:
    bisections.offer("alpha", *EIGHT)
    bisections.offer("beta", "1.0", "2.0")
    specification = bisections.specification(
        {"alpha": "1.0", "beta": "1.0"}, {"alpha": "8.0", "beta": "2.0"}, [at("6.0")]
    )
    listener = Listener()
    found = bisections.found(specification, listener)
    assert found.answer is Answer.CULPRIT, found.sentence
    assert found.versions is not None
    assert (found.versions.last_good, found.versions.first_bad) == ("5.0", "6.0")
    assert listener.stages == [Stage.ENDS, Stage.FACTORS, Stage.VERSIONS, Stage.CONFIRM]
    assert found.locks is not None
    assert ["alpha==5.0" in found.locks[0], "alpha==6.0" in found.locks[1]] == [True, True]
    # Nothing but the culprit differs between the two: the other one is at the side that shows more by itself.
    assert found.confirmation is not None
    beta = {"good": "beta==1.0", "bad": "beta==2.0"}[found.confirmation.background]
    assert all(beta in lock for lock in found.locks)
    assert found.commands is not None and found.commands[0] != found.commands[1]


def test_a_few_false_failures_do_not_lead_astray(bisections: Bisections) -> None:
    bisections.offer("alpha", *EIGHT)
    found = along(bisections, [at("3.0"), {"when": {}, "rate": 0.02, "says": RACE}])
    assert found.versions is not None and found.versions.first_bad == "3.0", found.sentence


def test_versions_that_do_not_resolve_can_be_blamed_and_make_a_range(bisections: Bisections) -> None:
    bisections.offer("alpha", "1.0", "2.0", "3.0", "6.0", "7.0", "8.0")
    bisections.offer("alpha", "4.0", "5.0", requires=["nowhere-to-be-found"])
    found = along(bisections, [at("5.0")])
    assert found.answer is Answer.RANGE, found.sentence
    assert found.versions is not None
    assert found.versions.candidates == ("4.0", "5.0", "6.0")
    assert {"5.0" in point for point, _ in found.skipped} == {True, False}


def test_an_import_error_in_the_middle_is_a_skip(bisections: Bisections) -> None:
    bisections.offer("alpha", *EIGHT, broken=["4.0"])
    found = along(bisections, [at("4.0")], imports=["alpha"])
    assert found.answer is Answer.RANGE, found.sentence
    assert found.versions is not None and found.versions.candidates == ("4.0", "5.0")
    assert any("libnothing" in text for text, _ in found.other_signatures)


def test_another_failure_of_some_versions_is_not_the_question(bisections: Bisections) -> None:
    bisections.offer("alpha", *EIGHT)
    other = {"when": {"alpha": "==3.0"}, "rate": 0.5, "says": "quite another thing"}
    found = along(bisections, [other, at("6.0")])
    assert found.versions is not None and found.versions.first_bad == "6.0", found.sentence


def test_it_broke_was_repaired_and_broke_again(bisections: Bisections) -> None:
    bisections.offer("alpha", *(f"{number}.0" for number in range(1, 13)))
    broken = [{"when": {"alpha": f"=={number}.0"}, "rate": 1, "says": RACE} for number in (3, 4, 5, 9, 10, 11, 12)]
    found = along(bisections, list(broken), bad="12.0")
    assert found.answer in (Answer.MISFIT, Answer.CULPRIT), found.sentence
    if found.answer is Answer.CULPRIT:
        # One of the two breaks, and a true one: what lies beyond was never asked.
        assert found.versions is not None and found.versions.first_bad in ("3.0", "9.0")


def test_the_version_that_repaired_it(bisections: Bisections) -> None:
    bisections.offer("alpha", *EIGHT)
    rules: Rules = [{"when": {"alpha": "<6.0"}, "rate": 0.9, "says": RACE}]
    found = along(bisections, rules, good="8.0", bad="1.0", find_fix=True)
    assert found.answer is Answer.CULPRIT
    assert "alpha 6.0 repaired it (5.0 is the last version that fails)" in found.sentence
    assert found.confirmation is not None
    bad, good = found.confirmation.bad, found.confirmation.good
    assert f"{bad.k} of {bad.n} fail before it, and {good.k} of {good.n} with it." in found.sentence


def test_ends_that_were_exchanged_are_told_so(bisections: Bisections) -> None:
    bisections.offer("alpha", *EIGHT)
    rules: Rules = [{"when": {"alpha": "<6.0"}, "rate": 0.9, "says": RACE}]
    found = along(bisections, rules)
    assert found.answer is Answer.GOOD_FAILS
    assert "exchange --good and --bad" in found.sentence


def test_a_group_is_taken_apart_against_its_pins(bisections: Bisections) -> None:
    for number in (1, 2, 3):
        bisections.offer("head", f"{number}.0", requires=[f"helper=={number}.0", f"other=={number}.0"])
    bisections.offer("helper", "1.0", "2.0", "3.0")
    bisections.offer("other", "1.0", "2.0", "3.0")
    rules: Rules = [{"when": {"helper": ">=2.0"}, "rate": 1, "says": RACE}]

    def pins(distribution: Distribution) -> Sequence[str]:
        version = distribution.version
        return [f"helper=={version}", f"other=={version}"] if distribution.name == "head" else []

    versions = ("head", "helper", "other")
    specification = bisections.specification(
        dict.fromkeys(versions, "1.0"), dict.fromkeys(versions, "3.0"), rules, pins=pins
    )
    assert len(specification.difference.factors) == 1
    listener = Listener()
    found = bisections.found(specification, listener)
    assert Stage.SPLIT in listener.stages
    assert [factor.name for factor in found.factors] == ["helper"], found.sentence
    assert found.versions is not None
    assert (found.versions.distribution, found.versions.first_bad) == ("helper", "2.0")
    assert any(seen.off_pin for seen in found.observations)
