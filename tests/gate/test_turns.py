"""A B B A: within every two blocks the sides change places."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bisect_env.gate.turns import order


@given(st.integers(0, 2**31), st.integers(0, 500))
def test_every_second_block_is_the_mirror_image_of_the_one_before(seed: int, pair: int) -> None:
    first, second = order(seed, 2 * pair), order(seed, 2 * pair + 1)
    assert sorted(first) == [0, 1] and second == first[::-1]
    assert order(seed, 2 * pair) == first, "the same gate gives the same order"


@given(st.integers(0, 2**31))
def test_neither_side_always_begins(seed: int) -> None:
    assert {order(seed, 2 * pair)[0] for pair in range(60)} == {0, 1}
