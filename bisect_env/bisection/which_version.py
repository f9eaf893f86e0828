"""Which version of the culprit, and which commit: along a line of levels, everything else held at one side."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bisect_env.bisection.blame import Chosen, Culprit
from bisect_env.bisection.log import Candidates
from bisect_env.bisection.records import BAD, GOOD, Answer, CommitRange, Levels, Stage, VersionRange
from bisect_env.bisection.searches import Line
from bisect_env.bisection.state import State
from bisect_env.bisection.wants import Asking, Check, Lookup
from bisect_env.search.records import Result, Status
from bisect_env.snapshots.factors import Kind


def which_version(state: State) -> Asking[None]:
    """The released version, where the culprit is one distribution that has some between its two sides."""
    if len(state.culprits) != 1 or state.culprits[0].factor.kind is not Kind.DISTRIBUTION:
        return
    culprit = state.culprits[0]
    change = culprit.change
    if change is None or change.good is None or change.bad is None or change.good_source or change.bad_source:
        return
    found = yield Lookup(Stage.VERSIONS, change.name, change.good, change.bad)
    assert isinstance(found, Candidates)
    state.notes += found.notes
    names = found.names
    if len(names) < 3:
        state.versions = VersionRange(change.name, names[0], names[-1], names[-1:], BAD, 1.0)
        return
    state.enter(Stage.VERSIONS, names[1:])

    def at(background: str) -> Callable[[int], Levels]:
        return lambda position: state.blame.beside(background, _version(state, culprit, names, position))

    background = yield from _background(state, at, len(names))
    result = yield from _along(state, Stage.VERSIONS, at(background), names)
    if result is None:
        return
    low, high = result.best[0], result.best[-1]
    state.low, state.high = _version(state, culprit, names, low - 1), _version(state, culprit, names, high)
    state.held = background
    state.versions = VersionRange(
        change.name, names[low - 1], names[high], tuple(names[low : high + 1]), background, result.probability
    )


def which_commit(state: State) -> Asking[None]:
    """The commit between the two versions, where the culprit has a repository."""
    versions, sources = state.versions, dict(state.specification.commits)
    if versions is None or state.ended is not None or versions.distribution not in sources:
        return
    found = yield Lookup(Stage.COMMITS, versions.distribution, versions.last_good, versions.first_bad)
    assert isinstance(found, Candidates)
    state.notes += found.notes
    names, culprit = found.names, state.culprits[0]
    if len(names) < 2:
        return
    state.enter(Stage.COMMITS, names[1:])
    released = {0: dict(state.low), len(names) - 1: dict(state.high)}

    def levels_at(position: int) -> Chosen:
        # Both ends are the released versions themselves, which are built and known.
        return released.get(position) or _version(state, culprit, names, position)

    result = yield from _along(
        state, Stage.COMMITS, lambda position: state.blame.beside(state.held, levels_at(position)), names
    )
    if result is None:
        return
    first, last = result.best[0], result.best[-1]
    state.low, state.high = levels_at(first - 1), levels_at(last)
    subject = found.subjects[last] if last < len(found.subjects) else ""
    state.commits = CommitRange(
        versions.distribution,
        sources[versions.distribution],
        names[first - 1],
        names[last],
        tuple(names[first : last + 1]),
        subject,
        result.probability,
    )


def _along(
    state: State, stage: Stage, point: Callable[[int], Levels], names: Sequence[str]
) -> Asking[Result[int] | None]:
    """Search a line of levels; None where it has no answer, which is then noted, or ends it all."""
    last = len(names) - 1
    search = Line(last, state.confidence, state.specification.seed, state.specification.batch)
    for position in range(1, last):
        if point(position) in state.unresolvable:
            search.forbid(position)
    for position in (0, last):
        search.know(position, state.tally(point(position)))
    result: Result[int] = yield from state.ask(stage, search, point, lambda culprit: names[culprit])
    if result.status is Status.MISFIT:
        state.end(Answer.MISFIT, result.misfit)
        return None
    if not result.best:
        state.notes.append(f"no version between {names[0]} and {names[-1]} makes the difference in this background")
        return None
    state.probability *= result.probability
    state.rate = result.rate_bad.estimate
    return result


def _background(state: State, at: Callable[[str], Callable[[int], Levels]], count: int) -> Asking[str]:
    """The side to hold everything else at: the bad one, where the culprit matters for certain, unless fewer of
    the versions between can be tested there."""
    misses: dict[str, int] = {}
    for background in (BAD, GOOD):
        points = tuple(at(background)(position) for position in range(1, count - 1))
        yield Check(Stage.VERSIONS, points)
        misses[background] = sum(point in state.unresolvable for point in points)
        if not misses[background] or len(state.factors) == 1:
            return background
    return min(misses, key=lambda side: (misses[side], side != BAD))


def _version(state: State, culprit: Culprit, names: Sequence[str], position: int) -> Chosen:
    """Levels of the culprit's factor at a position of its line; both ends are the sides' own."""
    ends = {} if state.stage is Stage.COMMITS else {0: GOOD, len(names) - 1: BAD}
    level = ends.get(position, names[position])
    return state.blame.along(culprit, level)
