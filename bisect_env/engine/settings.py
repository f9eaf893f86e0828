"""How a run is to be done, as the command line says it; nothing here changes what a cell means."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from bisect_env.bundles.offline import Offline
from bisect_env.engine.executor import Executor
from bisect_env.engine.local import Local


@dataclass(frozen=True)
class Settings:
    """Options of a run."""

    root: Path
    """The project's ``.bisect-env`` folder."""
    seed: int = 0
    """Seed of the order of trials and of the trials themselves."""
    fresh: bool = False
    """Resolve anew and count no earlier trial."""
    allow_busy: bool = False
    """Take a GPU although somebody else computes on it."""
    gpus: str | None = None
    """Selection as in ``CUDA_VISIBLE_DEVICES``; None: all that this process may see."""
    max_race_rate: float = 0.05
    """A cell is recommended only when its race rate is shown to be below this."""
    bundle: Offline | None = None
    """What was unbundled here, as the only source of locks and packages. None: the indexes."""
    executor: Executor = field(default_factory=Local)
    """Where environments are built and trials run."""
