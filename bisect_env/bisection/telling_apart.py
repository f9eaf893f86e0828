"""Factors that no mix which resolves can tell apart, since one forces another along.

Torch 2.11 requires setuptools < 82, and the good side has 84: there is no environment with the bad torch and the good
setuptools that an installer would make. It is made all the same, by pins that override what the two require of each
other. Where even that tells nothing, what every remaining answer has in common is needed for certain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bisect_env.bisection.blame import Culprit
from bisect_env.bisection.counting import pooled
from bisect_env.bisection.records import BAD, GOOD, Answer, Levels, Stage
from bisect_env.bisection.searches import Subsets
from bisect_env.bisection.state import State
from bisect_env.bisection.wants import Asking
from bisect_env.search.records import Result, Status
from bisect_env.snapshots.factors import Factor, Kind

Indices = tuple[int, ...]


def tell_apart(state: State, best: Sequence[Indices]) -> Asking[bool]:
    """Convict one of several answers, or what they have in common; False where the bisection has ended.

    Args:
        state: of the bisection.
        best: the answers that are left, each the indices of the factors that it blames.
    """
    among = sorted({index for answer in best for index in answer})
    factors = tuple(state.factors[index] for index in among)
    state.convict([Culprit(factor) for factor in factors])
    overridable = all(factor.kind is Kind.DISTRIBUTION for factor in factors)
    if overridable:
        result = yield from _by_overriding(state, factors)
        if result.best and result.status is not Status.MISFIT:
            state.probability *= result.probability
            best = [tuple(among[index] for index in answer) for answer in result.best]
            for index, factor in zip(among, factors, strict=True):
                if not any(index in answer for answer in best):
                    state.cleared[factor.name] = _left(result, among.index(index))
    if len(best) == 1:
        state.convict([Culprit(state.factors[index]) for index in best[0]])
        return True
    needed = set.intersection(*map(set, best))
    state.blame = replace(state.blame, entangled=())
    if len(needed) == 1:
        (only,) = needed
        perhaps = sorted({index for answer in best for index in answer} - needed)
        state.convict([Culprit(state.factors[only])])
        state.blame = replace(state.blame, perhaps_with=tuple(state.factors[index] for index in perhaps))
        return True
    state.blame = replace(state.blame, one_of_several=True)
    if not overridable:
        state.end(Answer.INCONCLUSIVE, "No mix that can be tested tells the remaining suspects apart.")
    return overridable


def _by_overriding(state: State, factors: tuple[Factor, ...]) -> Asking[Result[Indices]]:
    """Search among these alone, where what does not resolve is tried with their pins overridden."""
    names = tuple(factor.name for factor in factors)
    state.enter(Stage.SPLIT, names)
    state.blame = replace(state.blame, entangled=factors)

    def point(bad: frozenset[int]) -> Levels:
        chosen = {name: BAD if index in bad else GOOD for index, name in enumerate(names)}
        return state.blame.beside(BAD, chosen)

    search = Subsets(len(names), state.confidence, state.specification, state.costs)
    for tried in dict.fromkeys(seen.point for seen in state.observations):
        # One of these is to blame: what else was mixed in makes no difference.
        levels = dict(tried)
        bad = frozenset(index for index, name in enumerate(names) if levels.get(name, GOOD) == BAD)
        search.know(bad, state.tally(tried))
    result: Result[Indices] = yield from state.ask(
        Stage.SPLIT, search, point, lambda answer: " + ".join(names[index] for index in answer)
    )
    state.notes += _overridden(state, factors)
    return result


def _overridden(state: State, factors: tuple[Factor, ...]) -> list[str]:
    """What was overridden, why, and what it showed, a sentence each."""
    said = []
    for plain, reason in state.unresolvable.items():
        instead = state.blame.stand_in(plain)
        seen = state.seen_at(instead) if instead is not None else []
        if not seen:
            continue
        levels = dict(plain)
        mixed = " with ".join(_at(factor, levels.get(factor.name, GOOD)) for factor in factors)
        tally, why = pooled(seen), next((each.skipped for each in seen if each.skipped), "")
        counted = f"{tally.failures} of {tally.counted} trials fail"
        shown = why or (counted if tally.counted else "no trial of it says anything about the question")
        said.append(
            f"{mixed} does not resolve ({reason.rstrip('.')}); it was tried with the pins of "
            f"{' and '.join(factor.name for factor in factors)} overridden: {shown}"
        )
    return said


def _at(factor: Factor, level: str) -> str:
    return f"{factor.name} {(factor.good if level == GOOD else factor.bad) or 'absent'}"


def _left(result: Result[Indices], index: int) -> float:
    return sum(chance for answer, chance in result.posterior if index in answer)
