"""The kernels of a profiled trial: which of a thread's attention calls ran as a fused kernel.

CUPTI sees every kernel of the process with its stream. A thread tells which stream is its own by launching a number of
spin kernels there, one more than its index, at the moment from which its calls count. Backward kernels are launched
by autograd's thread, but into the stream of their forward.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

MARKER = "spin_kernel"


def kernels_by_thread(trace: Sequence[Mapping[str, Any]]) -> dict[int, Counter[str]]:
    """Names and counts of the kernels that each thread's stream ran after its markers, by the thread's index.

    ``trace`` is the ``traceEvents`` list of a Chrome trace as torch.profiler exports it (times in microseconds).
    """
    streams: dict[tuple[int, int], list[Mapping[str, Any]]] = defaultdict(list)
    for event in trace:
        if event.get("cat") == "kernel":
            streams[event["args"]["device"], event["args"]["stream"]].append(event)
    threads = {}
    for kernels in streams.values():
        markers = [kernel["ts"] for kernel in kernels if MARKER in kernel["name"]]
        if markers:
            after = (kernel["name"] for kernel in kernels if kernel["ts"] > max(markers))
            threads[len(markers) - 1] = Counter(after)
    return threads


def fused_calls(kernels: Mapping[str, int]) -> int:
    """Forward calls that ran as inductor's flex kernel: one template kernel each, named after the operator.

    Helper kernels round it may carry the operator's name too, so only templates count where there are any.
    """
    flex = {
        name: count
        for name, count in kernels.items()
        if "triton" in name and "flex_attention" in name and "backward" not in name
    }
    templates = {name: count for name, count in flex.items() if "triton_tem" in name}
    return sum((templates or flex).values())


def softmax_calls(kernels: Mapping[str, int]) -> int:
    """Softmax kernels over whole score matrices: only unfused attention launches them.

    The loss takes a log-softmax, which is another kernel.
    """
    return sum(count for name, count in kernels.items() if "softmax" in name.lower() and "log" not in name.lower())
