"""Which of those that move together: a convicted group is taken apart by overriding its pins."""

from __future__ import annotations

from bisect_env.bisection.blame import Culprit, apart
from bisect_env.bisection.records import BAD, GOOD, Levels, Stage
from bisect_env.bisection.searches import Subsets
from bisect_env.bisection.state import State, named
from bisect_env.bisection.wants import Asking
from bisect_env.search.records import Status
from bisect_env.snapshots.splitting import split


def which_member(state: State) -> Asking[None]:
    """Take a convicted group apart, by pins that override what its members require of each other."""
    if len(state.culprits) != 1:
        return
    factor = state.culprits[0].factor
    parts = tuple((factor, part) for part in split(factor))
    along = state.specification.along
    if len(parts) < 2:
        return
    if along is not None:
        asked_for = [part for part in parts if along in named(part[1])]
        state.convict([Culprit(*part) for part in asked_for[:1]], parts)
        return
    names = tuple(part.name for _, part in parts)
    state.enter(Stage.SPLIT, names)
    group = dict.fromkeys(state.blame.moving, GOOD)

    def point(bad: frozenset[int]) -> Levels:
        # All parts on one side are the group as it was, in-pin and known already.
        whole = {0: group, len(parts): state.blame.at_bad()}.get(len(bad))
        return state.blame.beside(BAD, whole or apart(parts, {names[index] for index in bad}))

    search = Subsets(len(parts), state.confidence, state.specification, state.costs)
    for side in (frozenset[int](), frozenset(range(len(parts)))):
        search.know(side, state.tally(point(side)))
    result = yield from state.ask(Stage.SPLIT, search, point, lambda answer: " + ".join(names[i] for i in answer))
    if result.status is Status.CONFIDENT and len(result.best) == 1:
        state.convict([Culprit(*parts[index]) for index in result.best[0]], parts)
        state.probability *= result.probability
        for index, name in enumerate(names):
            if index not in result.best[0]:
                state.cleared[name] = sum(chance for answer, chance in result.posterior if index in answer)
    else:
        state.notes.append(
            f"{', '.join(names)} could not be told apart: mixes of them that break their pins do not run, or do "
            "not differ enough"
        )
