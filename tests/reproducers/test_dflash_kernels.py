"""What a profiled trace says of each thread's attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dflash_kernels as kernels
import pytest
from hypothesis import given
from hypothesis import strategies as st

# Not from a device, but as written by inductor (torch 2.11.0 and 2.14.1: `triton`, the source's category, `fused`, the
# operators, a number) and as in the symbol tables of their CUDA libraries. From a device there is one figure: three
# threads on an H200 under 2.11.0 had 91 fused kernels in 91 calls each.
FLEX = "triton_tem_fused_flex_attention_0"
BACKWARD = "triton_tem_fused_flex_attention_backward_zeros_1"
HELPER = "triton_poi_fused_flex_attention_mul_2"
SPIN = "at::cuda::(anonymous namespace)::spin_kernel(long)"
REG = (
    "void at::native::(anonymous namespace)::cunn_SoftMaxForwardReg<float, float, float, "
    "at::native::(anonymous namespace)::{}SoftMaxForwardEpilogue, long, 6>(float*, float const*, long)"
)
SMEM = (
    "void at::native::(anonymous namespace)::cunn_SoftMaxForwardSmem<4, float, float, float, "
    "at::native::(anonymous namespace)::{}SoftMaxForwardEpilogue, long>(float*, float const*, long)"
)
PLAIN = (
    "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, float, float, "
    "at::native::(anonymous namespace)::{}SoftMaxForwardEpilogue>(float*, float const*, int)"
)
WARP = (
    "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, {}, false{}>"
    "(float*, float const*, int, int, int, bool const*, int, bool)"
)
SCORES = [REG.format(""), SMEM.format(""), PLAIN.format(""), WARP.format("false", ""), WARP.format("false", ", 32")]
OTHERS = [
    *(name.format("Log") for name in (REG, SMEM, PLAIN)),
    WARP.format("true", ""),  # the loss's log-softmax in a small vocabulary; its name has no "log"
    WARP.format("true", ", 32"),  # the same since 2.14 or a little before, with the width of a warp
    PLAIN.format("").replace("float", "double"),  # the numbers check's reference
    WARP.format("false", "").replace("float", "double"),
    "void at::native::(anonymous namespace)::cunn_SoftMaxBackward<4, float, float, float, "
    "at::native::(anonymous namespace)::SoftMaxBackwardEpilogue>(float*, float const*, float const*, long)",
    "triton_per_fused__log_softmax_3",
    "nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNN",
    SPIN,
]


def kernel(name: str, ts: float, stream: int = 13, device: int = 0) -> dict[str, Any]:
    return {"ph": "X", "cat": "kernel", "name": name, "ts": ts, "dur": 1, "args": {"device": device, "stream": stream}}


def thread(index: int, kernels: Sequence[str], stream: int = 13, device: int = 0) -> list[dict[str, Any]]:
    """A thread's stream: cold calls, its markers, and what comes after them."""
    trace = [kernel(FLEX, 1, stream, device), kernel(BACKWARD, 2, stream, device)]
    trace += [kernel(SPIN, 10 + mark, stream, device) for mark in range(index + 1)]
    return trace + [kernel(name, 100 + place, stream, device) for place, name in enumerate(kernels)]


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(7, 40)), unique=True, max_size=6), st.randoms())
def test_streams_are_told_apart_by_their_markers(places: list[tuple[int, int]], order: Any) -> None:
    trace = []
    for index, (device, stream) in enumerate(places):
        trace += [kernel(FLEX, 1, stream, device)]
        trace += [kernel(SPIN, 10 + mark, stream, device) for mark in range(index + 1)]
        trace += [kernel(FLEX, 100 + call, stream, device) for call in range(3 * index)]
    order.shuffle(trace)
    found = kernels.kernels_by_thread(trace)
    assert {thread: kernels.fused_calls(counts) for thread, counts in found.items()} == {
        index: 3 * index for index in range(len(places))
    }


def test_a_stream_without_markers_and_other_events_are_nobodys() -> None:
    trace: list[dict[str, Any]] = [kernel(FLEX, 5), {"ph": "M", "name": "process_name"}]
    trace.append({"ph": "X", "cat": "cuda_runtime", "name": SPIN, "ts": 1, "args": {"correlation": 1}})
    assert kernels.kernels_by_thread(trace) == {}


def test_only_forward_templates_are_calls() -> None:
    assert kernels.fused_calls({FLEX: 4, BACKWARD: 4, HELPER: 8, SCORES[0]: 1}) == 4


