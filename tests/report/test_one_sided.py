"""A level that only one side has is written the same everywhere: a variable not set, a distribution not installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisect_env.bisection.log import Header, History
from bisect_env.bisection.records import Specification
from bisect_env.matrix.cells import Condition, ReproducerChoice
from bisect_env.report import bisection, bisection_log, bisection_plan, difference
from bisect_env.report.bisection_words import change, level
from bisect_env.snapshots.factors import Difference, Factor, Held, Kind, shown
from bisect_env.snapshots.records import Snapshot
from tests.report import findings

WORDS = {
    Kind.VARIABLE: "not set",
    Kind.CONDITION: "not set",
    Kind.DISTRIBUTION: "not installed",
    Kind.CACHE: "absent",
    Kind.PYTHON: "not known",
}
SIDE = Snapshot("good.txt", "pip freeze", ())


def everywhere(factor: Factor) -> dict[str, str]:
    """Each text that shows a factor's two levels."""
    asked = Specification(
        SIDE, SIDE, Difference((factor,)), Condition(()), Condition(()), ReproducerChoice("x", ("true",))
    )
    history = History(Header("id", asked, (factor,), 0.0, "1"), (), 0)
    found = findings.culprit(factors=(factor,), versions=None, locks=None)
    return {
        "diff": difference.text(SIDE, SIDE, Difference((factor,))),
        "plan": bisection_plan.describe(findings.plan(factors=(factor,))),
        "plan in Markdown": bisection_plan.describe(findings.plan(factors=(factor,)), "markdown"),
        "report": bisection.report(found),
        "report in Markdown": bisection.report(found, "markdown"),
        "log": bisection_log.describe(history, Path("log.jsonl")),
    }


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("side", ["good", "bad"])
def test_what_a_side_does_not_have(kind: Kind, side: str) -> None:
    good, bad = (None, "3") if side == "good" else ("3", None)
    factor = Factor("THING", kind, good, bad, ())
    assert change(factor) == (f"{WORDS[kind]} -> 3" if side == "good" else f"3 -> {WORDS[kind]}")
    for where, text in everywhere(factor).items():
        flat = " ".join(text.split())
        assert WORDS[kind] in flat, where
        assert "unknown" not in flat and "None" not in flat, where


def test_an_empty_value_is_a_value() -> None:
    factor = Factor("NCCL_DEBUG", Kind.VARIABLE, "", None, ())
    assert change(factor) == '"" -> not set'
    for where, text in everywhere(factor).items():
        assert '""' in text and "not set" in text, where
    assert shown("", Kind.CONDITION) == '""' and level("") == '""'


def test_variables_of_the_two_sides_of_the_smallest_difference() -> None:
    found = findings.culprit(variables=((("OMP_NUM_THREADS", "4"),), ()), locks=None)
    assert "OMP_NUM_THREADS 4 not set" in " ".join(bisection.report(found).split())


def test_which_gpus_are_used_is_held_and_not_set_on_one_side() -> None:
    held = (Held("CUDA_VISIBLE_DEVICES", None, "0", "each host's own matter"), Held("x", None, "1", "why"))
    for text in (bisection.report(findings.culprit(held=held)), bisection_plan.describe(findings.plan(held=held))):
        flat = " ".join(text.split())
        assert "CUDA_VISIBLE_DEVICES not set -> 0: each host's own matter" in flat and "x absent -> 1: why" in flat
