"""A course against a world without processes: what it wants is drawn, so that hundreds of bisections take seconds."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from bisect_env.bisection.log import Answer, Candidates, Checked, Told
from bisect_env.bisection.records import BAD, GOOD, Levels, Observation, Specification, Stage, Unresolvable
from bisect_env.bisection.stages import Course
from bisect_env.bisection.wants import Check, Lookup, Round, Want
from bisect_env.matrix.cells import Condition, ReproducerChoice
from bisect_env.search.records import Tally
from bisect_env.snapshots.changes import Change
from bisect_env.snapshots.factors import Difference, Factor, of_members
from bisect_env.snapshots.records import Snapshot

SIGNATURE = "RuntimeError: race"


def factor(name: str, good: str = "1", bad: str = "2") -> Factor:
    return of_members((Change(name, good, bad),))


def specification(factors: Collection[Factor], **options: object) -> Specification:
    side = Snapshot("x", "pip freeze", ())
    return Specification(
        side,
        side,
        Difference(tuple(factors)),
        Condition(()),
        Condition(()),
        ReproducerChoice("x", ("true",)),
        **options,  # type: ignore[arg-type]
    )


@dataclass
class World:
    """Draws what a course wants.

    Attributes:
        rate: chance of failing at a mix.
        versions: released versions of a distribution, from good to bad.
        unresolvable: mixes without an environment.
    """

    rate: Callable[[Mapping[str, str]], float]
    seed: int
    versions: tuple[str, ...] = ("1", "2")
    unresolvable: Callable[[Mapping[str, str]], bool] = lambda chosen: False
    answers: list[Answer] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def answer(self, want: Want) -> Answer:
        if isinstance(want, Check):
            missing = [point for point in want.points if self.unresolvable(dict(point))]
            return Checked(want.stage, tuple(Unresolvable(point, "conflict") for point in missing), len(want.points))
        if isinstance(want, Lookup):
            return Candidates(want.stage, want.distribution, self.versions)
        sizes = want.sizes if isinstance(want, Round) else (want.size,) * len(want.points)
        seen = (self._seen(want.stage, point, size) for point, size in zip(want.points, sizes, strict=True))
        return Told(tuple(seen), max(sizes))

    def _seen(self, stage: Stage, point: Levels, size: int) -> Observation:
        if self.unresolvable(dict(point)):
            return Observation(stage, 0, point, "", "", skipped="conflict")
        failures = sum(self._random.random() < self.rate(dict(point)) for _ in range(size))
        ids = tuple(f"t{number}" for number in range(size))
        shown = ((SIGNATURE, failures),) if failures else ()
        tally = Tally(failures, size - failures)
        return Observation(
            stage, 0, point, "", "env", tally.failures, tally.passes, signatures=shown, trials=ids,
            trial_seconds=1.0,
        )  # fmt: skip

    def run(self, course: Course, most: int = 10_000) -> Course:
        while course.want is not None and len(self.answers) < most:
            answer = self.answer(course.want)
            self.answers.append(answer)
            course.give(answer)
        return course


def number(chosen: Mapping[str, str], name: str, versions: tuple[str, ...]) -> int:
    """Position of a distribution's version on its line."""
    level = chosen.get(name, GOOD)
    return {GOOD: 0, BAD: len(versions) - 1}.get(level) if level in (GOOD, BAD) else versions.index(level)  # type: ignore[return-value]
