"""Everything that the trials of a cell show, before a headline is chosen."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf
from statistics import median

from bisect_env.trials.records import Outcome, Side, Signature, TrialRecord
from bisect_env.verdicts.attention import Attention, attention
from bisect_env.verdicts.looks import FAILED, FAILED_OR_HUNG, HUNG, Design, Difference, difference, finished, stopped_at
from bisect_env.verdicts.numbers import wrong_losses, wrong_numbers
from bisect_env.verdicts.records import Ends, Headline, SignatureCount, Throughput, Verdict
from bisect_env.verdicts.samples import Records, Sides, by_side, counted
from bisect_env.verdicts.statistics import clopper_pearson, fisher_greater, upper_bound
from bisect_env.verdicts.throughput import throughput

BAD = (*FAILED_OR_HUNG, Outcome.OOM)
"""A trial that is not clean: it failed, hung, or ran out of memory."""


@dataclass(frozen=True)
class Facts:
    """What the rules read."""

    design: Design
    sides: Sides
    threads: list[TrialRecord]
    serial: list[TrialRecord]
    solo: list[TrialRecord]
    finished: bool
    stopped: int | None
    found: Difference | None
    wrong: dict[str, str]
    """Trial id and what is wrong with its numbers."""
    attention: Attention
    base: Verdict
    """Every figure; the headline is still to come."""

    @property
    def scored(self) -> list[TrialRecord]:
        """The trials that say something of the cell."""
        return self.threads + self.serial + self.solo

    def counting(self, shows: Callable[[TrialRecord], bool]) -> Verdict:
        """The figures with their intervals and p-value over the trials that ``shows`` picks."""
        return _with_intervals(self.base, self.threads, self.serial, self.solo, shows)


def gather(records: Records, design: Design, reference: Records | None, warmed: Records | None) -> Facts:
    """Read a cell's trials; arguments as those of :func:`bisect_env.verdicts.verdict.judge`."""
    sides = by_side(records)
    threads, serial, solo = counted(sides.threads), counted(sides.serial), counted(sides.solo)
    # Keyed by the repeat too: one that was done alone has other losses than the first of all.
    controls = {(r.seed, r.only_repeat): r for r in reversed(serial) if r.outcome is Outcome.CLEAN}
    wrong = {}
    for record in threads + serial + solo:
        why = wrong_numbers(record)
        if not why and record.side is Side.THREADS:
            why = wrong_losses(record, controls.get((record.seed, record.only_repeat)))
        if why or record.outcome is Outcome.WRONG:
            wrong[record.id] = why or record.message or "the reproducer said so"
    path = attention(threads, serial + solo, [sample.record for sample in sides.profile])
    speed = throughput(
        sides,
        by_side(reference) if reference else None,
        by_side(warmed) if warmed else None,
        design.confidence,
    )
    stopped = stopped_at(records, design)
    timed = [sample.record for sample in sides.rounds]
    peaks = [record.peak_bytes for record in threads + timed if record.peak_bytes is not None]
    base = Verdict(
        Headline.FULL,
        signatures=_signatures(threads, serial, solo),
        dense=path.threads,
        dense_controls=path.controls,
        throughput=speed,
        peak_bytes=max(peaks, default=None),
        stopped_early=stopped is not None and len(sides.threads) < design.trials,
        stopped_at=stopped,
        infra=sides.infra,
        marks=(
            *_marks(threads, serial, speed),
            *_marks_of_resets(sides, threads),
            *_marks_of_rounds(timed),
            *_marks_of_company(threads + serial + solo),
        ),
        utilisation=_utilisation(timed),
        ends_threads=_ends(threads),
        ends_serial=_ends(serial),
        ends_solo=_ends(solo),
    )
    base = _with_exposures(base, threads)
    base = _with_intervals(base, threads, serial, solo, lambda record: record.outcome in BAD)
    bad = sum(record.outcome in BAD for record in threads)
    if threads:
        base = replace(base, bound=upper_bound(bad, len(threads), design.confidence))
    found = difference(sides, design)
    done = finished(records, design)
    return Facts(design, sides, threads, serial, solo, done, stopped, found, wrong, path, base)


def _ends(side: Sequence[TrialRecord]) -> Ends:
    return Ends(*(sum(record.outcome in kinds for record in side) for kinds in (FAILED, HUNG)))


