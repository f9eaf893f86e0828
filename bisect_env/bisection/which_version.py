"""Which version of the culprit, and which commit: along a line of levels, everything else held at one side."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bisect_env.bisection import reading
from bisect_env.bisection.blame import Culprit
from bisect_env.bisection.log import Candidates
from bisect_env.bisection.records import BAD, GOOD, Answer, CommitRange, Levels, Stage, VersionRange
from bisect_env.bisection.searches import Line
from bisect_env.bisection.state import State
from bisect_env.bisection.testing_ends import differ
from bisect_env.bisection.wants import Asking, Check, Lookup
from bisect_env.search.records import Result, Status
from bisect_env.snapshots.factors import Kind


def which_version(state: State) -> Asking[None]:
    """The released version of each culprit that is one distribution and has some between its two sides.

    Of a pair one is walked with the other at bad, then the other with the first at the version that was found.
    """
    if state.blame.one_of_several:
        return
    confidence = state.confidence ** (1 / len(state.culprits))
    for culprit in state.culprits:
        found = yield from _versions(state, culprit)
        names = found.names
        if len(names) >= 3:
            yield from _walk(state, culprit, found, confidence)
        elif state.specification.along is not None:
            yield from _differing(state, [BAD, GOOD], lambda side: _both(state, side))
        if state.ended is not None:
            return
        if len(names) in (1, 2):
            name = culprit.change.name if culprit.change is not None else culprit.itself.name
            state.ranges += (VersionRange(name, names[0], names[-1], names[-1:], BAD, 1.0),)


def _both(state: State, side: str) -> list[Levels]:
    """The culprits at good and at bad, everything else at one side."""
    return [state.blame.beside(side, each) for each in (state.blame.back(state.culprits), state.blame.at_bad())]


def _versions(state: State, culprit: Culprit) -> Asking[Candidates]:
    """Of a culprit, from its good one to its bad one; none where it has no line of versions."""
    change, none = culprit.change, Candidates(Stage.VERSIONS, culprit.itself.name, ())
    if culprit.factor.kind is not Kind.DISTRIBUTION or change is None:
        return none
    if change.good is None or change.bad is None or change.good_source or change.bad_source:
        return none
    found = yield Lookup(Stage.VERSIONS, change.name, change.good, change.bad)
    assert isinstance(found, Candidates)
    state.notes += found.notes
    return found


def _walk(state: State, culprit: Culprit, found: Candidates, confidence: float) -> Asking[None]:
    assert culprit.change is not None, "only a distribution has a line"
    names, unusable = found.names, dict(found.unusable)
    name, last = culprit.itself.name, len(names) - 1
    state.enter(Stage.VERSIONS, tuple(names[1:]))

    def level(position: int) -> str:
        return {0: GOOD, last: BAD}.get(position, names[position])

    def at(background: str, position: int) -> Levels:
        return state.blame.beside(background, state.blame.along({**state.high, name: level(position)}))

    able = [position for position, version in enumerate(names) if version not in unusable]
    sides = [state.held] if state.ranges else (yield from _backgrounds(state, at, able))
    background = yield from _differing(state, sides, lambda side: [at(side, 0), at(side, last)])
    if background is None:
        return
    for position, version in enumerate(names):
        if version in unusable:
            state.rule_out(at(background, position), unusable[version])
    weights = None if found.reading is None else reading.weights(found.reading)
    result = yield from _along(
        state, Stage.VERSIONS, lambda position: at(background, position), names, confidence, weights
    )
    if result is None:
        return
    low, high = result.best[0], result.best[-1]
    state.low[name], state.high[name] = level(low - 1), level(high)
    state.held = background
    candidates = tuple(names[low : high + 1])
    state.ranges += (
        VersionRange(culprit.change.name, names[low - 1], names[high], candidates, background, result.probability),
    )


def _differing(state: State, sides: Sequence[str], line: Callable[[str], Sequence[Levels]]) -> Asking[str | None]:
    """The first side of everything else at which the two ends of a line differ; None where they do at neither.

    Then it is said so; it is the end of it where nothing but what was asked for says that this is the culprit.
    """
    said = []
    for side in sides:
        low, high = map(state.usable, line(side))
        if (yield from differ(state, Stage.VERSIONS, low, high)):
            return side
        counts = [state.tally(point) for point in (low, high)]
        of = [f"{tally.failures} of {tally.counted} trials fail" for tally in counts]
        said.append(f"with everything else at {side} {of[0]} with it at good and {of[1]} with it at bad")
    name = " and ".join(culprit.itself.name for culprit in state.culprits)
    words = f"{name} alone makes no difference: {'; '.join(said)}"
    if state.specification.along is None:
        state.notes.append(words)
    else:
        state.end(Answer.NONE, f"{words}. Leave out --along: then all that differs is searched.")
    return None


def which_commit(state: State) -> Asking[None]:
    """The commit between the two versions, where the culprit has a repository."""
    versions, sources = state.versions, dict(state.specification.commits)
    if versions is None or state.ended is not None or versions.distribution not in sources or state.blame.pair:
        return
    found = yield Lookup(Stage.COMMITS, versions.distribution, versions.last_good, versions.first_bad)
    assert isinstance(found, Candidates)
    state.notes += found.notes
    names, name = found.names, state.culprits[0].itself.name
    if len(names) < 2:
        return
    state.enter(Stage.COMMITS, names[1:])
    # Both ends are the released versions themselves, which are built.
    levels = (state.low.get(name, GOOD), *names[1:-1], state.high.get(name, BAD))

    def point(position: int) -> Levels:
        return state.blame.beside(state.held, state.blame.along({name: levels[position]}))

    if not (yield from differ(state, Stage.COMMITS, point(0), point(len(names) - 1))):
        state.notes.append(f"{names[0]} and {names[-1]} make no difference that was seen: commits are not searched")
        return
    result = yield from _along(state, Stage.COMMITS, point, names, state.confidence)
    if result is None:
        return
    first, last = result.best[0], result.best[-1]
    state.low[name], state.high[name] = levels[first - 1], levels[last]
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
    state: State,
    stage: Stage,
    point: Callable[[int], Levels],
    names: Sequence[str],
    confidence: float,
    weights: Sequence[float] | None = None,
) -> Asking[Result[int] | None]:
    """Search a line of levels; None where it has no answer, which is then noted, or ends it all.

    ``weights`` are those of the levels after the first, before any trial; None: all alike.
    """
    last = len(names) - 1
    search = Line(last, confidence, state.specification, state.costs, weights)
    for position in range(1, last):
        if state.usable(point(position)) in state.unresolvable:
            search.forbid(position)
    for position in (0, last):
        search.know(position, state.tally(state.usable(point(position))))
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


def _backgrounds(state: State, at: Callable[[str, int], Levels], able: Sequence[int]) -> Asking[list[str]]:
    """The sides to hold everything else at, the better one first: the bad one, where the culprit matters for certain,
    unless fewer of the versions can be tested there, of those that may be. An end that cannot counts for more than all
    between."""
    misses: dict[str, tuple[bool, int, bool]] = {}
    for side in (BAD, GOOD):
        points = [at(side, position) for position in able]
        yield Check(Stage.VERSIONS, tuple(points))
        missing = [point in state.unresolvable for point in points]
        misses[side] = (missing[0] or missing[-1], sum(missing), side != BAD)
        if at(BAD, 0) == at(GOOD, 0):
            return [side]
    return sorted(misses, key=lambda side: misses[side])
