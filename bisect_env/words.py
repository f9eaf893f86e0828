"""Numbers and times as people say them."""

from __future__ import annotations


def counted(number: int, one: str, many: str | None = None) -> str:
    """``1 trial``, ``2 trials``, ``3 batches``."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def lasting(seconds: float) -> str:
    """How long something took, or is expected to: ``40 s``, ``12 min``, ``3 h 5 min``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
