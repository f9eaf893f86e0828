"""Versions that no Python of the bisection can have: never resolved, never tried, and still to blame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bisect_env.bisection.concluding import conclude
from bisect_env.bisection.log import Answer, Candidates
from bisect_env.bisection.records import Answer as Kind
from bisect_env.bisection.records import Levels
from bisect_env.bisection.stages import Course
from bisect_env.bisection.wants import Check, Trials, Want
from tests.bisection.simulated import World, factor, number, specification
from tests.bisection.world import Bisections, Rules

VERSIONS = tuple(str(at) for at in range(1, 10))
WHY = "it has no wheel for Python 3.11.4 on linux-x86_64, and no source"


@dataclass
class Lacking(World):
    """A world in which some versions are known not to install."""

    lacking: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        self.asked: list[Levels] = []

    def answer(self, want: Want) -> Answer:
        if isinstance(want, Check | Trials):
            self.asked += want.points
        found = super().answer(want)
        if isinstance(found, Candidates):
            return replace(found, unusable=tuple((version, WHY) for version in self.lacking))
        return found


def course(first_bad: int, lacking: tuple[str, ...], seed: int, factors: int) -> tuple[Course, Lacking]:
    def rate(chosen: Mapping[str, str]) -> float:
        return float(number(chosen, "p00", VERSIONS) >= first_bad)

    world = Lacking(rate, seed, VERSIONS, lacking=lacking)
    every = [factor("p00", "1", "9"), *(factor(f"p{at:02}") for at in range(1, factors))]
    asked = specification(every, seed=seed)
    return world.run(Course(asked, asked.difference.factors)), world


def test_they_are_neither_resolved_nor_tried_and_the_answer_is_the_smallest_range() -> None:
    for factors in (1, 3):
        for seed in range(5):
            run, world = course(5, ("4", "5", "6"), seed, factors)
            assert not {dict(point).get("p00") for point in world.asked} & {"4", "5", "6"}
            found = conclude(run, "r", 0.0)
            assert found.answer is Kind.RANGE, found.sentence
            assert found.versions is not None
            assert (found.versions.last_good, found.versions.first_bad) == ("3", "7")
            assert found.versions.candidates == ("4", "5", "6", "7")
            assert [why for _, why in found.skipped] == [WHY] * 3, "of the side that everything else is held at"


def test_those_elsewhere_do_not_matter() -> None:
    run, world = course(5, ("2", "8"), 1, 2)
    assert run.versions is not None and (run.versions.last_good, run.versions.first_bad) == ("5", "6")
    assert "2" not in {dict(point).get("p00") for point in world.asked}


def test_real_ones_cost_no_resolution(bisections: Bisections) -> None:
    bisections.offer("alpha", "1.0", "1.1", "1.4", "2.0")
    for version in ("1.2", "1.3"):
        bisections.index.add(bisections.wheels.wheel("alpha", version, tag="cp27-cp27m-linux_x86_64"))
    rules: Rules = [{"when": {"alpha": ">=1.3"}, "rate": 1, "says": "race"}]
    found = bisections.found(bisections.specification({"alpha": "1.0"}, {"alpha": "2.0"}, rules))
    assert found.answer is Kind.RANGE and found.versions is not None, found.sentence
    assert found.versions.candidates == ("1.2", "1.3", "1.4")
    assert any(
        note.startswith("alpha 1.2, 1.3 cannot be tried here: it has no wheel for Python") for note in found.notes
    )
    assert {name for name, _ in found.skipped} == {"alpha=1.2", "alpha=1.3"}
