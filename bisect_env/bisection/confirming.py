"""Confirmation on fresh trials: which environments, how many trials, and what they establish. Pure.

Everything that a search has seen helped to choose its answer, so that none of it can say how sure the answer is. Here
only the culprit is flipped, once with everything else at the bad side and once at the good one, in turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, isnan

from bisect_env.bisection.records import BAD, Arm, Confirmation, Levels
from bisect_env.search.records import Tally
from bisect_env.verdicts.statistics import clopper_pearson, fisher_greater

LOOKS = 3
"""Looks at the confirming trials, each of which may spend an equal part of ``1 - confidence`` (Bonferroni)."""
FAILURES_WANTED = 5
"""Expected at the first look; each further look doubles the trials. 5 of 5 against 0 of 5 is 1 in 252, and enough."""
MOST = 60
"""Trials of an arm at the first look, however rarely it fails."""


@dataclass(frozen=True)
class Planned:
    """One environment of the confirmation."""

    label: str
    background: str
    """``bad`` or ``good``: the side of everything that is not to blame."""
    point: Levels
    fails: bool


def first_look(rate: float, most: int | None) -> int:
    """Trials of each arm until the first look.

    Args:
        rate: of failures at the bad level, as the search estimates it; NaN when it does not know.
        most: that the user allows for an arm in all; None: as many as it takes.
    """
    wanted = ceil(FAILURES_WANTED / rate) if not isnan(rate) and rate > 0 else MOST
    wanted = min(max(FAILURES_WANTED, wanted), MOST)
    return wanted if most is None else max(1, min(wanted, most))


def looks(first: int, most: int | None) -> tuple[int, ...]:
    """Trials of each arm at each look, in all."""
    sizes = [first * 2**number for number in range(LOOKS)]
    return tuple(dict.fromkeys(size if most is None else min(size, most) for size in sizes))


def contrast(arms: Sequence[Planned], tallies: Mapping[Levels, Tally], background: str) -> float:
    """The p-value of one direction: the least sure of the comparisons of a failing arm with a passing one."""
    own = [arm for arm in arms if arm.background == background]
    failing = [tallies.get(arm.point, Tally()) for arm in own if arm.fails]
    passing = [tallies.get(arm.point, Tally()) for arm in own if not arm.fails]
    return max(
        (fisher_greater(bad.failures, bad.counted, good.failures, good.counted) for bad in failing for good in passing),
        default=1.0,
    )


def conclude(
    arms: Sequence[Planned],
    tallies: Mapping[Levels, Tally],
    environments: Mapping[Levels, str],
    confidence: float,
) -> Confirmation | None:
    """What the trials so far establish, in the direction that says more; None without an arm of each kind."""
    backgrounds = [side for side in dict.fromkeys(arm.background for arm in arms) if _complete(arms, side)]
    if not backgrounds:
        return None
    background = min(backgrounds, key=lambda side: (contrast(arms, tallies, side), side != BAD))
    p_value = contrast(arms, tallies, background)
    own = [arm for arm in arms if arm.background == background]
    passing = max((tallies.get(arm.point, Tally()) for arm in own if not arm.fails), key=_rate)
    failing = min((tallies.get(arm.point, Tally()) for arm in own if arm.fails), key=_rate)
    # Two directions are looked at, LOOKS times each.
    limit = (1 - confidence) / (LOOKS * len(backgrounds))
    return Confirmation(
        good=clopper_pearson(passing.failures, passing.counted),
        bad=clopper_pearson(failing.failures, failing.counted),
        background=background,
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
        confirmed=p_value <= limit,
    )


def _complete(arms: Sequence[Planned], background: str) -> bool:
    return {arm.fails for arm in arms if arm.background == background} == {True, False}


def _rate(tally: Tally) -> float:
    return tally.failures / tally.counted if tally.counted else 0.0
