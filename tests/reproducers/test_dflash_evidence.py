"""What dflash predicts and reports, as the verdicts read it: no fused run passes for dense, no dense one for fused."""

from __future__ import annotations

import dflash_plan as plan
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisect_env.trials.records import Side
from bisect_env.verdicts.attention import attention
from tests.verdicts.build import record

SIZE = plan.SIZES["medium"]


@pytest.mark.parametrize(
    ("gigabytes", "active", "dense"),
    [
        (5.8, 1, False),  # measured on an H200: serial control, three drafters resident
        (9.77, 3, False),  # measured there: three threads, lowest and highest of four cells
        (10.54, 3, False),
        (18.25, 1, True),  # measured there: serial, all attention unfused on purpose
        (18.25, 3, True),  # the same as the least for one dense thread: others at work beside it only add to it
        (27.0, 3, True),  # computed: fused as measured, and the 16 GiB more that three dense threads took there
    ],
)
def test_neither_a_fused_nor_a_dense_peak_is_misjudged(gigabytes: float, active: int, dense: bool) -> None:
    predicted = plan.predicted(plan.memory(SIZE, SIZE.anchors, "none", 2), 3, active)
    trial = record(Side.THREADS, peak_bytes=int(gigabytes * 1e9), predicted_bytes=tuple(predicted.items()))
    assert attention([trial], [], []).dense is dense


@given(st.integers(1, 16), st.integers(1, 16), st.sampled_from(sorted(plan.SIZES)))
def test_a_peak_as_predicted_is_what_it_was_predicted_for(residents: int, active: int, name: str) -> None:
    size = plan.SIZES[name]
    predicted = plan.predicted(plan.memory(size, size.anchors, "none", 2), residents, min(active, residents))
    said = {}
    for path in ("fused", "dense"):
        trial = record(Side.THREADS, peak_bytes=predicted[path], predicted_bytes=tuple(predicted.items()))
        said[path] = attention([trial], [], []).dense
    assert not said["fused"]
    # Where the two are too near each other memory says nothing.
    assert said["dense"] == (predicted["dense"] >= 1.5 * predicted["fused"])
