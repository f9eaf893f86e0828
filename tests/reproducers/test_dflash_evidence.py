"""What dflash predicts and reports, as the verdicts read it: no fused run passes for dense, no dense one for fused."""

from __future__ import annotations

import json
from typing import Any

import dflash_plan as plan
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisect_env.trials import events
from bisect_env.trials.records import Side, TrialRecord
from bisect_env.verdicts.attention import attention
from bisect_env.verdicts.looks import Design
from bisect_env.verdicts.records import Verdict
from bisect_env.verdicts.verdict import judge
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


def trial_of(side: Side, dense: str | None, kernels: bool = False) -> TrialRecord:
    """A trial as read from events in the shape in which dflash writes them; attention of the thread `dense` is not."""
    predicted = plan.predicted(plan.memory(SIZE, SIZE.anchors, "none", 2), 3, 3)
    written: list[dict[str, Any]] = [{"event": "start", "pid": 1}, {"event": "ready", "versions": {}, "devices": []}]
    for name in ("w0", "w1", "w2"):
        unfused = 91 if name == dense else 0
        signs = {"math_attention": unfused} | ({"kernels": unfused} if kernels else {})
        written.append({"event": "path", "thread": name, "calls": 91, "signs": signs})
    peak = 10_100_000_000 if dense is None else 18_250_000_000
    written.append({"event": "memory", "peak_bytes": peak, "predicted": predicted, "device": "cuda:0"})
    written.append({"event": "done"})
    facts = events.read("".join(json.dumps({"t": float(t), **event}) + "\n" for t, event in enumerate(written)))
    assert facts.ignored == 0
    return record(
        side,
        paths=tuple(facts.paths),
        peak_bytes=facts.peak_bytes,
        predicted_bytes=tuple(facts.predicted_bytes.items()),
        exposures=5,
    )


def judged(*trials: TrialRecord) -> Verdict:
    controls = [trial_of(side, None) for side in (Side.SERIAL, Side.SOLO) for _ in range(6)]
    return judge([*trials, *controls], Design(12, 6))


def test_a_planted_dense_worker_among_fused_ones_is_found() -> None:
    found = judged(*(trial_of(Side.THREADS, "w1") for _ in range(12)), trial_of(Side.PROFILE, "w1", kernels=True))
    assert found.text == "DENSE 100 %"
    assert [item.thread for item in found.dense if item.share >= 0.01] == ["w1"]
    said = "w1 ran 100 % of 1092 calls after warm-up unfused (kernels 100 %, math_attention 100 %, memory)"
    assert said in found.reason
    assert found.reason.endswith("not in the controls")


def test_it_is_found_by_two_signs_without_a_profiled_trial_and_in_one_trial_of_twelve() -> None:
    trials = [trial_of(Side.THREADS, None) for _ in range(11)]
    assert judged(*trials, trial_of(Side.THREADS, "w2")).text == "DENSE 8 %"
    clean = judged(*trials, trial_of(Side.THREADS, None), trial_of(Side.PROFILE, None, kernels=True))
    assert clean.text == "FULL"
    assert "attention fused in every thread, by kernels, math_attention, memory" in clean.reason
    assert not any("fused" in mark for mark in clean.marks)
