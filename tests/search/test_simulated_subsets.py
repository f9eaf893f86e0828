"""Simulated bisections among factors."""

from __future__ import annotations

import pytest

from bisect_env.search.records import Status
from bisect_env.search.simulated_subsets import FactorWorld, simulate_factors


@pytest.mark.parametrize("culprits", [1, 2])
def test_runs_know_their_truth_and_count_what_they_did(culprits: int) -> None:
    world = FactorWorld(6, culprits, 0.8, 0.0, build=2.0)
    runs = list(simulate_factors(world, confidence=0.99, batch="auto", runs=12, seed=5))
    assert len({run.truth for run in runs}) > 3
    for run in runs:
        assert len(run.truth) == culprits
        assert run.status is Status.CONFIDENT and run.stated >= 0.99
        assert run.environments <= run.trials
    assert sum(run.wrong for run in runs) <= 1


def test_a_run_does_not_depend_on_how_many_there_are() -> None:
    world = FactorWorld(5, 1, 0.7, 0.02)
    few, more = (list(simulate_factors(world, confidence=0.9, batch=2, runs=runs, seed=9)) for runs in (2, 4))
    assert more[:2] == few
    assert all(run.trials % 2 == 0 for run in more)
