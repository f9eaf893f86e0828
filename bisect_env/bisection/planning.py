"""What a bisection would do: mixes that are known beforehand resolved, trials simulated, nothing built or run."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from statistics import fmean, median

from bisect_env.bisection.batches import Batches, Place
from bisect_env.bisection.confirming import looks
from bisect_env.bisection.driver import suspects
from bisect_env.bisection.ends import FIRST
from bisect_env.bisection.lookups import released
from bisect_env.bisection.mixes import Mixes, levels
from bisect_env.bisection.records import BAD, GOOD, Levels, Plan, Specification, Unresolvable
from bisect_env.engine.disk import download_bytes
from bisect_env.environments.records import Lock
from bisect_env.errors import InfrastructureError
from bisect_env.search.simulated_parallel import simulate_parallel
from bisect_env.search.simulated_subsets import FactorRun, FactorWorld, simulate_factors
from bisect_env.snapshots.factors import Factor, Kind
from bisect_env.store.database import Store
from bisect_env.trials import reproducers
from bisect_env.trials.records import Side
from bisect_env.verdicts.samples import counts

RATE, FALSE_RATE = 0.3, 0.0
"""Of failures, assumed: nothing is known of them before the first trial."""
MOST_RUNS, LEAST_RUNS = 40, 8
"""Simulated: a mean within a tenth or so for few factors. With many a run takes a second or two."""
BUILD_IN_TRIALS = 2.0
LATEST = 50
"""Trials and builds by which the time is expected."""


@dataclass(frozen=True)
class _Expected:
    trials: float
    trials_95: float
    environments: float
    beside: float = 1.0
    """Trials and builds that run side by side, on average over the search, with so many batches at a time."""


def plan(specification: Specification, place: Place) -> Plan:
    """The suspects, the mixes that do not resolve, and what it may cost.

    Raises:
        BadInput: the reproducer cannot be used.
        InfrastructureError: an index does not answer.
    """
    factors = suspects(specification)
    mixes = Mixes(specification, factors)
    reproducer = reproducers.prepare(specification.reproducer)
    batches = Batches("plan", mixes, reproducer, place)
    points = _points(factors)
    # Both ends come first: they are what they are, even where no resolver would make them.
    resolved = batches.resolve(points[:2], either_way=True) | batches.resolve(points[2:])
    unresolvable = tuple(
        Unresolvable(point, lock.message.splitlines()[0] if lock.message else lock.reason.value)
        for point, (_, lock) in resolved.items()
        if not isinstance(lock, Lock)
    )
    locks = {lock.address: lock for _, lock in resolved.values() if isinstance(lock, Lock)}
    executor = place.settings.executor
    missing = [lock for lock in locks.values() if executor.find(lock, place.settings) is None]
    parallel = specification.parallel or executor.batches
    expected = _expected(len(factors), specification.confidence, parallel)
    builds = expected.environments * (len(missing) / len(locks) if locks else 1.0)
    versions, notes = _versions(factors, specification, place)
    beside: float = executor.running(specification.at_once)
    if parallel > 1:
        beside = min(beside, expected.beside)
        what = "sooner an answer, for more trials, than with --parallel 1"
        notes = (*notes, f"trials and time are those of {parallel} batches at a time: {what}")
    return Plan(
        factors=factors,
        held=specification.difference.held,
        mixes=len(points),
        unresolvable=unresolvable,
        trials=expected.trials,
        trials_95=expected.trials_95,
        environments=expected.environments,
        seconds=_seconds(
            expected.trials / beside, builds / (beside if parallel > 1 else 1.0), reproducer.content_hash, place.store
        ),
        download_bytes=download_bytes(missing),
        versions=versions,
        notes=(*specification.difference.notes, *notes, *_forced(factors, {each.point for each in unresolvable})),
    )


def _seconds(trials: float, builds: float, reproducer: str, store: Store) -> float | None:
    """By the medians of what trials of this reproducer, and builds, took here last; None where the store has none."""
    latest = [sample.record for sample in store.latest(reproducer, Side.THREADS, LATEST)]
    measured = [record.seconds for record in latest if counts(record)]
    built = store.build_seconds(LATEST)
    if not measured or (builds and not built):
        return None
    return trials * median(measured) + (builds * median(built) if builds else 0.0)


def _points(factors: tuple[Factor, ...]) -> tuple[Levels, ...]:
    """Both ends, and every factor flipped alone from either."""
    names = [factor.name for factor in factors]
    every = dict.fromkeys(names, BAD)
    flips = [{name: BAD} for name in names]
    flips += [{other: BAD for other in names if other != name} for name in names]
    return tuple(dict.fromkeys(levels(point) for point in [{}, every, *flips]))


def _forced(factors: tuple[Factor, ...], unresolvable: Collection[Levels]) -> Iterator[str]:
    """What is done about each difference that another one forces along, a sentence each."""
    names = [factor.name for factor in factors if factor.kind is Kind.DISTRIBUTION]
    everything = {factor.name: BAD for factor in factors}
    for name in names:
        if levels({name: BAD}) not in unresolvable:
            continue
        # At bad it excludes something that is at good: what cannot be at good beside the rest at bad, either.
        others = [each for each in names if each != name and levels({**everything, each: GOOD}) in unresolvable]
        beside = others[0] if len(others) == 1 else "the rest"
        yield (
            f"{name} at bad does not resolve with {beside} at good; should they be all that is left, that mix is tried "
            "with their pins overridden, and marked off-pin"
        )


def _expected(factors: int, confidence: float, parallel: int) -> _Expected:
    """Of the whole bisection without the walk along versions, whose length only its trials tell."""
    directions = min(2, max(1, factors))
    arms = 2 * directions
    fixed = 2 * FIRST / RATE + arms * looks(RATE, arms, directions, None)[0]
    if factors < 2:
        return _Expected(fixed, fixed, min(2, 2 * factors))
    world = FactorWorld(factors, 1, RATE, FALSE_RATE, BUILD_IN_TRIALS, 1.0)
    count = max(LEAST_RUNS, min(MOST_RUNS, 10 * LEAST_RUNS // factors))
    if parallel == 1:
        runs, beside = list(simulate_factors(world, confidence=confidence, batch="auto", runs=count, seed=0)), 1.0
    else:
        timed = list(
            simulate_parallel(
                world, slots=parallel, rounds=True, confidence=confidence, batch="auto", runs=count, seed=0
            )
        )
        runs = [each.run for each in timed if isinstance(each.run, FactorRun)]
        work = sum(run.trials + BUILD_IN_TRIALS * run.environments for run in runs)
        beside = work / sum(each.seconds for each in timed)
    trials = sorted(each.trials for each in runs)
    return _Expected(
        fixed + fmean(trials),
        fixed + trials[int(0.95 * (count - 1))],
        2 + fmean(each.environments for each in runs),
        beside,
    )


def _versions(
    factors: tuple[Factor, ...], specification: Specification, place: Place
) -> tuple[tuple[tuple[str, int], ...], tuple[str, ...]]:
    """How many released versions lie between the two sides of each distribution."""
    found, notes = [], []
    for factor in factors:
        change = next(iter(factor.members), None)
        if factor.kind is not Kind.DISTRIBUTION or change is None or change.good is None or change.bad is None:
            continue
        try:
            between = released(change.name, change.good, change.bad, specification, place.uv.simple)
        except (ValueError, InfrastructureError) as error:
            notes.append(f"{change.name}: {error}")
            continue
        found.append((change.name, max(0, len(between.steps) - 2)))
    return tuple(found), tuple(notes)
