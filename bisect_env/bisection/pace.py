"""About how long a search still takes, by how fast its suspects have cleared up so far."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2

from bisect_env.bisection.records import Stage


def uncertainty(suspects: Sequence[tuple[str, float]]) -> float:
    """Shannon entropy of the probabilities, in bits."""
    return -sum(chance * log2(chance) for _, chance in suspects if chance > 0)


class Pace:
    """Bits that a stage has gained in its seconds, continued.

    Args:
        confidence: at which a search stops: what is left open then is its aim.
    """

    def __init__(self, confidence: float) -> None:
        self._aim = uncertainty([("", confidence), ("", 1 - confidence)])
        self._stage: Stage | None = None
        self._began, self._first = 0.0, 0.0

    def left(self, stage: Stage, suspects: Sequence[tuple[str, float]], seconds: float) -> float | None:
        """Seconds until the stage is sure, if it goes on as it has gone; None while nothing has been gained.

        Args:
            stage: of the search; another one begins anew.
            suspects: with their probabilities.
            seconds: of the whole bisection so far.
        """
        now = uncertainty(suspects)
        if stage is not self._stage:
            self._stage, self._began, self._first = stage, seconds, now
        gained, elapsed = self._first - now, seconds - self._began
        if gained <= 0 or elapsed <= 0:
            return None
        return max(0.0, now - self._aim) * elapsed / gained
