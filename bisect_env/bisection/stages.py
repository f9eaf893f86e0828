"""Which stage comes next, and what it asks: the whole course of a bisection, pure.

A :class:`Course` says what it wants and is given the answer, over and over. It knows nothing of environments, indexes
or clocks. The same answers in the same order lead to the same state: the log keeps the answers, and replaying them is
all that resuming takes.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass

from bisect_env.bisection import confirming, ends
from bisect_env.bisection.blame import Blame, Chosen, Culprit, Part, apart
from bisect_env.bisection.confirming import Planned
from bisect_env.bisection.counting import pooled, recounted, signature_of
from bisect_env.bisection.log import Answer, Candidates, Checked, Told
from bisect_env.bisection.mixes import levels
from bisect_env.bisection.records import (
    BAD,
    GOOD,
    Arm,
    CommitRange,
    Confirmation,
    Levels,
    Observation,
    Specification,
    Stage,
    VersionRange,
)
from bisect_env.bisection.records import Answer as Kind
from bisect_env.bisection.searches import Line, Search, Subsets
from bisect_env.search.records import Result, Status, Tally
from bisect_env.snapshots.factors import Factor
from bisect_env.snapshots.factors import Kind as FactorKind
from bisect_env.snapshots.splitting import split

FEW = 12
"""Up to so many factors each flip is resolved before the search begins; of more, only what it asks for."""


@dataclass(frozen=True)
class Trials:
    """So many trials of each of these mixes, interleaved. Answered by :class:`Told`, one observation a point."""

    stage: Stage
    points: tuple[Levels, ...]
    size: int


@dataclass(frozen=True)
class Check:
    """Which of these mixes resolve? Answered by :class:`Checked`."""

    stage: Stage
    points: tuple[Levels, ...]


@dataclass(frozen=True)
class Lookup:
    """What lies between two levels of a distribution? Answered by :class:`Candidates`, ends included."""

    stage: Stage
    distribution: str
    good: str
    bad: str


Want = Trials | Check | Lookup
Steps = Generator[Want, Answer, None]


class Course:
    """One bisection. ``want`` is what it needs next; None when it has come to its end.

    Everything it has found out so far is in its other attributes, which only it changes.
    """

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
        self.suspects: tuple[tuple[str, float], ...] = ()
        """Of the latest search, which was that of ``suspected_in``."""
        self.suspected_in = Stage.FACTORS
        self.cleared: dict[str, float] = {}
        """Factors that were searched and are not to blame, with what is left of their probability."""
        self.versions: VersionRange | None = None
        self.commits: CommitRange | None = None
        self.confirmation: Confirmation | None = None
        self.arms: tuple[Planned, ...] = ()
        self.unresolvable: dict[Levels, str] = {}
        self.notes: list[str] = []
        self.searched: tuple[str, ...] = ()
        """Names of what the present stage searches."""
        self._held = BAD
        self._rate = float("nan")
        self._low: Chosen = {}
        """Levels of the culprits on the good side of the smallest difference; ``_high``: on the bad side."""
        self._high: Chosen = {}
        self._confidence = self._per_stage()
        self._steps = self._course()
        self.want: Want | None = next(self._steps, None)

    def give(self, answer: Answer) -> None:
        """The answer to what is wanted.

        Raises:
            ValueError: it is no answer to that.
        """
        fits = {Trials: Told, Check: Checked, Lookup: Candidates}
        if self.want is None or not isinstance(answer, fits[type(self.want)]):
            raise ValueError(f"{type(answer).__name__} is no answer to {self.want}")
        if isinstance(answer, Told):
            self.observations += answer.observations
        if isinstance(answer, Checked):
            self.unresolvable |= {each.point: each.reason for each in answer.unresolvable}
        try:
            self.want = self._steps.send(answer)
        except StopIteration:
            self.want = None

    def _per_stage(self) -> float:
        """Stages share the risk, so that what they find holds with the confidence when taken together."""
        distributions = [factor for factor in self.factors if factor.kind is FactorKind.DISTRIBUTION]
        searches = [
            len(self.factors) > 1 and self.specification.along is None,
            any(len(factor.members) > 1 for factor in distributions),
            bool(distributions),
            bool(self.specification.commits),
        ]
        return float(self.specification.confidence ** (1 / max(1, sum(searches))))

    # The stages, in order.

    def _course(self) -> Steps:
        if not self.factors:
            self._end(Kind.NOTHING, "The two sides do not differ in anything that can be changed here.")
            return
        if not (yield from self._both_ends()):
            return
        if not (yield from self._which_factors()):
            return
        yield from self._which_member()
        yield from self._which_version()
        yield from self._which_commit()
        yield from self._confirm()

    def _both_ends(self) -> Generator[Want, Answer, bool]:
        self._enter(Stage.ENDS, (GOOD, BAD))
        good, bad = self.both_ends
        done = 0
        while True:
            size = ends.next_size(done)
            yield Trials(Stage.ENDS, (good, bad), size)
            done += size
            for seen in self._at(good) + self._at(bad):
                if seen.skipped:
                    side = GOOD if seen.point == good else BAD
                    self._end(Kind.INCONCLUSIVE, f"The {side} end cannot be tested: {seen.skipped}")
                    return False
            self._settle_signature(good, bad)
            at_good, at_bad = self.tally(good), self.tally(bad)
            verdict = ends.judge(at_good, at_bad, self.specification.confidence)
            if verdict is ends.Ends.DIFFER:
                self._rate = at_bad.failures / at_bad.counted
                return True
            if verdict is ends.Ends.NOT_REPRODUCED:
                self._end(Kind.NOT_REPRODUCED, "")
                return False
            if verdict is ends.Ends.GOOD_FAILS:
                self._end(Kind.GOOD_FAILS, "")
                return False
            if done >= MOST_AT_ENDS:
                self._end(Kind.INCONCLUSIVE, "Hardly a trial of the ends says anything about the question.")
                return False

    def _settle_signature(self, good: Levels, bad: Levels) -> None:
        """The question is what the bad end shows; all counts so far are taken anew by it."""
        question = self.specification.question
        if question.signature is None and not question.any_failure:
            self.signature = signature_of(self._at(good), self._at(bad))

    def _which_factors(self) -> Generator[Want, Answer, bool]:
        along = self.specification.along
        if along is not None or len(self.factors) == 1:
            chosen = [factor for factor in self.factors if along in (None, factor.name, *_members(factor))]
            if not chosen:
                self._end(Kind.NOTHING, f"{along} does not differ between the two sides.")
                return False
            self._convict([Culprit(chosen[0])])
            self.probability = 1.0
            return True
        names = self._names
        self._enter(Stage.FACTORS, names)

        def point(bad: frozenset[int]) -> Levels:
            return self.point({names[index]: BAD for index in bad})

        search = self._subsets(len(names))
        if len(names) <= FEW:
            everything = frozenset(range(len(names)))
            flips = [side for index in everything for side in (frozenset({index}), everything - {index})]
            yield Check(Stage.FACTORS, tuple(dict.fromkeys(map(point, flips))))
            for flip in dict.fromkeys(flips):
                if point(flip) in self.unresolvable:
                    search.forbid(flip)
        for side in (frozenset[int](), frozenset(range(len(names)))):
            search.know(side, self.tally(point(side)))
        result = yield from self._ask(Stage.FACTORS, search, point, lambda answer: " + ".join(names[i] for i in answer))
        return self._take_factors(result)

    def _take_factors(self, result: Result[tuple[int, ...]]) -> bool:
        self.probability = result.probability
        self._rate = result.rate_bad.estimate
        blamed = {index for answer in result.best for index in answer}
        for index, factor in enumerate(self.factors):
            if index not in blamed:
                self.cleared[factor.name] = sum(chance for answer, chance in result.posterior if index in answer)
        if result.status is Status.MISFIT:
            self._end(Kind.MISFIT, result.misfit)
        elif not result.best:
            self._end(Kind.NONE, "")
        elif len(result.best) == 1:
            self._convict([Culprit(self.factors[index]) for index in result.best[0]])
            return True
        elif all(self.factors[index].kind is FactorKind.DISTRIBUTION for index in blamed):
            # They cannot be told apart by mixes that resolve: taken as one group, which overrides can take apart.
            self._convict([Culprit(self.factors[index]) for index in sorted(blamed)], one_of_several=True)
            return True
        else:
            self._end(Kind.INCONCLUSIVE, "No mix that can be tested tells the remaining suspects apart.")
        return False

    def _which_member(self) -> Steps:
        """Take a convicted group apart, by pins that override what its members require of each other."""
        if self.blame.pair:
            return
        parts = tuple((culprit.factor, part) for culprit in self.culprits for part in split(culprit.factor))
        along = self.specification.along
        if len(parts) < 2:
            return
        if along is not None:
            named = [part for part in parts if along in (part[1].name, *_members(part[1]))]
            self._convict([Culprit(*part) for part in named[:1]], parts)
            return
        names = tuple(part.name for _, part in parts)
        self._enter(Stage.SPLIT, names)
        group = dict.fromkeys(self.blame.moving, GOOD)

        def point(bad: frozenset[int]) -> Levels:
            # All parts on one side are the group as it was, in-pin and known already.
            whole = {0: group, len(parts): self.blame.at_bad()}.get(len(bad))
            return self.blame.beside(BAD, whole or apart(parts, {names[index] for index in bad}))

        search = self._subsets(len(parts))
        for side in (frozenset[int](), frozenset(range(len(parts)))):
            search.know(side, self.tally(point(side)))
        result = yield from self._ask(Stage.SPLIT, search, point, lambda answer: " + ".join(names[i] for i in answer))
        if result.status is Status.CONFIDENT and len(result.best) == 1:
            self._convict([Culprit(*parts[index]) for index in result.best[0]], parts)
            self.probability *= result.probability
            for index, name in enumerate(names):
                if index not in result.best[0]:
                    self.cleared[name] = sum(chance for answer, chance in result.posterior if index in answer)
        else:
            self.notes.append(
                f"{', '.join(names)} could not be told apart: mixes of them that break their pins do not run, or do "
                "not differ enough"
            )

    def _which_version(self) -> Steps:
        if len(self.culprits) != 1 or self.culprits[0].factor.kind is not FactorKind.DISTRIBUTION:
            return
        culprit = self.culprits[0]
        change = culprit.change
        if change is None or change.good is None or change.bad is None or change.good_source or change.bad_source:
            return
        found = yield Lookup(Stage.VERSIONS, change.name, change.good, change.bad)
        assert isinstance(found, Candidates)
        self.notes += found.notes
        names = found.names
        if len(names) < 3:
            self.versions = VersionRange(change.name, names[0], names[-1], names[-1:], BAD, 1.0)
            return
        self._enter(Stage.VERSIONS, names[1:])

        def at(background: str) -> Callable[[int], Levels]:
            return lambda position: self.blame.beside(background, self._version(culprit, names, position))

        background = yield from self._background(Stage.VERSIONS, at, len(names))
        result = yield from self._along(Stage.VERSIONS, at(background), names)
        if result is None:
            return
        low, high = result.best[0], result.best[-1]
        self._low, self._high = self._version(culprit, names, low - 1), self._version(culprit, names, high)
        self._held = background
        self.versions = VersionRange(
            change.name, names[low - 1], names[high], tuple(names[low : high + 1]), background, result.probability
        )

    def _which_commit(self) -> Steps:
        versions, sources = self.versions, dict(self.specification.commits)
        if versions is None or self.ended is not None or versions.distribution not in sources:
            return
        found = yield Lookup(Stage.COMMITS, versions.distribution, versions.last_good, versions.first_bad)
        assert isinstance(found, Candidates)
        self.notes += found.notes
        names, culprit = found.names, self.culprits[0]
        if len(names) < 2:
            return
        self._enter(Stage.COMMITS, names[1:])
        released = {0: dict(self._low), len(names) - 1: dict(self._high)}

        def levels_at(position: int) -> Chosen:
            # Both ends are the released versions themselves, which are built and known.
            return released.get(position) or self._version(culprit, names, position)

        result = yield from self._along(
            Stage.COMMITS, lambda position: self.blame.beside(self._held, levels_at(position)), names
        )
        if result is None:
            return
        first, last = result.best[0], result.best[-1]
        self._low, self._high = levels_at(first - 1), levels_at(last)
        subject = found.subjects[last] if last < len(found.subjects) else ""
        self.commits = CommitRange(
            versions.distribution,
            sources[versions.distribution],
            names[first - 1],
            names[last],
            tuple(names[first : last + 1]),
            subject,
            result.probability,
        )

    def _confirm(self) -> Steps:
        if self.ended is not None:
            return
        self.arms = self.blame.arms(self._low, self._high)
        self._enter(Stage.CONFIRM, tuple(arm.label for arm in self.arms))
        most = self.specification.confirm
        for wanted in confirming.looks(confirming.first_look(self._rate, most), most):
            done = max((self._fresh(arm.point).counted for arm in self.arms), default=0)
            points = tuple(dict.fromkeys(arm.point for arm in self.arms))
            if not points or wanted <= done:
                break
            yield Trials(Stage.CONFIRM, points, wanted - done)
            fresh = [seen for seen in self.observations if seen.stage is Stage.CONFIRM]
            untestable = {seen.point for seen in fresh if seen.skipped}
            self.arms = tuple(arm for arm in self.arms if arm.point not in untestable)
            self.confirmation = confirming.conclude(
                self.arms,
                {arm.point: self._fresh(arm.point) for arm in self.arms},
                {seen.point: seen.environment for seen in fresh},
                self.specification.confidence,
            )
            if self.confirmation is None or self.confirmation.confirmed:
                break

    # What the stages share.

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(factor.name for factor in self.factors)

    def point(self, chosen: Mapping[str, str]) -> Levels:
        """The mix with these levels, the rest at good."""
        return levels(chosen)

    def tally(self, point: Levels) -> Tally:
        """What the search has seen of a mix; confirming trials are none of its business."""
        return pooled(self._at(point))

    @property
    def culprits(self) -> tuple[Culprit, ...]:
        """Who is to blame, as far as is known."""
        return self.blame.culprits

    @property
    def both_ends(self) -> tuple[Levels, Levels]:
        """The good one and the bad one."""
        return self.point({}), self.point(dict.fromkeys(self._names, BAD))

    def arms_of(self, background: str) -> tuple[Arm, ...]:
        """The confirming arms of one direction."""
        if self.confirmation is None:
            return ()
        sides = {arm.point: arm.background for arm in self.arms}
        return tuple(arm for arm in self.confirmation.arms if sides.get(arm.point) == background)

    @property
    def minimal(self) -> tuple[Levels, Levels]:
        """The two mixes that differ in the culprit alone, where the rest is at the side that the finding names."""
        background = self.confirmation.background if self.confirmation is not None else self._held
        return self.blame.beside(background, self._low), self.blame.beside(background, self._high)

    def _at(self, point: Levels) -> list[Observation]:
        question = self.specification.question
        own = [seen for seen in self.observations if seen.point == point and seen.stage is not Stage.CONFIRM]
        if question.signature is not None:
            return own
        return [recounted(seen, question, self.signature) if seen.stage is Stage.ENDS else seen for seen in own]

    def _fresh(self, point: Levels) -> Tally:
        return pooled((seen for seen in self.observations if seen.stage is Stage.CONFIRM), point)

    def _enter(self, stage: Stage, searched: tuple[str, ...]) -> None:
        self.stage, self.searched = stage, searched

    def _end(self, answer: Kind, words: str) -> None:
        self.ended, self.words = answer, words

    def _subsets(self, factors: int) -> Subsets:
        specification = self.specification
        return Subsets(factors, self._confidence, specification.seed, specification.batch)

    def _ask(
        self, stage: Stage, search: Search, point: Callable[..., Levels], label: Callable[..., str]
    ) -> Generator[Want, Answer, Result]:  # type: ignore[type-arg]
        """Let a search ask until it is over."""
        self.suspected_in = stage
        self.suspects = _suspects(search.result(), label)
        while (batch := search.ask()) is not None:
            known = self.unresolvable.get(point(batch.point))
            if known is not None:
                search.forbid(batch.point)
                continue
            answer = yield Trials(stage, (point(batch.point),), batch.size)
            assert isinstance(answer, Told)
            search.tell(batch, answer.observations[0])
            self.suspects = _suspects(search.result(), label)
        return search.result()

    def _along(
        self, stage: Stage, point: Callable[[int], Levels], names: Sequence[str]
    ) -> Generator[Want, Answer, Result[int] | None]:
        """Search a line of levels; None where it has no answer, which is then noted, or ends it all."""
        last = len(names) - 1
        search = Line(last, self._confidence, self.specification.seed, self.specification.batch)
        for position in range(1, last):
            if point(position) in self.unresolvable:
                search.forbid(position)
        for position in (0, last):
            search.know(position, self.tally(point(position)))
        result: Result[int] = yield from self._ask(stage, search, point, lambda culprit: names[culprit])
        if result.status is Status.MISFIT:
            self._end(Kind.MISFIT, result.misfit)
            return None
        if not result.best:
            self.notes.append(f"no version between {names[0]} and {names[-1]} makes the difference in this background")
            return None
        self.probability *= result.probability
        self._rate = result.rate_bad.estimate
        return result

    def _background(
        self, stage: Stage, at: Callable[[str], Callable[[int], Levels]], count: int
    ) -> Generator[Want, Answer, str]:
        """The side to hold everything else at: the bad one, where the culprit matters for certain, unless fewer of
        the versions between can be tested there."""
        misses: dict[str, int] = {}
        for background in (BAD, GOOD):
            points = tuple(at(background)(position) for position in range(1, count - 1))
            yield Check(stage, points)
            misses[background] = sum(point in self.unresolvable for point in points)
            if not misses[background] or len(self.factors) == 1:
                return background
        return min(misses, key=lambda side: (misses[side], side != BAD))

    def _version(self, culprit: Culprit, names: Sequence[str], position: int) -> Chosen:
        """Levels of the culprit's factor at a position of its line; both ends are the sides' own."""
        ends = {} if self.stage is Stage.COMMITS else {0: GOOD, len(names) - 1: BAD}
        level = ends.get(position, names[position])
        return self.blame.along(culprit, level)

    def _convict(self, culprits: Sequence[Culprit], parts: tuple[Part, ...] = (), one_of_several: bool = False) -> None:
        self.blame = Blame(self._names, tuple(culprits), parts, one_of_several)
        self._low, self._high = self.blame.back(culprits), self.blame.at_bad()


MOST_AT_ENDS = 256
"""Trials of each end at which it is given up that they count for anything."""


def _members(factor: Factor) -> tuple[str, ...]:
    return tuple(change.name for change in factor.members)


def _suspects(result: Result, label: Callable[..., str]) -> tuple[tuple[str, float], ...]:  # type: ignore[type-arg]
    """Every answer that has a probability worth showing, and none of them, the likeliest first."""
    shown = [(label(answer), chance) for answer, chance in result.posterior if chance >= SHOWN]
    return tuple(sorted([*shown, ("none of these", result.none)], key=lambda each: -each[1]))


SHOWN = 0.001
"""Least probability of a suspect that is worth a line."""
