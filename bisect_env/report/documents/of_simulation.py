"""The document of simulated searches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bisect_env.report.documents.words import One
from bisect_env.search.simulated_subsets import FactorWorld
from bisect_env.search.simulation import LineWorld, SimulatedReading


@dataclass(frozen=True, kw_only=True)
class Search:
    """How the search was asked."""

    confidence: float
    batch: int | Literal["auto"]
    seed: int


@dataclass(frozen=True, kw_only=True)
class LineOptions(LineWorld, Search):
    """Versions in order, one of them to blame."""

    prior: SimulatedReading | None
    """What is read of them beforehand; null: nothing, all weigh alike."""


@dataclass(frozen=True, kw_only=True)
class FactorOptions(FactorWorld, Search):
    """Things that differ at once, one or two of them to blame."""


@dataclass(frozen=True)
class OneWay:
    """What the runs of one world have in common where batches are asked for in one way; shares are of all runs."""

    runs: int
    mean_trials: float
    p95_trials: float
    mean_environments: float
    mean_seconds: float
    p95_seconds: float
    wrong: float
    wrong_low: float
    """Of the exact 95 % interval of the share that is wrong (Clopper and Pearson 1934)."""
    wrong_high: float
    undecided: float
    stated: float
    """Mean probability that the answers were given; null where there was none."""


@dataclass(frozen=True)
class Parallel:
    """Several batches at a time: what that gains and costs."""

    batches: int
    """At a time. The figures of the document itself are those of rounds of so many, as `bisect --parallel` asks."""
    times_as_fast: float
    """Mean seconds with one batch at a time, over those in rounds."""
    times_as_many_trials: float
    """Mean trials in rounds, over those with one batch at a time."""
    one: OneWay
    """One batch at a time."""
    as_free: OneWay
    """Each slot takes the next batch as soon as it is free, without rounds."""


@dataclass(frozen=True)
class SimulateDocument:
    """`bisect-env simulate --json`: what to expect of a bisection in a world that is known. Shares are of all runs."""

    schema: One
    runs: int
    mean_trials: float
    p95_trials: float
    """95 of 100 bisections take no more."""
    mean_environments: float
    mean_seconds: float
    p95_seconds: float
    wrong: float
    wrong_low: float
    wrong_high: float
    undecided: float
    stated: float
    """Mean probability that the answers were given."""
    parallel: Parallel | None
    """null: one batch at a time."""
    world: LineOptions | FactorOptions
