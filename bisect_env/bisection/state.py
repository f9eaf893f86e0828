"""What the stages of a bisection share: all that is known so far, and how a search is let ask."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bisect_env.bisection.blame import Blame, Culprit, Part
from bisect_env.bisection.confirming import Planned
from bisect_env.bisection.counting import ONLY_OTHERS, pooled, recounted
from bisect_env.bisection.log import Answer, Checked, Told
from bisect_env.bisection.mixes import levels
from bisect_env.bisection.records import (
    BAD,
    CommitRange,
    Confirmation,
    Levels,
    Observation,
    Specification,
    Stage,
    VersionRange,
)
from bisect_env.bisection.records import Answer as Kind
from bisect_env.bisection.searches import Search
from bisect_env.bisection.wants import Asking, Check, Round, Want
from bisect_env.search.costs import Measured
from bisect_env.search.records import Batch, Costs, Result, Tally
from bisect_env.snapshots.factors import Factor
from bisect_env.snapshots.factors import Kind as FactorKind

BUILD_IN_TRIALS = 2.0
"""What a build is taken to cost until it was measured, in trials: of tiny packages it is less, of torch it is more."""
SHOWN = 0.001
"""Least probability of a suspect that is worth a line."""


@dataclass(frozen=True)
class Belief:
    """What a search took for likely at one time."""

    stage: Stage
    searched: tuple[str, ...]
    """Names of what it searches."""
    seen: int
    """Batches of the whole bisection that were over by then."""
    suspects: tuple[tuple[str, float], ...]


class State:
    """All that a bisection has found out so far. Only its stages change it."""

    def __init__(self, specification: Specification, factors: Sequence[Factor]) -> None:
        self.specification, self.factors = specification, tuple(factors)
        self.stage = Stage.ENDS
        self.signature: str | None = specification.question.signature
        self.ended: Kind | None = None
        """What it came to, when that is no culprit."""
        self.words = ""
        """Why, as a sentence."""
        self.observations: list[Observation] = []
        self.blame = Blame(tuple(factor.name for factor in self.factors))
        self.probability = 0.0
        self.rate = float("nan")
        """Of failures at the bad level, as the latest search estimates it."""
        self.suspects: tuple[tuple[str, float], ...] = ()
        """Of the latest search, which was that of ``suspected_in``."""
        self.suspected_in = Stage.FACTORS
        self.beliefs: list[Belief] = []
        """The suspects of every search, before its first batch and after each, for the report."""
        self.cleared: dict[str, float] = {}
        """Factors that were searched and are not to blame, with what is left of their probability."""
        self.ranges: tuple[VersionRange, ...] = ()
        """One, or those of a pair in the order in which they were walked."""
        self.commits: CommitRange | None = None
        self.confirmation: Confirmation | None = None
        self.arms: tuple[Planned, ...] = ()
        self.checked: set[Levels] = set()
        """Mixes that were resolved, or were found not to resolve: the latter are in ``unresolvable``, and why."""
        self.unresolvable: dict[Levels, str] = {}
        self.notes: list[str] = []
        self.searched: tuple[str, ...] = ()
        """Names of what the present stage searches."""
        self.held = BAD
        """The side of everything that is not to blame, along versions."""
        self.low: dict[str, str] = {}
        """Levels of the culprits that were searched along a line, on the good side of the smallest difference."""
        self.high: dict[str, str] = {}
        """On its bad side."""
        self.costs = Measured(Costs(1.0, BUILD_IN_TRIALS))
        """Of builds and trials, as all stages together have measured them."""
        self.confidence = _per_stage(specification, self.factors)
        """Asked of each search, so that all of them together hold with the confidence that was asked for."""

    def take(self, want: Want, answer: Answer) -> None:
        """Remember what the answer to a want says, whichever stage it is for."""
        if isinstance(answer, Told):
            for seen in answer.observations:
                # Whoever has built it, and whenever: once for each environment.
                new = all(seen.environment != other.environment for other in self.observations)
                self.costs.tell(seen.built_in if new else None, seen.trial_seconds, seen.counted + seen.other)
                self.observations.append(seen)
        if isinstance(want, Check) and isinstance(answer, Checked):
            self.checked |= set(want.points)
            self.unresolvable |= {each.point: each.reason for each in answer.unresolvable}

    def rule_out(self, point: Levels, why: str) -> None:
        """This mix is known to have no environment, nor has what would stand in for it: none of them is resolved."""
        for each in (point, self.blame.stand_in(point)):
            if each is not None:
                self.checked.add(each)
                self.unresolvable[each] = why

    def enter(self, stage: Stage, searched: tuple[str, ...]) -> None:
        """A stage begins."""
        self.stage, self.searched = stage, searched

    def end(self, answer: Kind, words: str) -> None:
        """It comes to no culprit."""
        self.ended, self.words = answer, words

    def convict(self, culprits: Sequence[Culprit], parts: tuple[Part, ...] = ()) -> None:
        """These are to blame; ``parts`` are those of the group that they were taken out of."""
        self.blame = replace(self.blame, culprits=tuple(culprits), parts=parts)

    @property
    def names(self) -> tuple[str, ...]:
        """Of all factors."""
        return tuple(factor.name for factor in self.factors)

    @property
    def culprits(self) -> tuple[Culprit, ...]:
        """Who is to blame, as far as is known."""
        return self.blame.culprits

    @property
    def versions(self) -> VersionRange | None:
        """Along the first culprit that has versions."""
        return self.ranges[0] if self.ranges else None

    def point(self, chosen: Mapping[str, str]) -> Levels:
        """The mix with these levels, the rest at good."""
        return levels(chosen)

    @property
    def both_ends(self) -> tuple[Levels, Levels]:
        """The good one and the bad one."""
        return self.point({}), self.point(dict.fromkeys(self.names, BAD))

    @property
    def minimal(self) -> tuple[Levels, Levels]:
        """The two mixes that differ in the culprit alone, where the rest is at the side that the finding names."""
        background = self.confirmation.background if self.confirmation is not None else self.held
        sides = self.blame.with_good(self.culprits, self.low, self.high), self.blame.along(self.high)
        good, bad = (self.usable(self.blame.beside(background, side)) for side in sides)
        return good, bad

    def seen_at(self, point: Levels) -> list[Observation]:
        """What the search has seen of a mix; confirming trials are none of its business."""
        question = self.specification.question
        own = [seen for seen in self.observations if seen.point == point and seen.stage is not Stage.CONFIRM]
        if question.signature is not None:
            return own
        return [recounted(seen, question, self.signature) if seen.stage is Stage.ENDS else seen for seen in own]

    def tally(self, point: Levels) -> Tally:
        """The same, counted."""
        return pooled(self.seen_at(point))

    def fresh(self, point: Levels) -> Tally:
        """The confirming trials of a mix."""
        return pooled((seen for seen in self.observations if seen.stage is Stage.CONFIRM), point)

    def usable(self, point: Levels) -> Levels:
        """The mix, or what stands in for it where it is known not to resolve."""
        return (self.blame.stand_in(point) or point) if point in self.unresolvable else point

    def testable(self, stage: Stage, point: Levels) -> Asking[Levels]:
        """The same, after it was found out whether it resolves, where anything could stand in for it."""
        if point not in self.checked and self.blame.stand_in(point) is not None:
            yield Check(stage, (point,))
        return self.usable(point)

    def ask(
        self, stage: Stage, search: Search, point: Callable[..., Levels], label: Callable[..., str]
    ) -> Asking[Result]:  # type: ignore[type-arg]
        """Let a search ask until it is over: of so many batches at a time as the specification says.

        They are told in the order in which they were asked for, whichever ended first, and only once all have ended:
        the same answers give the same asks, and a log of rounds is all that going on takes. Of batches of one mix one
        is told all of its trials.

        Args:
            stage: that it belongs to.
            search: knows already what was tried before.
            point: the mix of a point of the search.
            label: an answer of the search, for people.
        """
        self._believe(stage, _suspects(search.result(), label))
        while batches := (yield from self._round(stage, search, point)):
            sizes: dict[Levels, int] = {}
            for batch, at in batches:
                sizes[at] = sizes.get(at, 0) + batch.size
            answer = yield Round(stage, tuple(sizes), tuple(sizes.values()))
            assert isinstance(answer, Told)
            seen = {each.point: each for each in answer.observations}
            for batch, at in batches:
                search.tell(batch, seen.pop(at, None))
                tally = self.tally(at)
                if tally.other >= ONLY_OTHERS and not tally.counted:
                    search.forbid(batch.point)
            self._believe(stage, _suspects(search.result(), label))
        return search.result()

    def _round(
        self, stage: Stage, search: Search, point: Callable[..., Levels]
    ) -> Asking[list[tuple[Batch[Any], Levels]]]:
        """The batches to run side by side, each with its mix; none when the search is over."""
        found: list[tuple[Batch[Any], Levels]] = []
        while len(found) < (self.specification.parallel or 1):
            batch = search.ask(busy=len(found))
            if batch is None:
                break
            at = yield from self.testable(stage, point(batch.point))
            if at in self.unresolvable:
                search.forbid(batch.point)
            else:
                found.append((batch, at))
        return found

    def _believe(self, stage: Stage, suspects: tuple[tuple[str, float], ...]) -> None:
        self.suspected_in, self.suspects = stage, suspects
        self.beliefs.append(Belief(stage, self.searched, len(self.observations), suspects))


def named(factor: Factor) -> tuple[str, ...]:
    """The names by which a factor may be asked for: its own and those of its members."""
    return factor.name, *(change.name for change in factor.members)


def _per_stage(specification: Specification, factors: Sequence[Factor]) -> float:
    """Stages share the risk, so that what they find holds with the confidence when taken together."""
    distributions = [factor for factor in factors if factor.kind is FactorKind.DISTRIBUTION]
    searches = [
        len(factors) > 1 and specification.along is None,
        any(len(factor.members) > 1 for factor in distributions),
        bool(distributions),
        bool(specification.commits),
    ]
    return float(specification.confidence ** (1 / max(1, sum(searches))))


def _suspects(result: Result, label: Callable[..., str]) -> tuple[tuple[str, float], ...]:  # type: ignore[type-arg]
    """Every answer that has a probability worth showing, and none of them, the likeliest first."""
    shown = [(label(answer), chance) for answer, chance in result.posterior if chance >= SHOWN]
    return tuple(sorted([*shown, ("none of these", result.none)], key=lambda each: -each[1]))
