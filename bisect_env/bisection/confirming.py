"""Confirmation on fresh trials: which environments, how many trials, and what they establish. Pure.

Everything that a search has seen helped to choose its answer, so that none of it can say how sure the answer is. Here
only the culprit is flipped, once with everything else at the bad side and once at the good one, in turn. That it makes
no difference in either direction is what an exact test of both together has to exclude, at one of a few looks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil

from bisect_env.bisection.records import BAD, GOOD, Arm, Confirmation, Levels
from bisect_env.search.records import Tally
from bisect_env.verdicts.records import Interval
from bisect_env.verdicts.statistics import clopper_pearson, fisher_greater, stratified_greater

LOOKS = 4
"""Most looks at the confirming trials, each of which may spend an equal part of ``1 - confidence`` (Bonferroni)."""
FAILURES_WANTED = 5
"""Expected of the failing arms together at the first look; each further look doubles the trials."""
LEAST = {1: 5, 2: 3}
"""Trials of an arm at the first look, by the directions: with fewer not even all of them against none would do."""
MOST = 240
"""Trials of all arms together, or as many as the search has taken when those are more: to confirm costs no more than to
search does."""


Rates = tuple[Interval, Interval]
"""Of the passing arm and of the failing one of a direction."""


@dataclass(frozen=True)
class Planned:
    """One environment of the confirmation."""

    label: str
    background: str
    """``bad`` or ``good``: the side of everything that is not to blame."""
    point: Levels
    fails: bool


def looks(rate: float, arms: int, directions: int, most: int | None, searched: int = 0) -> tuple[int, ...]:
    """Trials of each arm at each look, in all.

    Args:
        rate: of failures at the bad level, as the search estimates it; NaN when it does not know.
        arms: environments that take turns.
        directions: 1, or 2 that are judged together, each with half of the failures that are wanted.
        most: that the user allows for an arm in all; None: :data:`MOST` among all of them.
        searched: trials that the search has taken.
    """
    bound = max(1, max(MOST, searched) // arms if most is None else most)
    wanted = FAILURES_WANTED / rate / directions if rate > 0 else bound
    first = min(max(LEAST[directions], ceil(min(wanted, bound))), bound)
    return tuple(dict.fromkeys(min(first * 2**number, bound) for number in range(LOOKS)))


def contrast(arms: Sequence[Planned], tallies: Mapping[Levels, Tally], backgrounds: Sequence[str]) -> float:
    """The p-value of one direction, or of two together: the least sure of the ways to compare a failing arm with a
    passing one in each."""
    pairs = [
        [
            (bad.failures, bad.counted, good.failures, good.counted)
            for bad in _tallies(arms, tallies, side, fails=True)
            for good in _tallies(arms, tallies, side, fails=False)
        ]
        for side in backgrounds
    ]
    return max(map(stratified_greater, product(*pairs)))


def conclude(
    arms: Sequence[Planned],
    tallies: Mapping[Levels, Tally],
    environments: Mapping[Levels, str],
    confidence: float,
    times: int,
) -> Confirmation | None:
    """What the trials so far establish; None without an arm of each kind.

    Both directions are judged together. The rates are those beside the bad side, unless it shows less than the other
    one beyond chance: not those that happen to say more.

    Args:
        arms: that can be tested.
        tallies: of the confirming trials at each mix.
        environments: the address of each.
        confidence: of the bisection.
        times: how often it is looked at most, which share the risk.
    """
    backgrounds = [side for side in dict.fromkeys(arm.background for arm in arms) if _complete(arms, side)]
    if not backgrounds:
        return None
    p_value = contrast(arms, tallies, backgrounds)
    rates = {side: _rates(arms, tallies, side) for side in backgrounds}
    shown = backgrounds[0]
    if len(rates) > 1:
        shown = GOOD if _differing(rates[GOOD], rates[BAD], confidence) else BAD
    good, bad = rates[shown]
    return Confirmation(
        good=good,
        bad=bad,
        background=shown,
        p_value=p_value,
        arms=tuple(
            Arm(
                arm.label,
                arm.point,
                arm.fails,
                clopper_pearson(tally.failures, tally.counted),
                environments.get(arm.point, ""),
            )
            for arm in arms
            for tally in [tallies.get(arm.point, Tally())]
        ),
        confirmed=p_value <= (1 - confidence) / times,
        other=next((rates[side] for side in backgrounds if side != shown), None),
    )


def disagreement(found: Confirmation, confidence: float) -> str:
    """Why the other direction shows something else, beyond what chance explains; empty where it does not."""
    if found.other is None:
        return ""
    side, other = (BAD, GOOD) if found.background == BAD else (GOOD, BAD)
    differs = _differing((found.good, found.bad), found.other, confidence)
    if not differs:
        return ""
    if differs == "passing":
        return f"something else of the {other} side fails as well"
    good, bad = found.other
    needs = fisher_greater(bad.k, bad.n, good.k, good.n) > 1 - confidence
    return f"it {'needs' if needs else 'fails more often beside'} something else of the {side} side"


def _differing(shown: Rates, other: Rates, confidence: float) -> str:
    """Which arm of the other direction shows less of the difference than that of the direction shown: the ``passing``
    one, which fails more often, or the ``failing`` one, which fails less often. Empty where chance explains it."""
    if fisher_greater(other[0].k, other[0].n, shown[0].k, shown[0].n) <= 1 - confidence:
        return "passing"
    if fisher_greater(shown[1].k, shown[1].n, other[1].k, other[1].n) <= 1 - confidence:
        return "failing"
    return ""


def _rates(arms: Sequence[Planned], tallies: Mapping[Levels, Tally], side: str) -> Rates:
    """Of the passing arm that fails most, and of the failing one that fails least."""
    good = max(_tallies(arms, tallies, side, fails=False), key=_rate)
    bad = min(_tallies(arms, tallies, side, fails=True), key=_rate)
    return clopper_pearson(good.failures, good.counted), clopper_pearson(bad.failures, bad.counted)


def _tallies(arms: Sequence[Planned], tallies: Mapping[Levels, Tally], side: str, *, fails: bool) -> list[Tally]:
    own = [arm for arm in arms if arm.background == side and arm.fails is fails]
    return [tallies.get(arm.point, Tally()) for arm in own]


def _complete(arms: Sequence[Planned], background: str) -> bool:
    return {arm.fails for arm in arms if arm.background == background} == {True, False}


def _rate(tally: Tally) -> float:
    return tally.failures / tally.counted if tally.counted else 0.0
