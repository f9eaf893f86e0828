"""When a cell may be judged: looks fixed beforehand, and what must be certain at one of them to stop.

A *block* is one threaded trial, one serial and one solo control. A look is a number of complete blocks, known from the
design alone. Threads are compared with the serial control at the looks only, by how many trials failed or hung, and
each look may spend its own part of ``1 - confidence`` (Bonferroni). Fisher's p-value is at most ``a`` with probability
at most ``a`` under any common rate, so a cell whose threads go wrong no more often than its control is called RACE or
HANG with a probability of at most the sum of the parts: 5 % at a confidence of 95 %. See docs/verdicts.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from bisect_env.trials.records import Outcome, Side, Signature, TrialRecord
from bisect_env.verdicts.records import Headline
from bisect_env.verdicts.samples import Records, Sample, Sides, by_side, counted
from bisect_env.verdicts.statistics import fisher_greater

FIRST_BLOCKS = 4
"""The first look: with fewer than 4 against 4 no split of failures is rare enough to stop on."""
FIRST_PART, MIDDLE_PART, FURTHER_PART = 0.30, 0.20, 0.09
"""Parts of ``1 - confidence`` for the first look, the middle one, and the further tests of the last look. The last
look's own test has the rest. At 95 %: 4/4 against 0/4 (p = 0.0143) stops at the first look, and 4/6 against 0/6
(p = 0.0303) is still a race at the last of two."""
MOST_FURTHER = 1000
"""A forecast of further trials goes no further."""
IMPORTS_ALIKE = 2
"""So many import failures (or skips), and nothing else, end a cell."""

FAILED = (Outcome.FAILED, Outcome.IMPORT_FAILED)
"""Outcomes that count as failed. A failed import is one of them only where other trials of the cell did import."""

HUNG = (Outcome.HANG,)
FAILED_OR_HUNG = (*FAILED, *HUNG)
"""What threads are compared by. Which of the two a race ends in is its own chance: one test for both, so that a cell
that raises in half of its trials and hangs in the others is not half as sure."""

_SCORED = (Side.THREADS, Side.SERIAL, Side.SOLO)


@dataclass(frozen=True)
class Design:
    """What was fixed before the first trial."""

    trials: int
    """Threaded trials."""
    controls: int
    """Trials of each control."""
    slow_below: float = 0.95
    max_race_rate: float = 0.05
    """A cell is recommended once its race rate is shown to be below this."""
    confidence: float = 0.95
    solo: int | None = None
    """Trials of the solo control; None: as ``controls``; 0: none is planned or waited for."""
    stop_early: bool = True
    """False: the last look is the only one."""

    def __post_init__(self) -> None:
        if self.trials < 1 or self.controls < 0 or (self.solo or 0) < 0:
            raise ValueError(f"a design of {self.trials} trials and {self.controls} controls measures nothing")
        if not (0 < self.max_race_rate <= 1 and 0 < self.confidence < 1):
            raise ValueError(f"not a rate within 0 to 1: {self.max_race_rate}, {self.confidence}")

    def planned(self, side: Side, blocks: int | None = None) -> int:
        """Trials of a counted side in the first ``blocks`` blocks, or in all: the sides may differ in length."""
        solo = self.controls if self.solo is None else self.solo
        whole = {Side.THREADS: self.trials, Side.SOLO: solo}.get(side, self.controls)
        return whole if blocks is None else min(blocks, whole)


@dataclass(frozen=True)
class Look:
    """``blocks`` complete blocks, at which a p-value of at most ``limit`` establishes a difference."""

    blocks: int
    limit: float
    last: bool


def looks(design: Design) -> tuple[Look, ...]:
    """The looks of a design: after 4 blocks, about half-way (from 8 blocks), and at the end.

    A design that does not stop early has the last one only, which then may spend what the others would have.
    """
    blocks, alpha = max(map(design.planned, _SCORED)), 1 - design.confidence
    early: list[tuple[int, float]] = []
    if design.stop_early and blocks > FIRST_BLOCKS:
        early.append((FIRST_BLOCKS, FIRST_PART))
    if design.stop_early and blocks >= 2 * FIRST_BLOCKS:
        early.append(((FIRST_BLOCKS + blocks + 1) // 2, MIDDLE_PART))
    rest = 1 - FURTHER_PART - sum(part for _, part in early)
    return (*(Look(at, part * alpha, False) for at, part in early), Look(blocks, rest * alpha, True))


@dataclass(frozen=True)
class Difference:
    """Threads were established to do worse than the serial control."""

    headline: Headline
    """RACE or HANG: the more frequent of the two in threaded trials, or what a further test says."""
    look: Look
    p_value: float
    limit: float
    """What the p-value was compared with."""
    outcomes: tuple[Outcome, ...] = FAILED_OR_HUNG
    """Trials that were compared; fewer where a further test found it: the control goes wrong too, but otherwise."""
    signature: Signature | None = None
    """Set when only this signature's count differs."""

    @property
    def further(self) -> bool:
        """Whether it took a further test: trials that failed or hung do not differ when taken together."""
        return self.outcomes != FAILED_OR_HUNG


