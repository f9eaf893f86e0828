"""When a cell may be judged: looks fixed beforehand, and what must be certain at one of them to stop.

A *block* is one threaded trial, one serial and one solo control. A look is a number of complete blocks, known from the
design alone. Threads are compared with the serial control at the looks only, and each look may spend its own part of
``1 - confidence`` (Bonferroni). Fisher's p-value is at most ``a`` with probability at most ``a`` under any common rate,
so a cell whose threads fail no more often than its control is called RACE with a probability of at most the sum of
the parts: 5 % at a confidence of 95 %, and the same for HANG by itself. See docs/verdicts.md.
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
IMPORTS_ALIKE = 2
"""So many import failures (or skips), and nothing else, end a cell."""

FAILED = (Outcome.FAILED, Outcome.IMPORT_FAILED)
"""Outcomes that count as failed. A failed import is one of them only where other trials of the cell did import."""

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
    """RACE or HANG."""
    look: Look
    p_value: float
    limit: float
    """What the p-value was compared with."""
    signature: Signature | None = None
    """Set when only this signature's count differs: the control fails too, but otherwise."""
    joint: bool = False
    """True when only failed and hung trials together differ."""


def difference(sides: Sides, design: Design) -> Difference | None:
    """The difference that the reached looks establish, RACE before HANG; None when there is none."""
    reached = [look for look in looks(design) if _reached(look, sides, design, (Side.THREADS, Side.SERIAL))]
    further = [*_further_tests(sides, design, reached[-1])] if reached and reached[-1].last else []
    for headline, outcomes in ((Headline.RACE, FAILED), (Headline.HANG, (Outcome.HANG,))):
        for look in reached:
            threads, serial = (_first(side, sides, design, look) for side in (Side.THREADS, Side.SERIAL))
            p_value = _test(threads, serial, partial(_ended_in, outcomes))
            if p_value <= look.limit:
                return Difference(headline, look, p_value, look.limit)
        found = [item for item in further if item.headline is headline and item.p_value <= item.limit]
        if found:
            return min(found, key=lambda item: (item.p_value, str(item.signature)))
    return None


def _further_tests(sides: Sides, design: Design, look: Look) -> Iterator[Difference]:
    """The last look's further tests: each signature by itself, and failed and hung trials together.

    They share FURTHER_PART evenly (Bonferroni). A signature seen too rarely on both sides together to reach even the
    whole part could never be rejected and takes no share (Tarone, Biometrics 46 (1990) 515-522); that number does not
    depend on which side saw it, so the choice of tests costs nothing.
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
    failed, hung = (sum(r.outcome in kinds for r in both) for kinds in (FAILED, (Outcome.HANG,)))
    joint = failed > 0 and hung > 0
    tests = len(signatures) + joint
    for signature in signatures:
        p_value = _test(threads, serial, partial(_shows, signature))
        yield Difference(Headline.RACE, look, p_value, part / tests, signature=signature)
    if joint:
        p_value = _test(threads, serial, partial(_ended_in, (*FAILED, Outcome.HANG)))
        excess = sum((r.outcome in FAILED) - (r.outcome is Outcome.HANG) for r in threads)
        headline = Headline.RACE if excess >= 0 else Headline.HANG
        yield Difference(headline, look, p_value, part / tests, joint=True)


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


def further_needed(k1: int, n1: int, k0: int, n0: int, design: Design, most: int = 1000) -> int | None:
    """Further trials a side until a last look would establish RACE, should both rates stay as they were seen.

    Returns:
        None when ``most`` further trials a side would not do.
    """
    if n1 == 0 or n0 == 0 or k1 * n0 <= k0 * n1:
        return None
    longer = Design(3 * FIRST_BLOCKS, 3 * FIRST_BLOCKS, confidence=design.confidence, stop_early=design.stop_early)
    limit = looks(longer)[-1].limit
    for more in range(1, most + 1):
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
    """Whether every serial control failed, and threads in no way that the controls did not."""
    if not serial or not all(record.outcome in (*FAILED, Outcome.HANG) for record in serial):
        return False
    known = {signature for record in (*serial, *solo) for signature in _signatures(record)}
    return all(_signatures(record) <= known for record in threads)


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
