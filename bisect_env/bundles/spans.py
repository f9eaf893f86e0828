"""Which bytes of a file are there: sorted, disjoint, half-open spans, and the gaps between them."""

from __future__ import annotations

Spans = tuple[tuple[int, int], ...]
"""Each ``[start, end)`` with ``start < end``; sorted, and no two touch."""


def add(spans: Spans, start: int, end: int) -> Spans:
    """``spans`` and ``[start, end)`` together."""
    if start >= end:
        return spans
    before = tuple(span for span in spans if span[1] < start)
    after = tuple(span for span in spans if span[0] > end)
    touching = [span for span in spans if span[1] >= start and span[0] <= end]
    low = min([start, *(span[0] for span in touching)])
    high = max([end, *(span[1] for span in touching)])
    return (*before, (low, high), *after)


def gaps(spans: Spans, start: int, end: int) -> Spans:
    """What of ``[start, end)`` is not in ``spans``."""
    found = []
    for low, high in spans:
        if high <= start or low >= end:
            continue
        if low > start:
            found.append((start, low))
        start = high
    if start < end:
        found.append((start, end))
    return tuple(found)
