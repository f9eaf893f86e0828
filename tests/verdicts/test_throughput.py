from __future__ import annotations

import pytest

from bisect_env.trials.records import Outcome, Side, StepTime
from bisect_env.verdicts.samples import Placed
from bisect_env.verdicts.throughput import throughput
from tests.verdicts.build import rates, record


def test_the_ratio_pairs_blocks() -> None:
    drifting = [1000.0, 500.0, 2000.0, 800.0]
    found = throughput(rates([x * 0.9 for x in drifting]), rates(drifting))
    assert found is not None and found.n == 4 and found.ratio == pytest.approx(0.9, abs=1e-3)
    assert found.ratio_low is not None and found.ratio_high is not None
    assert found.ratio_high - found.ratio_low < 0.01


def test_blocks_without_a_partner_do_not_enter_the_ratio() -> None:
    found = throughput(rates([900, 900, 100]), rates([1000, 1000]))
    assert found is not None and found.ratio == pytest.approx(0.9)
    apart = throughput(rates([900, 900]), rates([1000, 1000], first=7))
    assert apart is not None and apart.ratio is None


def test_only_clean_warm_work_counts() -> None:
    steps = (StepTime("w0", 100, 1.0, 1.0, True),)
    failed = Placed(record(Side.THREADS, Outcome.FAILED, steps=steps), 0)
    cold = Placed(record(Side.THREADS, steps=(StepTime("w0", 100, 1.0, 1.0, False),)), 1)
    assert throughput([failed, cold]) is None
    broken_clock = Placed(record(Side.THREADS, steps=(StepTime("w0", 100, float("nan"), 1.0, True),)), 2)
    assert throughput([broken_clock]) is None


def test_the_warmed_condition_serves_where_all_failed() -> None:
    failed = Placed(record(Side.THREADS, Outcome.FAILED), 0)
    found = throughput([failed], rates([1000]), rates([800, 900, 1000]))
    assert found is not None and found.warmed and found.median == 900 and found.ratio is None


def test_quartiles_are_of_trials() -> None:
    found = throughput(rates([100, 200, 300, 400, 500]))
    assert found is not None and (found.low, found.median, found.high, found.warmed) == (200, 300, 400, False)
