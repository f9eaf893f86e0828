"""Whether attention ran unfused, in which threads, and how sure that is.

Every thread is judged by itself: one dense worker among fused ones is what this is for, and an average would hide it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isfinite, log

from bisect_env.trials.records import TrialRecord
from bisect_env.verdicts.records import PROCESS, DenseShare, percent

DENSE_FROM = 0.01
"""Least share of a thread's calls that makes it dense."""
AGREE_FACTOR, AGREE_POINTS = 2.0, 0.05
"""Two signs agree when they are within this factor or within this difference: the profiled trials are others than the
counted ones, and how often a thread falls back varies from trial to trial."""
MEMORY_FROM = 1 / 3
"""How far, on a log scale from the fused prediction to the dense one, a trial's peak must be to be a sign. Less than
half way, since the fused prediction is an upper bound (all threads at their own peak together) and the dense one takes
all threads to be dense: one dense thread among fused ones stays below it."""
MEMORY_APART = 1.5
"""Least ratio of the two predictions: nearer ones cannot be told apart by a peak."""
KERNELS, MEMORY = "kernels", "memory"


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
    fused_by: tuple[str, ...] = ()
    """Where it is not dense: the signs that every thread had, all of which say so."""
    marks: tuple[str, ...] = ()
    """Where it is not dense: what a reader must know of that, such as that it rests on one sign."""


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
    peaks = {record.id: place >= MEMORY_FROM for record in threads if (place := _memory(record)) is not None}
    high = {name for name, dense in peaks.items() if dense}
    found, sure = [], []
    for name in sorted(scored.keys() | kernels.keys()):
        calls, signs = scored.get(name) or (kernels[name][0], {})
        shown = signs | ({KERNELS: kernels[name][1][KERNELS]} if name in kernels else {})
        own = {sign: share for sign, share in shown.items() if share >= DENSE_FROM}
        # Which thread falls back may differ between the profiled trials and the counted ones.
        if any(sign != KERNELS for sign in own) and anywhere >= DENSE_FROM:
            own[KERNELS] = max(own.get(KERNELS, 0.0), anywhere)
        agreed = [min(a, b) for a, b in combinations(own.values(), 2) if _agree(a, b)]
        share = max(agreed or own.values() or shown.values(), default=0.0)
        if own and high & (_unfused_in(threads, name) or peaks.keys()):
            agreed, shown[MEMORY] = agreed or [share], 1.0
        elif peaks and not high:
            shown[MEMORY] = 0.0
        item = DenseShare(name, share, calls, tuple(sorted(shown.items())))
        found.append(item)
        if agreed:
            sure.append(item)
    if high and all(item.share < DENSE_FROM for item in found):
        # A peak shows that there was an unfused call, not how many: the share is the least that counts as dense.
        calls = sum(item.calls for item in found)
        found.append(DenseShare(PROCESS, DENSE_FROM, calls, ((MEMORY, len(high) / len(peaks)),)))
    in_controls = tuple(
        DenseShare(name, max(signs.values(), default=0.0), calls, tuple(sorted(signs.items())))
        for name, (calls, signs) in sorted(_shares(controls).items())
    )
    dense = [item for item in found if item.share >= DENSE_FROM]
    if dense:
        reason = _reason(sure or dense, in_controls, bool(sure))
        return Attention(tuple(found), in_controls, True, not sure, reason)
    return Attention(tuple(found), in_controls, False, False, "", _common(found), _marks(found))


def _common(threads: Sequence[DenseShare]) -> tuple[str, ...]:
    """The signs that every thread had."""
    sets = [{sign for sign, _ in item.signs} for item in threads]
    return tuple(sorted(set.intersection(*sets))) if sets else ()


def _marks(threads: Sequence[DenseShare]) -> tuple[str, ...]:
    """What to say of threads that are not dense."""
    marks = [
        f"{item.thread} ran {percent(item.share)} of {item.calls} calls after warm-up unfused ({_by_sign(item)}), "
        f"which is below {percent(DENSE_FROM)}"
        for item in threads
        if item.share > 0
    ]
    unseen = [item.thread for item in threads if not item.signs]
    if unseen:
        marks.append(f"how attention ran is not known, there was no sign of it: {', '.join(unseen)}")
    single: dict[str, list[str]] = defaultdict(list)
    for item in threads:
        if len(item.signs) == 1:
            single[item.signs[0][0]].append(item.thread)
    for sign, names in single.items():
        which = "" if len(names) == len(threads) else f", {', '.join(names)}"
        marks.append(f"that attention ran fused rests on one sign only ({sign}){which}")
    return tuple(marks)


def _unfused_in(records: Sequence[TrialRecord], thread: str) -> set[str]:
    """Ids of the trials in which a sign saw an unfused call of that thread."""
    return {
        record.id
        for record in records
        if any(path.thread == thread and any(count > 0 for _, count in path.signs) for path in record.paths)
    }


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


def _memory(record: TrialRecord) -> float | None:
    """Where a trial's peak lies between the fused (0) and the dense prediction (1), on a log scale."""
    predicted = dict(record.predicted_bytes)
    fused, dense, peak = predicted.get("fused", 0), predicted.get("dense", 0), record.peak_bytes or 0
    if not (fused > 0 and peak > 0 and isfinite(dense) and dense >= MEMORY_APART * fused):
        return None
    place = log(peak / fused) / log(dense / fused)
    return place if isfinite(place) else None


def _by_sign(item: DenseShare) -> str:
    memory = {0.0: "not memory"}
    return ", ".join(
        f"{sign} {percent(share)}" if sign != MEMORY else memory.get(share, MEMORY) for sign, share in item.signs
    )


def _reason(dense: Sequence[DenseShare], controls: Sequence[DenseShare], sure: bool) -> str:
    parts = []
    for item in dense:
        if item.thread == PROCESS:
            parts.append(
                f"peak memory is near the dense prediction in {percent(item.signs[0][1])} of the trials: at least one "
                "call in each ran unfused, in which thread and how many cannot be told"
            )
        else:
            share = f"{percent(item.share)} of {item.calls} calls after warm-up"
            parts.append(f"{item.thread} ran {share} unfused ({_by_sign(item)})")
    text = "; ".join(parts) + ("" if sure else "; one sign only")
    worst = max((item.share for item in controls), default=0.0)
    if worst >= DENSE_FROM:
        text += f"; in the controls as well ({percent(worst)})"
    elif controls:
        text += "; not in the controls"
    return text
