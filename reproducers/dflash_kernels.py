"""The kernels of a profiled trial: which of a thread's attention calls ran fused, and which unfused.

CUPTI sees every kernel of the process with its device and stream. A thread tells which stream is its own by launching a
number of spin kernels there, one more than its index, at the moment from which its calls count. Backward kernels, and
the forward that a checkpoint recomputes, are launched by autograd's thread, but into the stream of their forward.

Names are inductor's and ATen's, the same in torch 2.11 and 2.14 up to the arguments of templates (read in inductor's
sources and in the CUDA libraries' symbol tables). Should another version name its kernels otherwise, then they do not
account for the calls, and nothing is concluded from them.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

MARKER = "spin_kernel"
MISSING = 0.01
"""Share of the calls that the kernels may leave unaccounted for: the share from which a thread counts as dense."""
_WARP_SOFTMAX = re.compile(r"softmax_warp_forward<(?P<input>[^,]+), [^,]+, [^,]+, \d+, (?P<log>true|false)")
"""ATen's for rows of up to 2048: input, output and sums' types, log2 of the row, whether it is a log-softmax."""
_BLOCK_SOFTMAX = re.compile(r"cunn_\w*SoftMaxForward\w*<.*(?<!Log)SoftMaxForwardEpilogue")
"""ATen's for longer rows."""


def kernels_by_thread(trace: Sequence[Mapping[str, Any]]) -> dict[int, Counter[str]]:
    """Names and counts of the kernels that each thread's stream ran after its last markers, by the thread's index.

    ``trace`` is the ``traceEvents`` list of a Chrome trace as torch.profiler exports it (times in microseconds). A
    thread is absent when its markers are (profiling began later), or when two streams claim its index: a lost marker
    makes a thread look like the one before it.
    """
    streams: dict[tuple[int, int], list[Mapping[str, Any]]] = defaultdict(list)
    for event in trace:
        if event.get("cat") == "kernel" and {"device", "stream"} <= event.get("args", {}).keys():
            streams[event["args"]["device"], event["args"]["stream"]].append(event)
    claims: dict[int, list[Counter[str]]] = defaultdict(list)
    for kernels in streams.values():
        names = [kernel["name"] for kernel in sorted(kernels, key=lambda kernel: kernel["ts"])]
        last = max((place for place, name in enumerate(names) if MARKER in name), default=-1)
        # Only the last run of them: a thread that does its work again marks each time from when its calls count.
        markers = sum(1 for _ in takewhile(lambda name: MARKER in name, reversed(names[: last + 1])))
        if markers:
            claims[markers - 1].append(Counter(names[last + 1 :]))
    return {thread: claim[0] for thread, claim in claims.items() if len(claim) == 1}


def fused_calls(kernels: Mapping[str, int]) -> int:
    """Forward calls that ran as inductor's flex kernel: one template kernel each, named after the operator.

    ``triton_tem_fused_flex_attention_0``, with the names of operators fused into it before or after the operator's.
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
    """Forward calls that ran unfused: each takes one softmax over its whole score matrix, and nothing else does.

    Not counted: the loss's log-softmax, and softmax in float64, which is the reference's of the numbers check (unfused
    attention computes in float32 unless its inputs are float64). Its backward has no softmax kernel.
    """
    return sum(count for name, count in kernels.items() if _is_softmax(name))


def unfused_calls(kernels: Mapping[str, int], calls: int) -> int | None:
    """Calls of a thread that ran unfused, of ``calls`` that it made; None where the kernels do not account for them.

    Fused and unfused calls are each counted by a kernel of their own and must add up: a trace that lost kernels, two
    threads in one stream, or names not known here would otherwise pass for unfused attention, or for none.
    """
    fused, unfused = fused_calls(kernels), softmax_calls(kernels)
    return min(unfused, calls) if abs(fused + unfused - calls) <= MISSING * calls else None


def described(kernels: Mapping[str, int], calls: int) -> str:
    """What a thread's kernels say, for a note."""
    fused, unfused = fused_calls(kernels), softmax_calls(kernels)
    text = f"{fused} fused attention and {unfused} softmax kernels in {calls} calls"
    if unfused_calls(kernels, calls) is not None:
        return text
    names = ", ".join(name for name, _ in Counter(kernels).most_common(5)) or "none"
    return f"{text}: they do not account for the calls, so this sign is left out; most frequent: {names}"


def _is_softmax(name: str) -> bool:
    if "triton" in name:
        return "softmax" in name and "log_softmax" not in name and "backward" not in name
    warp = _WARP_SOFTMAX.search(name)
    if warp:
        return warp["log"] == "false" and warp["input"] != "double"
    return bool(_BLOCK_SOFTMAX.search(name)) and "double" not in name
