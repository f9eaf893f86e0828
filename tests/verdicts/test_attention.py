from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisect_env.trials.records import Side, TrialRecord
from bisect_env.verdicts.attention import attention
from tests.verdicts.build import paths, record

GIB = 2**30


def threaded(*counts: tuple[str, int, dict[str, int]]) -> TrialRecord:
    return record(Side.THREADS, paths=paths(*counts))


def profiled(*counts: tuple[str, int, dict[str, int]]) -> TrialRecord:
    return record(Side.PROFILE, paths=paths(*counts))


def memory(gib: float, fused: float = 5, dense: float = 21) -> TrialRecord:
    predicted = (("fused", int(fused * GIB)), ("dense", int(dense * GIB)))
    return record(Side.THREADS, peak_bytes=int(gib * GIB), predicted_bytes=predicted)


def test_two_signs_that_agree() -> None:
    found = attention([threaded(("w0", 1000, {"math_attention": 310, "library_choice": 300}))], [], [])
    assert found.dense and not found.doubtful
    assert found.threads[0].share == pytest.approx(0.30)
    said = "w0 ran 30 % of 1000 calls after warm-up unfused (library_choice 30 %, math_attention 31 %)"
    assert said in found.reason


def test_one_sign_is_doubtful() -> None:
    found = attention([threaded(("w0", 1000, {"math_attention": 310}))], [], [])
    assert found.dense and found.doubtful and found.reason.endswith("one sign only")


def test_signs_that_contradict_each_other_are_one_sign() -> None:
    found = attention([threaded(("w0", 1000, {"math_attention": 900, "library_choice": 0}))], [], [])
    assert found.dense and found.doubtful
    far_apart = attention([threaded(("w0", 1000, {"math_attention": 900, "library_choice": 20}))], [], [])
    assert far_apart.dense and far_apart.doubtful


@pytest.mark.parametrize(("unfused", "dense"), [(9, False), (10, True)])
def test_from_one_percent_up(unfused: int, dense: bool) -> None:
    signs = {"math_attention": unfused, "library_choice": unfused}
    assert attention([threaded(("w0", 1000, signs))], [], []).dense is dense


def test_a_dense_worker_among_fused_ones_is_found_in_one_trial_of_many() -> None:
    fused = {"math_attention": 0, "library_choice": 0}
    trials = [threaded(*((f"w{i}", 100, fused) for i in range(64))) for _ in range(11)]
    planted = {"math_attention": 100, "library_choice": 100}
    trials.append(threaded(*((f"w{i}", 100, planted if i == 41 else fused) for i in range(64))))
    found = attention(trials, [], [])
    assert found.dense and not found.doubtful
    assert [item.thread for item in found.threads if item.share >= 0.01] == ["w41"]
    assert sum(item.share for item in found.threads) / 64 < 0.01  # an average over threads would have hidden it


def test_kernels_come_from_profiled_trials_only() -> None:
    counted = threaded(("w0", 100, {"math_attention": 30}), ("w1", 100, {"math_attention": 0}))
    seen = profiled(("w0", 50, {"kernels": 0, "math_attention": 50}), ("w1", 50, {"kernels": 14}))
    found = attention([counted], [], [seen])
    w0, w1 = found.threads
    assert found.dense and not found.doubtful
    assert w0.share == pytest.approx(0.28)  # another thread fell back in the profiled trial: it is the same fault
    assert dict(w1.signs) == {"kernels": pytest.approx(0.28), "math_attention": 0.0}
    assert attention([], [], [seen]).doubtful


def test_memory_is_a_sign() -> None:
    dense, fused, between = memory(20), memory(5.2), memory(7)
    alone = attention([dense], [], [])
    assert alone.dense and alone.doubtful and alone.threads[0].thread == "process"
    assert "in 100 % of the trials: at least one call in each ran unfused" in alone.reason
    assert not attention([fused], [], []).dense
    assert not attention([between], [], []).dense
    assert not attention([memory(6, fused=5, dense=6)], [], []).dense  # predictions too near each other
    counted = replace(dense, paths=paths(("w0", 100, {"math_attention": 30})))
    both = attention([counted], [], [])
    assert both.dense and not both.doubtful and both.threads[0].share == pytest.approx(0.3)
    assert "(math_attention 30 %, memory)" in both.reason


