"""The baseline's trials of earlier gates: none counts twice, and there are never too few."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bisect_env.gate import earlier
from bisect_env.trials.records import Outcome, Side
from tests.gate.build import trial

SEEDS = st.lists(st.integers(0, 80), max_size=70)


@given(SEEDS, st.lists(st.integers(0, 80), min_size=1, max_size=40, unique=True), st.integers(1, 8))
def test_there_are_as_many_as_blocks_and_no_seed_twice(old: list[int], seeds: list[int], first: int) -> None:
    found = earlier.countable([trial(at, run="r0", seed=seed) for at, seed in enumerate(old)], {"r0"})
    gone = earlier.left_out(found, seeds, first)
    own = [trial(block, seed=seed) for block, seed in enumerate(seeds) if block not in gone]
    together = earlier.together(found, own)
    counted = [sample.record.seed for sample in together]
    assert len(counted) == len(set(counted)) >= len(seeds)
    assert not gone & set(range(first)), "the first blocks are run in any case"
    assert set(own) <= set(together)


def test_none_is_run_where_enough_are_there() -> None:
    old = [trial(at, run="r0", seed=1000 + at) for at in range(20)]
    assert earlier.left_out(earlier.countable(old, {"r0"}), list(range(20)), 2) == frozenset(range(2, 20))
    assert earlier.left_out(earlier.countable(old[:5], {"r0"}), list(range(20)), 2) == frozenset(range(15, 20))
    assert earlier.left_out([], list(range(20)), 2) == frozenset()


def test_only_threaded_trials_of_those_runs_count() -> None:
    samples = [
        trial(0, run="r0"),
        trial(1, run="r9"),
        trial(2, run="r0", side=Side.SERIAL),
        trial(3, Outcome.INFRA, run="r0"),
        trial(4, Outcome.FAILED, run="r0"),
    ]
    assert [sample.block for sample in earlier.countable(samples, {"r0"})] == [0, 4]
