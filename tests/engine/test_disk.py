"""The estimate of disk: each distribution once, whatever the number of environments that share it."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from bisect_env.engine.disk import needed_bytes, size
from bisect_env.environments import usage
from tests.report import build

GIGA = 10**9
TORCH = build.lock(pins=(("torch", "2.14.1"), ("numpy", "2.0")), downloads=(("torch", 3 * GIGA), ("numpy", 10**7)))


def test_what_two_environments_share_is_fetched_once() -> None:
    other = replace(TORCH, pins=(*TORCH.pins, ("six", "1.0")), downloads=(*TORCH.downloads, ("six", 10**4)))
    assert needed_bytes([TORCH, other]) - needed_bytes([TORCH]) == usage.estimate_bytes(10**4)


def test_another_version_of_the_large_one_counts_in_full() -> None:
    older = replace(TORCH, pins=(("torch", "2.11.0"), ("numpy", "2.0")))
    assert needed_bytes([TORCH, older]) - needed_bytes([TORCH]) == usage.estimate_bytes(3 * GIGA)


def test_sizes_that_the_index_does_not_tell_count_as_little() -> None:
    assert needed_bytes([replace(TORCH, downloads=None)]) == usage.estimate_bytes(0)


@given(st.integers(0, 10**15))
def test_sizes_for_people_are_short_and_say_their_unit(count: int) -> None:
    value, unit = size(count).split()
    scale = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}[unit]
    assert abs(float(value) * scale - count) <= max(0.06 * count, 0.6 * scale) and len(size(count)) <= 9
