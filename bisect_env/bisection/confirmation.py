"""The confirmation: fresh trials of the culprits at bad and back at good, until they establish it or it is given up."""

from __future__ import annotations

from dataclasses import replace

from bisect_env.bisection import confirming
from bisect_env.bisection.confirming import Planned
from bisect_env.bisection.records import Stage
from bisect_env.bisection.state import State
from bisect_env.bisection.wants import Asking, Trials


def confirm(state: State) -> Asking[None]:
    """Ask for the trials of every arm that can be tested, in turn."""
    if state.ended is not None:
        return
    state.arms = yield from _arms(state)
    state.enter(Stage.CONFIRM, tuple(arm.label for arm in state.arms))
    arms, directions = len(state.arms), len({arm.background for arm in state.arms})
    searched = sum(seen.counted + seen.other for seen in state.observations)
    sizes = confirming.looks(state.rate, arms, directions, state.specification.confirm, searched)
    for wanted in sizes:
        # One direction after the other: trials that take turns have the same seeds, and where a seed decides what
        # fails, both directions would show one thing twice.
        for side in dict.fromkeys(arm.background for arm in state.arms):
            points = tuple(dict.fromkeys(arm.point for arm in state.arms if arm.background == side))
            done = max(state.fresh(point).counted for point in points)
            if wanted > done:
                yield Trials(Stage.CONFIRM, points, wanted - done)
        fresh = [seen for seen in state.observations if seen.stage is Stage.CONFIRM]
        untestable = {seen.point for seen in fresh if seen.skipped}
        state.arms = tuple(arm for arm in state.arms if arm.point not in untestable)
        state.confirmation = confirming.conclude(
            state.arms,
            {arm.point: state.fresh(arm.point) for arm in state.arms},
            {seen.point: seen.environment for seen in fresh},
            state.specification.confidence,
            len(sizes),
        )
        if state.confirmation is None or state.confirmation.confirmed:
            break


def _arms(state: State) -> Asking[tuple[Planned, ...]]:
    """The arms, each with the mix that can be tested."""
    found = []
    for arm in state.blame.arms(state.low, state.high):
        point = yield from state.testable(Stage.CONFIRM, arm.point)
        label = arm.label if point == arm.point else f"{arm.label}, pins overridden"
        found.append(replace(arm, point=point, label=label))
    return tuple(found)
