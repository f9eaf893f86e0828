"""Exact statistics of small counts, and the interval of a paired ratio. Pure; numbers in, numbers out.

Only ``scipy.special`` is used, and imported at the first interval: it takes 0.4 s, which a command that shows no
interval need not pay. ``scipy.stats`` would take a second more.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import comb, exp, inf, isfinite, log, sqrt

from bisect_env.verdicts.records import Interval

MOST_RANKED = 64
"""Pairs beyond which the mean of log ratios is as good as normal; ranking takes time with the square of the number."""


@lru_cache(maxsize=1024)
def clopper_pearson(k: int, n: int, confidence: float = 0.95) -> Interval:
    """Two-sided Clopper-Pearson interval of a proportion: k of n.

    The limits are quantiles of beta distributions (Clopper & Pearson, Biometrika 26 (1934) 404-413); the interval
    covers the true proportion with at least ``confidence``, whatever it is. Without trials it is all of [0, 1].

    Raises:
        ValueError: k is not within 0..n.
    """
    _check(k, n)
    from scipy.special import betaincinv

    tail = (1 - confidence) / 2
    low = 0.0 if k == 0 else float(betaincinv(k, n - k + 1, tail))
    high = 1.0 if k == n else float(betaincinv(k + 1, n - k, 1 - tail))
    return Interval(k, n, low, high, confidence)


@lru_cache(maxsize=1024)
def upper_bound(k: int, n: int, confidence: float = 0.95) -> float:
    """One-sided Clopper-Pearson upper bound of a proportion; without a failure ``1 - (1 - confidence)**(1/n)``.

    0 of 20 gives 0.139 at 95 %. Without trials it is 1.

    Raises:
        ValueError: k is not within 0..n.
    """
    _check(k, n)
    if k == n:
        return 1.0
    if k == 0:
        return float(1 - (1 - confidence) ** (1 / n))
    from scipy.special import betaincinv

    return float(betaincinv(k + 1, n - k, confidence))


def clean_trials_needed(bound: float, confidence: float = 0.95) -> int:
    """Fewest clean trials whose upper bound is at most ``bound``: 59 for 0.05 at 95 %.

    Raises:
        ValueError: ``bound`` is not above 0, so that no number of trials would do.
    """
    if not bound > 0:
        raise ValueError(f"no number of clean trials shows a rate of at most {bound}")
    if bound >= 1:
        return 1
    n = max(1, int(log(1 - confidence) / log(1 - bound)) - 1)
    while 1 - (1 - confidence) ** (1 / n) > bound:
        n += 1
    return n


@lru_cache(maxsize=8192)
def fisher_greater(k1: int, n1: int, k0: int, n0: int) -> float:
    """One-sided exact p-value that k1 of n1 is a higher rate than k0 of n0 (Fisher 1935).

    The chance, given the total of failures, that at least k1 of them fall among the n1: a hypergeometric tail, summed
    in integers. Under equal rates it is at most ``a`` with probability at most ``a``, whatever the common rate.
    1.0 when either side has no trials.

    Raises:
        ValueError: k1 is not within 0..n1, or k0 not within 0..n0.
    """
    _check(k1, n1)
    _check(k0, n0)
    failed, total = k1 + k0, n1 + n0
    tail = sum(comb(failed, i) * comb(total - failed, n1 - i) for i in range(k1, min(failed, n1) + 1))
    return tail / comb(total, n1)


@lru_cache(maxsize=8192)
def stratified_greater(tables: tuple[tuple[int, int, int, int], ...]) -> float:
    """One-sided exact p-value that the first rate is the higher one in several comparisons (k1, n1, k0, n0) together.

    The exact conditional test of one common odds ratio (Birch, Journal of the Royal Statistical Society B 26 (1964)
    313-324; Mehta, Patel & Gray, Journal of the American Statistical Association 80 (1985) 969-973): the chance, given
    the total of failures of each table, that the sum of all k1 is at least what it is. Where the two rates are equal in
    every table, which may each have other ones, it is at most ``a`` with probability at most ``a``. Of one table it is
    :func:`fisher_greater`; a table without a failure, or with nothing but failures, changes nothing.

    Raises:
        ValueError: a k is not within 0..n.
    """
    ways = [1]
    for k1, n1, k0, n0 in tables:
        _check(k1, n1)
        _check(k0, n0)
        failed, total = k1 + k0, n1 + n0
        own = [comb(failed, i) * comb(total - failed, n1 - i) for i in range(min(failed, n1) + 1)]
        longer = [0] * (len(ways) + len(own) - 1)
        for at, count in enumerate(ways):
            for i, more in enumerate(own):
                longer[at + i] += count * more
        ways = longer
    return sum(ways[sum(k1 for k1, _, _, _ in tables) :]) / sum(ways)


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """Lower quartile, median and upper quartile, linear between neighbours (type 7 of Hyndman & Fan 1996).

    Raises:
        ValueError: there are no values.
    """
    if not values:
        raise ValueError("no values, so no quartiles")
    ordered = sorted(values)

    def at(share: float) -> float:
        place = share * (len(ordered) - 1)
        below = int(place)
        above = min(below + 1, len(ordered) - 1)
        return ordered[below] + (ordered[above] - ordered[below]) * (place - below)

    return at(0.25), at(0.5), at(0.75)


def ratio_interval(
    pairs: Sequence[tuple[float, float]], confidence: float = 0.95
) -> tuple[float, float | None, float | None] | None:
    """Ratio of a to b from pairs (a, b) that were measured together, with its two-sided interval.

    The geometric mean of a/b, and Student's t interval of the mean log ratio (the paired analysis of ratios that
    bioequivalence studies use: FDA, Statistical Approaches to Establishing Bioequivalence, 2001; for benchmarks
    Kalibera & Jones, ISMM 2013). Pairing takes out what a block's two trials share, such as a warm machine. A single
    stalled trial moves the mean and widens the interval together, so that it cannot make a ratio look certain.

    A signed-rank interval (Hodges & Lehmann 1963) would need no normal distribution, but has no 95 % interval below
    six pairs: not even a fivefold loss could then be established from five blocks.

    Returns:
        Ratio, low, high; low and high are None for a single pair; None without a usable pair. Pairs with a value that
        is not positive and finite are left out.
    """
    logs = [log(a) - log(b) for a, b in pairs if 0 < a < inf and 0 < b < inf]
    if not logs:
        return None
    n, mean = len(logs), sum(logs) / len(logs)
    if n == 1:
        return _exp(mean), None, None
    from scipy.special import stdtrit

    error = sqrt(sum((value - mean) ** 2 for value in logs) / (n - 1) / n)
    half = float(stdtrit(n - 1, (1 + confidence) / 2)) * error
    return _exp(mean), _exp(mean - half), _exp(mean + half)


def signed_rank_interval(
    pairs: Sequence[tuple[float, float]], confidence: float = 0.95
) -> tuple[float, float | None, float | None] | None:
    """As :func:`ratio_interval`, where single pairs may be stalled: exact, and without a normal distribution.

    The median of all means of two log ratios, each with itself included (Hodges & Lehmann, Annals of Mathematical
    Statistics 34 (1963) 598-611), between the order statistics of these means that invert Wilcoxon's signed-rank test
    (Hollander, Wolfe & Chicken, Nonparametric Statistical Methods, 3.2 and 3.3). It covers the true ratio with at least
    ``confidence`` when the log ratios are independent and symmetric about it, whatever their distribution. From 8
    pairs one wild one moves a limit no further than to its neighbour.

    Below six pairs there is no such interval at 95 %, and beyond ``MOST_RANKED`` no need of one: then it is Student's.
    """
    logs = [log(a) - log(b) for a, b in pairs if 0 < a < inf and 0 < b < inf]
    cut = _rank_cut(len(logs), confidence) if len(logs) <= MOST_RANKED else 0
    if not cut:
        return ratio_interval(pairs, confidence)
    means = sorted((logs[i] + logs[j]) / 2 for i in range(len(logs)) for j in range(i + 1))
    _, middle, _ = quartiles(means)
    return _exp(middle), _exp(means[cut - 1]), _exp(means[-cut])


@lru_cache(maxsize=256)
def _rank_cut(n: int, confidence: float) -> int:
    """The largest k with P(T < k) of at most half of ``1 - confidence``, T the signed-rank statistic of n; 0: none."""
    ways = [1]
    for rank in range(1, n + 1):
        longer = ways + [0] * rank
        for total, count in enumerate(ways):
            longer[total + rank] += count
        ways = longer
    below, allowed = 0, (1 - confidence) / 2 * 2**n
    for k, count in enumerate(ways):
        below += count
        if below > allowed:
            return k
    return 0


def _exp(value: float) -> float:
    """As ``exp``, and the largest or smallest float instead of an overflow."""
    return exp(min(max(value, -700.0), 700.0)) if isfinite(value) else 1.0


def _check(k: int, n: int) -> None:
    if not 0 <= k <= n:
        raise ValueError(f"{k} of {n} is no proportion")
