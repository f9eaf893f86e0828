"""How long a stage still takes: what is left to be learnt, at the speed at which it was learnt so far. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import log2

from bisect_env.bisection.records import Stage

LEAST = 0.1
"""Bits that must have been learnt before anything is said: less may be luck."""


@dataclass(frozen=True)
class Seen:
    """A moment of a stage."""

    stage: Stage
    bits: float
    """Uncertainty then."""
    seconds: float


class Forecast:
    """Remembers where the present stage began."""

    def __init__(self) -> None:
        self._began: Seen | None = None

    def remaining(
        self, stage: Stage, suspects: Iterable[tuple[str, float]], confidence: float, seconds: float
    ) -> float | None:
        """Seconds until the stage is as certain as asked for; None while too little was learnt to tell.

        Each trial tells about as much as the last one did, so that the uncertainty (Shannon's entropy of the posterior)
        goes down in a straight line, up to chance.

        Args:
            stage: the present one.
            suspects: each with its probability.
            confidence: at which it ends.
            seconds: spent so far, on the same clock every time.
        """
        now = Seen(stage, entropy([chance for _, chance in suspects]), seconds)
        if self._began is None or self._began.stage is not stage:
            self._began = now
        learnt = self._began.bits - now.bits
        if learnt < LEAST:
            return None
        left = max(0.0, now.bits - entropy([confidence, 1 - confidence]))
        return left / learnt * (now.seconds - self._began.seconds)


def entropy(chances: Iterable[float]) -> float:
    """Bits, of probabilities that sum to 1."""
    return -sum(chance * log2(chance) for chance in chances if chance > 0)
