"""Conflicts learnt from mixes that did not resolve."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bisect_env.search.unresolvable import LEAST, Unresolvable

FACTORS = 10


def row(*factors: int) -> np.ndarray:
    return np.isin(np.arange(FACTORS), factors)


def chance(mixes: Unresolvable, *factors: int) -> float:
    return float(mixes.chance(row(*factors)[None])[0])


def test_nothing_is_suspected_without_a_reason() -> None:
    assert chance(Unresolvable(FACTORS), 1, 2) == 1


def test_a_forbidden_mix_has_no_chance_and_likeness_to_it_lowers_it() -> None:
    mixes = Unresolvable(FACTORS)
    mixes.forbid(row(1, 2, 3))
    assert chance(mixes, 1, 2, 3) == 0
    assert chance(mixes, 1, 2) < chance(mixes, 5, 6) <= 1


def test_what_resolved_clears_the_pairs_of_levels_in_it() -> None:
    mixes = Unresolvable(FACTORS)
    mixes.forbid(row(1, 2))
    before = chance(mixes, 1)
    mixes.works(row(1, 5))
    assert chance(mixes, 1) > before


@settings(max_examples=25, deadline=None)
@given(st.integers(0, FACTORS - 1), st.integers(0, FACTORS - 1), st.integers(0, 2**32 - 1))
def test_one_conflict_is_found(bad: int, good: int, seed: int) -> None:
    """After some mixes, those with the conflict are avoided and those without it are not."""
    if bad == good:
        return
    random = np.random.default_rng(seed)
    mixes = Unresolvable(FACTORS)
    points = random.random((200, FACTORS)) < 0.5
    conflict = points[:, bad] & ~points[:, good]
    for point, fails in zip(points[:60], conflict[:60], strict=True):
        (mixes.forbid if fails else mixes.works)(point)
    chances = mixes.chance(points[60:])
    assert (chances[conflict[60:]] < LEAST).all()
    assert (chances[~conflict[60:]] > 0.5).all()
    assert not mixes.apart((bad,), tuple(sorted((bad, good))))
    assert mixes.apart((bad,), (good,))
