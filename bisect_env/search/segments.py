"""How well several changes explain what one cannot: it broke, was fixed, and broke again.

The alternative against which one change is held: 2, 3 or 4 changes, each number alike, anywhere along the line, with a
failure rate of its own between each two. Its likelihood is summed over all places of the changes by the forward
recursion of Fearnhead (Statistics and Computing 16, 2006), over the positions that were tested.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp, xlog1py, xlogy

from bisect_env.search.rates import EITHER, Counts, Floats

CHANGES = (2, 3, 4)


def log_several_changes(failures: Counts, passes: Counts) -> float:
    """Natural log of the probability of all outcomes in their order under 2 to 4 changes.

    Changes between the same two tested positions cannot be told apart and count as one.

    Args:
        failures: at positions 0..n: (n + 1,).
        passes: as the failures.
    """
    tested = np.flatnonzero(failures + passes)
    count = len(failures) - 1
    if len(tested) <= min(CHANGES):
        return float("-inf")
    sums = [np.concatenate([[0], np.cumsum(counts[tested])]) for counts in (failures, passes)]
    # inside[i, j]: the tested positions i..j-1 have one rate of their own.
    spans = [np.maximum(total[None, :] - total[:, None], 0) for total in sums]
    inside = EITHER.log_marginal(*spans)
    places = np.log(np.diff(tested))
    """Of a change before each tested position but the first: so many positions are possible."""
    segment = np.where(np.triu(np.ones(inside.shape, dtype=bool), 1), inside, -np.inf)
    segment[1:-1] += places[:, None]
    reached, total = segment[0], []
    for changes in range(1, min(max(CHANGES), len(tested) - 1) + 1):
        # The segment that ends at j began at some i > 0, up to which there were one change fewer.
        reached = logsumexp(reached[1:-1, None] + segment[1:-1], axis=0)
        if changes in CHANGES:
            choices = gammaln(count + 1) - gammaln(changes + 1) - gammaln(count - changes + 1)
            total.append(float(reached[-1]) - choices)
    return float(logsumexp(total)) - float(np.log(len(CHANGES)))


def worst_explained(failures: Counts, passes: Counts, change: int, askable: NDArray[np.bool_]) -> int | None:
    """The tested position whose outcomes one change explains worst: more trials there show whether that was chance.

    Args:
        failures: at positions 0..n: (n + 1,).
        passes: as the failures.
        change: the one change, in 1..n, or 0 for none.
        askable: whether positions may be asked: (n + 1,).

    Returns:
        The position; None where no tested one may be asked.
    """
    past = np.arange(len(failures)) >= change

    def rates(side: NDArray[np.bool_]) -> float:
        return float((failures[side].sum() + 0.5) / (failures[side].sum() + passes[side].sum() + 1))

    rate: Floats = np.where(past, rates(past), rates(~past))
    # What a rate of its own would explain better, in nats.
    better = EITHER.log_marginal(failures, passes) - xlogy(failures, rate) - xlog1py(passes, -rate)
    possible = askable & (failures + passes > 0)
    return int(np.where(possible, better, -np.inf).argmax()) if possible.any() else None
