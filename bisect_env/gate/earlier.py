"""What earlier gates on this host have measured of the baseline, and which blocks that leaves to be run. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from bisect_env.store.trials import StoredTrial
from bisect_env.trials.records import Side
from bisect_env.verdicts.samples import counts


def countable(samples: Sequence[StoredTrial], runs: Collection[str]) -> list[StoredTrial]:
    """Threaded trials of these runs, one a seed: the same seed once more is the same trial."""
    found: dict[int, StoredTrial] = {}
    for sample in samples:
        if sample.run_id in runs and sample.record.side is Side.THREADS and counts(sample.record):
            found.setdefault(sample.record.seed, sample)
    return list(found.values())


def left_out(earlier: Sequence[StoredTrial], seeds: Sequence[int], first: int) -> frozenset[int]:
    """Blocks in which the baseline needs no trial of its own.

    Those whose seed an earlier gate has run, and of the others the last ones, as many as there are earlier trials of
    other seeds.

    Args:
        earlier: as :func:`countable` gives them.
        seeds: of the baseline's trials, by block.
        first: so many blocks are run in any case: they are what the candidate's controls and times stand beside.
    """
    known = {sample.record.seed for sample in earlier}
    same = [block for block, seed in enumerate(seeds) if block >= first and seed in known]
    others = len(known - set(seeds))
    rest = [block for block, seed in enumerate(seeds) if block >= first and seed not in known]
    return frozenset([*same, *rest[len(rest) - min(others, len(rest)) :]])


def together(earlier: Sequence[StoredTrial], own: Sequence[StoredTrial]) -> list[StoredTrial]:
    """The baseline's threaded trials that count, earlier ones first; of equal seeds the gate's own."""
    seeds = {sample.record.seed for sample in own if sample.record.side is Side.THREADS and counts(sample.record)}
    return [*(sample for sample in earlier if sample.record.seed not in seeds), *own]