def _with_exposures(verdict: Verdict, threads: Sequence[TrialRecord]) -> Verdict:
    counts = [(record.exposures, record.outcome in BAD) for record in threads if record.exposures is not None]
    if not counts:
        return verdict
    total, failed = sum(count for count, _ in counts), sum(bad for _, bad in counts)
    return replace(
        verdict,
        exposures=total,
        exposures_per_trial=total / len(counts),
        exposures_per_failure=total / failed if failed else None,
    )


def _utilisation(timed: Sequence[TrialRecord]) -> tuple[tuple[str, float], ...]:
    shares: defaultdict[str, list[float]] = defaultdict(list)
    for record in timed:
        for item in record.utilisation:
            if all(0 < value < inf for value in (item.operations, item.seconds, item.ceiling)):
                shares[item.what].append(item.share)
    return tuple((what, median(found)) for what, found in sorted(shares.items()))


def _with_intervals(
    verdict: Verdict,
    threads: Sequence[TrialRecord],
    serial: Sequence[TrialRecord],
    solo: Sequence[TrialRecord],
    shows: Callable[[TrialRecord], bool],
) -> Verdict:
    """The verdict with its intervals over the trials that ``shows`` picks, and the p-value that goes with them."""
    k = [sum(map(shows, side)) for side in (threads, serial, solo)]
    n = [len(side) for side in (threads, serial, solo)]
    intervals = [clopper_pearson(some, all_) if all_ else None for some, all_ in zip(k, n, strict=True)]
    p_value = fisher_greater(k[0], n[0], k[1], n[1]) if n[0] and n[1] else None
    return replace(verdict, threads=intervals[0], serial=intervals[1], solo=intervals[2], p_value=p_value)


def _signatures(*sides: Sequence[TrialRecord]) -> tuple[SignatureCount, ...]:
    counts: list[Counter[Signature]] = [
        Counter(signature for record in side for signature in {failure.signature for failure in record.failures})
        for side in sides
    ]
    merged = [SignatureCount(signature, *(count[signature] for count in counts)) for signature in set().union(*counts)]
    return tuple(sorted(merged, key=lambda item: (-item.threads, -item.serial, -item.solo, repr(item.signature))))


def _marks(threads: Sequence[TrialRecord], serial: Sequence[TrialRecord], speed: Throughput | None) -> tuple[str, ...]:
    marks = []
    # A stale cache is one in which trials are expected to miss.
    missed = sum(
        record.condition.cache not in ("cold", "stale") and (record.cache_misses or 0) > 0
        for record in (*threads, *serial)
    )
    if missed:
        marks.append(f"the compile cache was not warm: {missed} of {len(threads) + len(serial)} trials missed in it")
    if speed is not None and speed.warmed and speed.sessions:
        marks.append("tokens/s after a single-threaded warm-up: it failed at its start")
    elif speed is not None and speed.warmed:
        marks.append("tokens/s under the warmed-up condition: every trial of this one failed")
    exposures = [record.exposures for record in threads if record.outcome is Outcome.CLEAN]
    if exposures and all(count == 0 for count in exposures):
        marks.append("no call was made while another thread compiled: clean trials say little of a race")
    if threads and not serial:
        marks.append("no serial control yet: a race cannot be told from a broken environment")
    return tuple(marks)


def _marks_of_rounds(timed: Sequence[TrialRecord]) -> tuple[str, ...]:
    """What timed rounds show beside their throughput: they are never counted, but seen."""
    marks = []
    wrong = [why for record in timed if (why := wrong_numbers(record))]
    if wrong:
        marks.append(f"wrong numbers in the timed rounds, which are not counted: {wrong[0]}")
    failed = [record for record in timed if record.outcome in BAD]
    if failed:
        first = next((f": {record.failures[0].signature}" for record in failed if record.failures), "")
        marks.append(f"{len(failed)} of {len(timed)} processes of timed rounds failed, which are not counted{first}")
    return tuple(marks)


def _marks_of_resets(sides: Sides, threads: Sequence[TrialRecord]) -> tuple[str, ...]:
    """What became of the failures that a reset may have caused."""
    doubted = sum(sample.record.side is Side.THREADS for sample in sides.undecided)
    if not doubted:
        return ()
    again = [record for record in threads if record.only_repeat is not None]
    failed = sum(record.outcome in BAD for record in again)
    return (
        f"{doubted} threaded trial{'s' if doubted > 1 else ''} failed only after a reset, which is not counted; the "
        f"same repeat alone in a fresh process, which counts instead, failed in {failed} of {len(again)}",
    )


def _marks_of_company(scored: Sequence[TrialRecord]) -> tuple[str, ...]:
    most = max((record.at_once for record in scored), default=1)
    return (f"trials ran {most} at a time",) if most > 1 else ()
