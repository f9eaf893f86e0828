"""Which of the differences: mixes of all factors are tried until one of them, or a pair, is to blame."""

from __future__ import annotations

from bisect_env.bisection.blame import Culprit
from bisect_env.bisection.records import BAD, Answer, Levels, Stage
from bisect_env.bisection.searches import Subsets
from bisect_env.bisection.state import State, named
from bisect_env.bisection.telling_apart import tell_apart
from bisect_env.bisection.wants import Asking, Check
from bisect_env.search.records import Result, Status

FEW = 12
"""Up to so many factors each flip is resolved before the search begins; of more, only what it asks for."""


def which_factors(state: State) -> Asking[bool]:
    """Convict; False where there is nobody to convict, and the bisection has ended."""
    along = state.specification.along
    if along is not None or len(state.factors) == 1:
        chosen = [factor for factor in state.factors if along is None or along in named(factor)]
        if not chosen:
            state.end(Answer.NOTHING, f"{along} does not differ between the two sides.")
            return False
        state.convict([Culprit(chosen[0])])
        state.probability = 1.0
        return True
    names = state.names
    state.enter(Stage.FACTORS, names)

    def point(bad: frozenset[int]) -> Levels:
        return state.point({names[index]: BAD for index in bad})

    search = Subsets(len(names), state.confidence, state.specification, state.costs)
    if len(names) <= FEW:
        everything = frozenset(range(len(names)))
        flips = [side for index in everything for side in (frozenset({index}), everything - {index})]
        yield Check(Stage.FACTORS, tuple(dict.fromkeys(map(point, flips))))
        for flip in dict.fromkeys(flips):
            if point(flip) in state.unresolvable:
                search.forbid(flip)
    for side in (frozenset[int](), frozenset(range(len(names)))):
        search.know(side, state.tally(point(side)))
    result = yield from state.ask(Stage.FACTORS, search, point, lambda answer: " + ".join(names[i] for i in answer))
    return (yield from _take(state, result))


def _take(state: State, result: Result[tuple[int, ...]]) -> Asking[bool]:
    state.probability = result.probability
    state.rate = result.rate_bad.estimate
    blamed = {index for answer in result.best for index in answer}
    for index, factor in enumerate(state.factors):
        if index not in blamed:
            state.cleared[factor.name] = sum(chance for answer, chance in result.posterior if index in answer)
    if result.status is Status.MISFIT:
        state.end(Answer.MISFIT, result.misfit)
    elif not result.best:
        state.end(Answer.NONE, "")
    elif len(result.best) == 1:
        state.convict([Culprit(state.factors[index]) for index in result.best[0]])
        return True
    else:
        return (yield from tell_apart(state, result.best))
    return False
