"""Whether attention ran unfused, in which threads, and how sure that is.

Every thread is judged by itself: one dense worker among fused ones is what this is for, and an average would hide it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isfinite, log
from statistics import median

from bisect_env.trials.records import TrialRecord
from bisect_env.verdicts.records import DenseShare, percent

DENSE_FROM = 0.01
"""Least share of a thread's calls that makes it dense."""
AGREE_FACTOR, AGREE_POINTS = 2.0, 0.05
"""Two signs agree when they are within this factor or within this difference: the profiled trials are others than the
counted ones, and how often a thread falls back varies from trial to trial."""
MEMORY_NEARER = 2 / 3
"""How far, on a log scale from the fused prediction to the dense one, the peak must be to be a sign."""
MEMORY_APART = 1.5
"""Least ratio of the two predictions: nearer ones cannot be told apart by a peak."""
KERNELS, MEMORY = "kernels", "memory"
PROCESS = "process"
"""Stands for the thread where only the process's memory speaks."""


@dataclass(frozen=True)
class Attention:
    """How a cell's attention ran."""

    threads: tuple[DenseShare, ...]
    """Every thread of the threaded trials, dense or not."""
    controls: tuple[DenseShare, ...]
    dense: bool
    doubtful: bool
    """Dense, but by one sign only in every dense thread."""
    reason: str
    """Which threads, how much of how many calls, by which signs; empty when it is not dense."""


def attention(
    threads: Sequence[TrialRecord], controls: Sequence[TrialRecord], profiled: Sequence[TrialRecord]
) -> Attention:
    """Judge the attention path.

    Args:
        threads: threaded trials, whatever became of them.
        controls: serial and solo trials.
        profiled: PROFILE-side trials; only their ``kernels`` sign is read, since the profiler slows the rest down.
    """
    scored, kernels = _shares(threads), _shares(profiled, only=KERNELS)
    anywhere = max((signs[KERNELS] for _, signs in kernels.values()), default=0.0)
    memory = _memory(threads)
    dense_memory = memory is not None and memory >= MEMORY_NEARER
    found, sure = [], []
    for name in sorted(scored.keys() | kernels.keys()):
        calls, signs = scored.get(name) or (kernels[name][0], {})
        shown = signs | ({KERNELS: kernels[name][1][KERNELS]} if name in kernels else {})
        own = {sign: share for sign, share in shown.items() if share >= DENSE_FROM}
        # Which thread falls back may differ between the profiled trials and the counted ones.
        if any(sign != KERNELS for sign in own) and anywhere >= DENSE_FROM:
            own[KERNELS] = max(own.get(KERNELS, 0.0), anywhere)
        agreed = [min(a, b) for a, b in combinations(own.values(), 2) if _agree(a, b)]
        if own and dense_memory:
            agreed.append(max(own.values()))
            shown[MEMORY] = 1.0
        share = max(agreed or own.values() or shown.values(), default=0.0)
        item = DenseShare(name, share, calls, tuple(sorted(shown.items())))
        found.append(item)
        if agreed:
            sure.append(item)
    if dense_memory and all(item.share < DENSE_FROM for item in found):
        found.append(DenseShare(PROCESS, 1.0, 0, ((MEMORY, 1.0),)))
    in_controls = tuple(
        DenseShare(name, max(signs.values(), default=0.0), calls, tuple(sorted(signs.items())))
        for name, (calls, signs) in sorted(_shares(controls).items())
    )
    dense = [item for item in found if item.share >= DENSE_FROM]
    reason = _reason(sure or dense, in_controls, bool(sure)) if dense else ""
    return Attention(tuple(found), in_controls, bool(dense), bool(dense) and not sure, reason)


def _shares(records: Sequence[TrialRecord], only: str | None = None) -> Mapping[str, tuple[int, dict[str, float]]]:
    """Calls of each thread over all trials, and the share by each sign of the calls that this sign could see."""
    calls: defaultdict[str, int] = defaultdict(int)
    seen: defaultdict[str, defaultdict[str, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0, 0]))
    for record in records:
        for path in record.paths:
            if path.calls <= 0:
                continue
            signs = [(sign, count) for sign, count in path.signs if only in (None, sign)]
            if only is not None and not signs:
                continue
            calls[path.thread] += path.calls
            for sign, count in signs:
                pair = seen[path.thread][sign]
                pair[0] += min(max(count, 0), path.calls)
                pair[1] += path.calls
    return {name: (total, {sign: k / n for sign, (k, n) in seen[name].items()}) for name, total in calls.items()}


def _agree(a: float, b: float) -> bool:
    return max(a, b) <= AGREE_FACTOR * min(a, b) or abs(a - b) <= AGREE_POINTS


def _memory(records: Sequence[TrialRecord]) -> float | None:
    """Where the median peak lies between the fused (0) and the dense prediction (1), on a log scale."""
    places = []
    for record in records:
        predicted = dict(record.predicted_bytes)
        fused, dense, peak = predicted.get("fused", 0), predicted.get("dense", 0), record.peak_bytes or 0
        if fused > 0 and peak > 0 and dense >= MEMORY_APART * fused:
            places.append(log(peak / fused) / log(dense / fused))
    finite = [place for place in places if isfinite(place)]
    return median(finite) if finite else None


def _reason(dense: Sequence[DenseShare], controls: Sequence[DenseShare], sure: bool) -> str:
    parts = []
    for item in dense:
        signs = ", ".join(f"{sign} {percent(share)}" if sign != MEMORY else MEMORY for sign, share in item.signs)
        if item.thread == PROCESS:
            parts.append("peak memory is near the dense prediction (which share of the calls it was cannot be told)")
        else:
            parts.append(f"{item.thread} ran {percent(item.share)} of {item.calls} calls unfused ({signs})")
    text = "; ".join(parts) + ("" if sure else "; one sign only")
    worst = max((item.share for item in controls), default=0.0)
    if worst >= DENSE_FROM:
        text += f"; in the controls as well ({percent(worst)})"
    elif controls:
        text += "; not in the controls"
    return text
