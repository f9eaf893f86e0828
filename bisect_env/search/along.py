"""When a search along a line is over, and what it asks next. For many lines at once; positions come last.

Changes that no position that may be asked could tell apart form a group: those between two such positions next to each
other. A search is over when a group has the probability asked for, not a single change: no trial could split it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bisect_env.search.rates import Counts, Floats
from bisect_env.search.records import Status

SIZES = (1, 2, 4, 8, 16, 32)
"""Batches that are considered when their size is to be chosen."""
NEGLIGIBLE = 1e-7
"""Less information (nats) than this is none."""
SEVERAL = 0.01
"""Prior probability that the rate changes more than once along the line."""
LOOK_AGAIN = 1.2
"""How much the number of trials has to grow before more than one change is considered again."""


def most_probable(weights: Floats, askable: NDArray[np.bool_]) -> Floats:
    """Probability of the most probable group, or of none where that is higher.

    Args:
        weights: posterior of none and the changes 1..n: (..., n + 1).
        askable: whether positions 0..n may be asked: (..., n + 1).
    """
    # A group ends below each askable position m, with the change m; those above the last one are the last group.
    up_to = np.cumsum(weights, axis=-1) - weights[..., :1]
    ends = askable.copy()
    ends[..., 0], ends[..., -1] = False, True
    before = np.maximum.accumulate(np.where(ends, up_to, 0.0), axis=-1)
    groups = up_to[..., 1:] - before[..., :-1]
    highest = np.where(ends[..., 1:], groups, 0.0).max(axis=-1)
    return np.asarray(np.maximum(highest, weights[..., 0]), dtype=np.float64)


@dataclass(frozen=True)
class Choice:
    """What to ask next: all (...)."""

    position: Counts
    size: Counts
    information: Floats
    """What that is expected to tell, in nats."""


def choose(
    information: Callable[[int], Floats],
    askable: NDArray[np.bool_],
    build: Floats,
    trial: Floats,
    sizes: tuple[int, ...],
) -> Choice:
    """The position and the batch that tell most about the change per second.

    Args:
        information: nats that so many trials at each position are expected to tell: (..., n + 1).
        askable: whether positions 0..n may be asked: (..., n + 1).
        build: seconds that a batch at each position costs before its first trial: (..., n + 1).
        trial: seconds a trial: (...).
        sizes: of batches, in ascending order. Where no build costs anything only the first is looked at: a larger
            batch never tells more a trial.
    """
    best: Choice | None = None
    highest = np.full(trial.shape, -np.inf)
    for size in sizes if build.any() else sizes[:1]:
        told = np.where(askable, information(size), 0.0)
        rate = told / (build + size * trial[..., None])
        position = rate.argmax(axis=-1)
        at = position[..., None]
        found = np.take_along_axis(rate, at, axis=-1)[..., 0]
        better = found > highest
        highest = np.maximum(found, highest)
        new = Choice(position, np.full(trial.shape, size), np.take_along_axis(told, at, axis=-1)[..., 0])
        best = new if best is None else _where(better, new, best)
    assert best is not None
    return best


def _where(better: NDArray[np.bool_], new: Choice, old: Choice) -> Choice:
    return Choice(
        np.where(better, new.position, old.position),
        np.where(better, new.size, old.size),
        np.where(better, new.information, old.information),
    )


def several(log_several: float, log_one: float) -> float:
    """Probability of more than one change, given the log likelihoods of the data under several and under one."""
    odds = np.log(SEVERAL / (1 - SEVERAL)) + log_several - log_one
    return float(1 / (1 + np.exp(-np.clip(odds, -700, 700))))


def status(probability: float, more_than_one: float, confidence: float) -> Status:
    """Where a search stands.

    Args:
        probability: of the most probable group, or of none.
        more_than_one: probability of more than one change.
        confidence: the probability asked for.
    """
    if more_than_one >= confidence:
        return Status.MISFIT
    return Status.CONFIDENT if probability * (1 - more_than_one) >= confidence else Status.SEARCHING


def smallest_range(weights: Floats, mass: float, prior: Floats | None = None) -> tuple[int, int]:
    """The shortest run of changes low..high with at least this much posterior, of those the most probable one.

    Neighbours that the outcomes make as probable as its ends belong to it: nothing that was tried told them apart, and
    a prior is no trial.

    Args:
        weights: posterior of none and the changes 1..n: (n + 1,).
        mass: at most what all changes have together, or all of them are the answer.
        prior: weights of the changes 1..n, as the posterior was made with: (n,); None: all alike.
    """
    told = weights if prior is None else np.concatenate([weights[:1], weights[1:] / prior])
    up_to = np.cumsum(weights) - weights[0]
    # From low on, the first high that is enough: rounding must not ask for one past the end.
    starts = up_to[:-1] + mass * (1 - 1e-12)
    highs = np.searchsorted(up_to, starts)
    lows = np.arange(1, len(weights))
    fits = highs < len(weights)
    if not fits.any():
        return 1, len(weights) - 1
    lows, highs = lows[fits], np.maximum(highs[fits], lows[fits])
    held = up_to[highs] - up_to[lows - 1]
    best = np.lexsort((-held, highs - lows))[0]
    low, high = int(lows[best]), int(highs[best])
    while low > 1 and np.isclose(told[low - 1], told[low], rtol=1e-6, atol=0):
        low -= 1
    while high < len(weights) - 1 and np.isclose(told[high + 1], told[high], rtol=1e-6, atol=0):
        high += 1
    return low, high
