"""How well several changes explain what one cannot: it broke, was fixed, and broke again.

The alternative against which one change is held: 2, 3 or 4 changes, each number alike, anywhere along the line, with a
failure rate of its own between each two; where changes have prior weights, a set of them has the product of theirs. Its
likelihood is summed over all places of the changes by the forward recursion of Fearnhead (Statistics and Computing 16,
2006), over the positions that were tested.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlog1py, xlogy

from bisect_env.search.rates import EITHER, Counts, Floats

CHANGES = (2, 3, 4)


def log_several_changes(failures: Counts, passes: Counts, prior: Floats | None = None) -> float:
    """Natural log of the probability of all outcomes in their order under 2 to 4 changes.

    Changes between the same two tested positions cannot be told apart and count as one.

    Args:
        failures: at positions 0..n: (n + 1,).
        passes: as the failures.
        prior: positive weights of the changes 1..n, on any scale: (n,); None: all alike.
    """
    tested = np.flatnonzero(failures + passes)
    count = len(failures) - 1
    if len(tested) <= min(CHANGES):
        return float("-inf")
    sums = [np.concatenate([[0], np.cumsum(counts[tested])]) for counts in (failures, passes)]
    # inside[i, j]: the tested positions i..j-1 have one rate of their own.
    spans = [np.maximum(total[None, :] - total[:, None], 0) for total in sums]
    inside = EITHER.log_marginal(*spans)
    # Of a change before each tested position but the first: so many positions are possible, or so much weight.
    places = np.log(np.diff(tested if prior is None else np.concatenate([[0.0], np.cumsum(prior)])[tested]))
    choices = _log_choices(count, prior)
    segment = np.where(np.triu(np.ones(inside.shape, dtype=bool), 1), inside, -np.inf)
    segment[1:-1] += places[:, None]
    reached, total = segment[0], []
    for changes in range(1, min(max(CHANGES), len(tested) - 1) + 1):
        # The segment that ends at j began at some i > 0, up to which there were one change fewer.
        reached = np.logaddexp.reduce(reached[1:-1, None] + segment[1:-1], axis=0)
        if changes in CHANGES:
            total.append(float(reached[-1]) - float(choices[changes]))
    return float(np.logaddexp.reduce(total)) - float(np.log(len(CHANGES)))


def _log_choices(count: int, prior: Floats | None) -> Floats:
    """Log of the summed weights of all sets of 0 to 4 changes, by size: so many sets where all weigh alike."""
    most = max(CHANGES)
    if prior is None:
        sizes = np.arange(min(most, count) + 1)
        return np.asarray(gammaln(count + 1) - gammaln(sizes + 1) - gammaln(count - sizes + 1), dtype=np.float64)
    # The elementary symmetric sums of the weights, one weight after the other.
    sums = np.zeros(most + 1)
    sums[0] = 1.0
    for weight in prior:
        sums[1:] += weight * sums[:-1]
    return np.log(sums[: count + 1])


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