def test_memory_confirms_unfused_calls_of_its_own_trial_only() -> None:
    counted = replace(memory(5.2), paths=paths(("w0", 100, {"math_attention": 30})))
    quiet = replace(memory(20), paths=paths(("w0", 100, {"math_attention": 0})))
    found = attention([counted, quiet], [], [])
    assert found.dense and found.doubtful  # each trial has one sign, and they contradict each other
    apart = attention([counted], [], [])
    assert apart.doubtful and "(math_attention 30 %, not memory)" in apart.reason


def test_memory_of_one_trial_is_enough_beside_another_sign() -> None:
    fused = [replace(memory(5.2), paths=paths(("w0", 100, {"math_attention": 0}))) for _ in range(11)]
    found = attention([*fused, replace(memory(20), paths=paths(("w0", 100, {"math_attention": 100})))], [], [])
    assert found.dense and not found.doubtful
    assert found.threads[0].share == pytest.approx(100 / 1200)


def test_fused_rests_on_the_signs_that_every_thread_had() -> None:
    calm = {"math_attention": 0}
    counted = replace(memory(5.2), paths=paths(("w0", 100, calm), ("w1", 100, calm)))
    found = attention([counted], [], [profiled(("w0", 91, {"kernels": 0}), ("w1", 91, {"kernels": 0}))])
    assert not found.dense and found.fused_by == ("kernels", "math_attention", "memory") and found.marks == ()
    part = attention([threaded(("w0", 9, calm), ("w1", 9, calm))], [], [profiled(("w0", 91, {"kernels": 0}))])
    assert part.fused_by == ("math_attention",)
    assert part.marks == ("that attention ran fused rests on one sign only (math_attention), w1",)


def test_what_fused_does_not_rest_on_is_marked() -> None:
    one = attention([threaded(("w0", 9, {"math_attention": 0}), ("w1", 9, {"math_attention": 0}))], [], [])
    assert one.marks == ("that attention ran fused rests on one sign only (math_attention)",)
    none = attention([threaded(("w0", 9, {"math_attention": 0}), ("w1", 9, {}))], [], [])
    assert none.fused_by == ()
    assert none.marks[0] == "how attention ran is not known, there was no sign of it: w1"
    few = attention([threaded(("w0", 1000, {"math_attention": 4, "library_choice": 4}))], [], [])
    assert few.marks == (
        "w0 ran 0.4 % of 1000 calls after warm-up unfused (library_choice 0.4 %, math_attention 0.4 %), "
        "which is below 1 %",
    )


def test_controls_are_shown() -> None:
    signs = {"math_attention": 100, "library_choice": 100}
    control = record(Side.SERIAL, paths=paths(("w0", 100, signs)))
    clean = record(Side.SERIAL, paths=paths(("w0", 100, {"math_attention": 0})))
    trial = threaded(("w0", 100, signs))
    assert "in the controls as well (100 %)" in attention([trial], [control], []).reason
    assert attention([trial], [clean], []).reason.endswith("not in the controls")
    assert not attention([threaded(("w0", 100, {"math_attention": 0}))], [control], []).dense


def test_nothing_is_known_without_evidence() -> None:
    found = attention([record(Side.THREADS), threaded(("w0", 0, {"math_attention": 3}))], [], [])
    assert found.threads == () and not found.dense and found.reason == ""


PATHS = st.lists(
    st.tuples(
        st.sampled_from(["w0", "w1"]),
        st.integers(-5, 100),
        st.dictionaries(st.sampled_from(["math_attention", "kernels", "counters"]), st.integers(-5, 200)),
    ),
    max_size=4,
)


@given(PATHS, PATHS, PATHS)
def test_shares_are_shares(one: list[tuple[str, int, dict[str, int]]], two: object, three: object) -> None:
    found = attention([threaded(*one)], [threaded(*two)], [profiled(*three)])  # type: ignore[misc]
    assert all(0 <= item.share <= 1 for item in (*found.threads, *found.controls))
    assert found.dense == any(item.share >= 0.01 for item in found.threads)
    assert found.dense or not found.doubtful