def difference(sides: Sides, design: Design) -> Difference | None:
    """The difference that the reached looks establish, by the first look that does; None when there is none."""
    reached = [look for look in looks(design) if _reached(look, sides, design, (Side.THREADS, Side.SERIAL))]
    for look in reached:
        threads, serial = (_first(side, sides, design, look) for side in (Side.THREADS, Side.SERIAL))
        p_value = _test(threads, serial, partial(_ended_in, FAILED_OR_HUNG))
        if p_value <= look.limit:
            return Difference(_named(counted(sides.threads)), look, p_value, look.limit)
    further = [*_further_tests(sides, design, reached[-1])] if reached and reached[-1].last else []
    found = [item for item in further if item.p_value <= item.limit]
    return min(found, key=lambda item: (item.p_value, item.signature is None, str(item.signature)), default=None)


def _named(threads: Sequence[TrialRecord]) -> Headline:
    failed, hung = (sum(_ended_in(kinds, record) for record in threads) for kinds in (FAILED, HUNG))
    return Headline.RACE if failed >= hung else Headline.HANG


def _further_tests(sides: Sides, design: Design, look: Look) -> Iterator[Difference]:
    """The last look's further tests: each signature by itself, and failed and hung trials apart where there are both.

    They share FURTHER_PART evenly (Bonferroni). What both sides together showed too rarely to reach even the whole part
    could never be rejected and takes no share (Tarone, Biometrics 46 (1990) 515-522); these numbers do not depend on
    which side it was, so the choice of tests costs nothing.
    """
    threads, serial = (_first(side, sides, design, look) for side in (Side.THREADS, Side.SERIAL))
    both = threads + serial
    part = FURTHER_PART * (1 - design.confidence)
    fewest = next(
        (k for k in range(1, len(threads) + 1) if fisher_greater(k, len(threads), 0, len(serial)) <= part), None
    )
    if fewest is None:
        return
    seen = Counter(signature for record in both for signature in _signatures(record))
    signatures = [signature for signature, count in seen.items() if count >= fewest]
    ways = {kinds: sum(_ended_in(kinds, record) for record in both) for kinds in (FAILED, HUNG)}
    # Where only one way occurs, trials that ended in it are those that the look has compared already.
    apart = [kinds for kinds, count in ways.items() if count >= fewest] if all(ways.values()) else []
    limit = part / max(1, len(signatures) + len(apart))
    for signature in signatures:
        p_value = _test(threads, serial, partial(_shows, signature))
        yield Difference(Headline.RACE, look, p_value, limit, FAILED, signature)
    for kinds in apart:
        headline = Headline.HANG if kinds == HUNG else Headline.RACE
        yield Difference(headline, look, _test(threads, serial, partial(_ended_in, kinds)), limit, kinds)


def stopped_at(records: Records, design: Design) -> int | None:
    """The look, in blocks, at which the headline was certain before all trials were in; None when none was."""
    return _stop(by_side(records), design)


def finished(records: Records, design: Design) -> bool:
    """True when no further trial is to be run: the headline is certain at a fixed look, or all trials are in."""
    sides = by_side(records)
    return _all_in(sides, design) or _hopeless(sides) or _stop(sides, design) is not None


def next_needed(records: Records, design: Design) -> Mapping[Side, int]:
    """How many more trials each side needs to complete the next look; empty when the cell is finished.

    Skipped trials take their place, since a further one would be skipped as well; infrastructure failures do not.
    """
    sides = by_side(records)
    if finished(records, design):
        return {}
    look = next(look for look in looks(design) if not _reached(look, sides, design))
    missing = {side: design.planned(side, look.blocks) - len(_of(side, sides)) for side in _SCORED}
    return {side: count for side, count in missing.items() if count > 0}


