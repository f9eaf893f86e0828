"""Two mixes that should differ, tried in turn until they do beyond doubt, or are shown not to."""

from __future__ import annotations

from bisect_env.bisection import ends
from bisect_env.bisection.counting import signature_of
from bisect_env.bisection.records import BAD, GOOD, Answer, Levels, Stage
from bisect_env.bisection.state import State
from bisect_env.bisection.wants import Asking, Trials

MOST = 256
"""Trials of each end at which it is given up that they count for anything."""


def both_ends(state: State) -> Asking[bool]:
    """Whether there is something to search for; where not, it has ended. Settles the question's signature."""
    state.enter(Stage.ENDS, (GOOD, BAD))
    good, bad = state.both_ends
    done = 0
    while True:
        size = ends.next_size(done)
        yield Trials(Stage.ENDS, (good, bad), size)
        done += size
        for seen in state.seen_at(good) + state.seen_at(bad):
            if seen.skipped:
                side = GOOD if seen.point == good else BAD
                state.end(Answer.INCONCLUSIVE, f"The {side} end cannot be tested: {seen.skipped}")
                return False
        _settle_signature(state, good, bad)
        at_good, at_bad = state.tally(good), state.tally(bad)
        verdict = ends.judge(at_good, at_bad, state.specification.confidence)
        if verdict is ends.Ends.DIFFER:
            state.rate = at_bad.failures / at_bad.counted
            return True
        if verdict is ends.Ends.NOT_REPRODUCED:
            state.end(Answer.NOT_REPRODUCED, "")
            return False
        if verdict is ends.Ends.GOOD_FAILS:
            state.end(Answer.GOOD_FAILS, "")
            return False
        if done >= MOST:
            state.end(Answer.INCONCLUSIVE, "Hardly a trial of the ends says anything about the question.")
            return False


def differ(state: State, stage: Stage, low: Levels, high: Levels) -> Asking[bool]:
    """Whether the two ends of a line differ, before anything between them is tried.

    Ends that are those of the bisection do, and those that a search has tried do as far as it can be trusted. Otherwise
    they take turns as the bisection's own ends did, but a failure that was frequent there need not be looked for for
    long.

    Args:
        state: its trials count.
        stage: that the trials are for.
        low: the mix at the good end of the line.
        high: at the bad end.
    """
    by_search = state.specification.along is None
    if (low, high) == state.both_ends or (by_search and state.tally(low).counted and state.tally(high).counted):
        return True
    while True:
        tallies = {point: state.tally(point) for point in (low, high)}
        verdict = ends.line_differs(tallies[low], tallies[high], state.specification.confidence, state.rate)
        if verdict is not None:
            return verdict
        skipped = any(seen.skipped for point in tallies for seen in state.seen_at(point))
        if skipped or max(tally.counted + tally.other for tally in tallies.values()) >= MOST:
            return False
        fewest = min(tally.counted for tally in tallies.values())
        size = ends.next_size(fewest)
        yield Trials(stage, tuple(point for point in tallies if tallies[point].counted < fewest + size), size)


def _settle_signature(state: State, good: Levels, bad: Levels) -> None:
    """The question is what the bad end shows; all counts so far are taken anew by it."""
    question = state.specification.question
    if question.signature is None and not question.any_failure:
        state.signature = signature_of(state.seen_at(good), state.seen_at(bad))
