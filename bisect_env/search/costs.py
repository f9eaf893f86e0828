"""What a build costs in trials: measured, and rounded until the noise of the clock is gone."""

from __future__ import annotations

from collections.abc import Mapping
from math import log
from typing import Any

from bisect_env.search.records import Costs

STEP = 4.0
"""What a build costs in trials is known up to a factor of this, either way."""


class Measured:
    """What builds and trials were expected to cost, until it has been measured to be something else.

    What is asked next depends on one figure: what a build costs in trials. No clock says the same twice, so if that
    figure were the very seconds, a search that is resumed after a kill, or done again with the same seed and the same
    outcomes, would ask something else and end with another probability. Therefore the figure stays as it is as long as
    what is measured is within a factor of 4 of it; beyond that it becomes the nearest power of 4. A search that is off
    by a factor of 2 takes about a tenth longer at most, by 4 about a fifth (simulated, 16 candidates, builds of 2 to 32
    trials). Only where the true figure is at the very edge of the band can the clock still decide.

    Several searches may share one: what one has measured then holds for the next.
    """

    def __init__(self, expected: Costs[Any] | None = None) -> None:
        self._expected: Costs[Any] = expected or Costs()
        self._build_seconds, self._builds = 0.0, 0
        self._trial_seconds, self._trials = 0.0, 0
        self._ratio: float | None = None
        """Measured, in trials; None as long as nothing speaks against what was expected."""

    def tell(self, build_seconds: float | None, trial_seconds: float | None, trials: int) -> None:
        """What a batch has cost.

        Args:
            build_seconds: of its environment; None where none was built, or it is not known.
            trial_seconds: of one of its trials, on average; None where it is not known.
            trials: that ended.
        """
        if build_seconds is not None:
            self._build_seconds += build_seconds
            self._builds += 1
        if trial_seconds is not None:
            self._trial_seconds += trial_seconds * trials
            self._trials += trials
        if self._builds and self._trial_seconds:
            measured = self._build_seconds / self._builds / (self._trial_seconds / self._trials)
            if not self._holds(measured):
                self._ratio = STEP ** round(log(measured, STEP)) if measured else 0.0

    @property
    def trial(self) -> float:
        """Of one trial. Only the ratio to a build means anything."""
        return self._expected.trial

    def build(self, point: Any) -> float:
        """Of a point that has no environment yet, in the same unit."""
        if self._ratio is None or isinstance(self._expected.build, Mapping):
            return self._expected.of_build(point)
        return self._ratio * self._expected.trial

    def _holds(self, measured: float) -> bool:
        """Whether what is taken for the ratio may be the true one, or each point has a cost of its own."""
        if isinstance(self._expected.build, Mapping):
            return True
        ratio = self._expected.build / self._expected.trial if self._ratio is None else self._ratio
        return ratio / STEP <= measured <= ratio * STEP