def further_needed(k1: int, n1: int, k0: int, n0: int, design: Design) -> int | None:
    """Further trials a side until a last look would establish it, should both rates stay as they were seen.

    Args:
        k1, n1: threaded trials that failed or hung, of all.
        k0, n0: the same of serial controls.

    Returns:
        None when ``MOST_FURTHER`` further trials a side would not do.
    """
    if n1 == 0 or n0 == 0 or k1 * n0 <= k0 * n1:
        return None
    longer = Design(3 * FIRST_BLOCKS, 3 * FIRST_BLOCKS, confidence=design.confidence, stop_early=design.stop_early)
    limit = looks(longer)[-1].limit
    for more in range(1, MOST_FURTHER + 1):
        threads, serial = n1 + more, n0 + more
        if fisher_greater(k1 * threads // n1, threads, -(-k0 * serial // n0), serial) <= limit:
            return more
    return None


def _of(side: Side, sides: Sides) -> tuple[Sample, ...]:
    return {Side.THREADS: sides.threads, Side.SERIAL: sides.serial, Side.SOLO: sides.solo}[side]


def _first(side: Side, sides: Sides, design: Design, look: Look) -> list[TrialRecord]:
    """A side's records at a look; at the last one all that there are."""
    samples = _of(side, sides)
    return counted(samples if look.last else samples[: design.planned(side, look.blocks)])


def _reached(look: Look, sides: Sides, design: Design, needed: Sequence[Side] = _SCORED) -> bool:
    return all(len(_of(side, sides)) >= design.planned(side, look.blocks) for side in needed)


def _all_in(sides: Sides, design: Design) -> bool:
    return _reached(looks(design)[-1], sides, design)


def _hopeless(sides: Sides) -> bool:
    """Whether every trial so far failed to import in the same way, or was skipped, and more than one did."""
    records = [sample.record for sample in sides.scored]
    if len(records) < IMPORTS_ALIKE or len({record.outcome for record in records}) != 1:
        return False
    if records[0].outcome is Outcome.SKIPPED:
        return True
    return records[0].outcome is Outcome.IMPORT_FAILED and len({_import_error(record) for record in records}) == 1


def _import_error(record: TrialRecord) -> Signature | None:
    return record.failures[0].signature if record.failures else None


def _stop(sides: Sides, design: Design) -> int | None:
    found = difference(sides, design)
    for look in looks(design):
        if look.last or not _reached(look, sides, design):
            return None
        if found is not None and found.look.blocks <= look.blocks:
            return look.blocks
        threads, serial, solo = (_first(side, sides, design, look) for side in _SCORED)
        if _broken(threads, serial, solo) or (threads and all(r.outcome is Outcome.OOM for r in threads)):
            return look.blocks
    return None


def _broken(threads: Sequence[TrialRecord], serial: Sequence[TrialRecord], solo: Sequence[TrialRecord]) -> bool:
    """Whether every serial control failed or hung, and threads went wrong in no way that the controls did not."""
    if not serial or not all(_ended_in(FAILED_OR_HUNG, record) for record in serial):
        return False
    known = {way for record in (*serial, *solo) for way in _ways(record)}
    return all(_ways(record) <= known for record in threads)


def _ways(record: TrialRecord) -> frozenset[Signature | Outcome]:
    """Its signatures where it failed, and that it hung."""
    return frozenset(HUNG) if _ended_in(HUNG, record) else _signatures(record)


def _signatures(record: TrialRecord) -> frozenset[Signature]:
    """Signatures of a failed trial, of all its threads."""
    if record.outcome not in FAILED:
        return frozenset()
    return frozenset(failure.signature for failure in record.failures)


def _ended_in(outcomes: Sequence[Outcome], record: TrialRecord) -> bool:
    return record.outcome in outcomes


def _shows(signature: Signature, record: TrialRecord) -> bool:
    return signature in _signatures(record)


def _test(
    threads: Sequence[TrialRecord], serial: Sequence[TrialRecord], counts: Callable[[TrialRecord], bool]
) -> float:
    return fisher_greater(sum(map(counts, threads)), len(threads), sum(map(counts, serial)), len(serial))
