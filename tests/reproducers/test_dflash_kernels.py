"""What a profiled trace says of each thread's attention."""

from __future__ import annotations

from typing import Any

import dflash_kernels as kernels
from hypothesis import given
from hypothesis import strategies as st

FLEX = "triton_tem_fused_flex_attention_0"
BACKWARD = "triton_tem_fused_flex_attention_backward_zeros_1"
HELPER = "triton_poi_fused_flex_attention_mul_2"
SPIN = "at::cuda::(anonymous namespace)::spin_kernel(long)"
SOFTMAX = "void at::native::(anonymous namespace)::softmax_warp_forward<float, float, float, 11, false, false>"
LOGITS = "void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, float, LogSoftMaxForwardEpilogue>"


def kernel(name: str, ts: float, stream: int = 13, device: int = 0) -> dict[str, Any]:
    return {"ph": "X", "cat": "kernel", "name": name, "ts": ts, "dur": 1, "args": {"device": device, "stream": stream}}


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
    assert kernels.fused_calls({FLEX: 4, BACKWARD: 4, HELPER: 8, SOFTMAX: 1}) == 4


def test_without_templates_any_flex_kernel_counts() -> None:
    assert kernels.fused_calls({HELPER: 2, BACKWARD: 2}) == 2


def test_the_losses_log_softmax_is_not_attention() -> None:
    assert kernels.softmax_calls({SOFTMAX: 3, LOGITS: 5, FLEX: 1}) == 3
