"""What a bisection tells whoever is watching: empty hooks again, and the engine's events passed on to them."""

from __future__ import annotations

from collections.abc import Mapping

from bisect_env.bisection.records import Levels, Observation, Stage
from bisect_env.engine import progress
from bisect_env.engine.progress import Reporter as EngineReporter
from bisect_env.matrix.cells import Cell
from bisect_env.trials.records import Side


class Reporter(EngineReporter):
    """Silent; subclasses override what they show. Except for builds, all hooks are called from one thread.

    Of the engine's hooks ``resolving``, ``resolved``, ``building``, ``built``, ``trial_started`` (``number`` within its
    batch), ``trial_ended`` and ``note`` are called too.
    """

    def stage(self, stage: Stage, suspects: tuple[str, ...]) -> None:
        """A stage begins: names of the factors, the versions or the commits that it searches."""

    def batch_started(self, stage: Stage, point: Levels, size: int) -> None:
        """So many trials are about to run in this mixed environment."""

    def batch_ended(self, observation: Observation) -> None:
        """They have ended, or the point cannot be tested."""

    def posterior(self, stage: Stage, suspects: tuple[tuple[str, float], ...], confidence: float) -> None:
        """Probability of each suspect, the likeliest first, ``none of these`` among them; of ``confidence`` it stops.

        After every batch, and when a stage begins.
        """

    def spent(self, trials: int, builds: int, seconds: float) -> None:
        """Of the whole bisection so far, an interrupted one's earlier parts included."""

    def remaining(self, seconds: float | None) -> None:
        """About how long the present stage still takes, by the trials and builds so far; None: not known yet."""


class Forward(progress.Forward):
    """The engine's events with the numbers of the batch, and without what a bisection has no use for."""

    def __init__(self, reporter: Reporter, start: int, sizes: Mapping[str, int]) -> None:
        """``sizes`` are of the batches, by the keys of their cells; ``start`` is their first block."""
        super().__init__(reporter)
        self._start, self._sizes = start, sizes
        self.trial_started = self._within_batch  # type: ignore[method-assign]

    def _within_batch(self, cell: Cell, side: Side, number: int, of: int) -> None:
        self._reporter.trial_started(cell, side, number - self._start, self._sizes[cell.key])