def test_without_templates_any_flex_kernel_counts() -> None:
    assert kernels.fused_calls({HELPER: 2, BACKWARD: 2}) == 2


@pytest.mark.parametrize("name", SCORES)
def test_a_softmax_over_scores_is_an_unfused_call(name: str) -> None:
    assert kernels.softmax_calls({name: 3}) == 3


@pytest.mark.parametrize("name", OTHERS)
def test_other_kernels_are_not(name: str) -> None:
    assert kernels.softmax_calls({name: 3}) == 0
    assert kernels.fused_calls({name: 3}) == 0


def test_operators_fused_into_the_template_stand_on_either_side_of_its_name() -> None:
    assert kernels.fused_calls({"triton_tem_fused__to_copy_flex_attention_mul_12": 5, BACKWARD: 5, HELPER: 5}) == 5


def test_a_thread_with_fused_and_unfused_calls() -> None:
    mixed = [FLEX, BACKWARD] * 60 + [SMEM.format("")] * 31 + [REG.format("Log")] * 91
    found = kernels.kernels_by_thread(thread(0, mixed) + thread(1, [FLEX, BACKWARD] * 91, stream=17))
    assert [kernels.unfused_calls(found[index], 91) for index in (0, 1)] == [31, 0]
    assert kernels.described(found[0], 91) == "60 fused attention and 31 softmax kernels in 91 calls"


def test_one_dense_thread_among_fused_ones_on_two_devices() -> None:
    trace = thread(0, [FLEX] * 20, stream=7, device=0) + thread(1, [SCORES[0]] * 20, stream=7, device=1)
    trace += thread(2, [FLEX] * 20, stream=9, device=1)
    found = kernels.kernels_by_thread(trace)
    assert {index: kernels.unfused_calls(seen, 20) for index, seen in found.items()} == {0: 0, 1: 20, 2: 0}


@given(st.integers(0, 200), st.integers(0, 200), st.integers(0, 200))
def test_kernels_that_do_not_account_for_the_calls_say_nothing(fused: int, unfused: int, calls: int) -> None:
    said = kernels.unfused_calls({FLEX: fused, SCORES[0]: unfused}, calls)
    if said is None:
        assert abs(fused + unfused - calls) > 0.01 * calls
        assert "do not account" in kernels.described({FLEX: fused, SCORES[0]: unfused}, calls)
    else:
        assert 0 <= said <= calls
        assert abs(said - unfused) <= 0.01 * calls
        assert abs((calls - said) - fused) <= 0.01 * calls


@pytest.mark.parametrize(
    "names",
    [
        {"triton_": 182},  # TORCHINDUCTOR_UNIQUE_KERNEL_NAMES=0
        {"triton_tem__0": 91, "triton_tem__1": 91},  # descriptive_names off
        {FLEX: 182, BACKWARD: 182},  # two threads in one stream: a device has 32 to give
        {FLEX: 70, BACKWARD: 91},  # records lost
        {},
    ],
)
def test_a_trace_that_cannot_be_read_is_no_sign_of_unfused_attention(names: dict[str, int]) -> None:
    assert kernels.unfused_calls(names, 91) is None
    assert all(name in kernels.described(names, 91) for name in names)


def test_a_lost_marker_leaves_both_threads_out() -> None:
    whole = thread(0, [FLEX], 7) + thread(1, [FLEX], 9) + thread(2, [FLEX], 11)
    lost = [event for event in whole if not (event["args"]["stream"] == 11 and event["ts"] == 12)]
    assert sorted(kernels.kernels_by_thread(whole)) == [0, 1, 2]
    assert sorted(kernels.kernels_by_thread(lost)) == [0]


def test_work_done_again_counts_from_its_last_markers() -> None:
    again = [*[FLEX] * 4, *[SPIN] * 2, *[FLEX] * 9]
    found = kernels.kernels_by_thread(thread(0, [FLEX, SPIN, FLEX], 7) + thread(1, again, 9))
    assert {index: kernels.fused_calls(seen) for index, seen in found.items()} == {0: 1, 1: 9}


def test_profiling_that_began_after_the_markers_sees_no_thread() -> None:
    late = [event for event in thread(0, [FLEX] * 9) if event["ts"] >= 100]
    assert kernels.kernels_by_thread(late) == {}


def test_a_thread_without_kernels_after_its_markers_is_seen_but_says_nothing() -> None:
    found = kernels.kernels_by_thread(thread(0, []))
    assert found == {0: {}}
    assert kernels.unfused_calls(found[0], 5) is None
