"""A cell as it stands in the grid, and the evidence that opens below it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bisect_env.report import evidence, table
from bisect_env.report.bisection_words import value
from bisect_env.report.grid import Column
from bisect_env.report.html import tones
from bisect_env.report.html.tones import Tone
from bisect_env.report.pieces import Facts, Grid, Part, Points, Section, Verbatim
from bisect_env.report.rows import Row, label, path, ratio, short_id, speed
from bisect_env.trials.records import Side
from bisect_env.verdicts.samples import Sample

HEAD, TAIL = 12, 48
"""Lines kept of a long traceback: where it began, and where it ended."""
WIDTH = 300
"""Characters kept of a line."""
FAILURES = 6
"""Signatures whose first failure is there in full."""


@dataclass(frozen=True)
class Outcome:
    """One trial among those of its side."""

    tone: Tone
    word: str
    letter: str


@dataclass(frozen=True)
class Outcomes:
    """The trials of one side, in order."""

    side: str
    trials: tuple[Outcome, ...]
    text: str
    """The same in words: ``4 failed, 2 clean``."""


@dataclass(frozen=True)
class Shown:
    """A cell of the page."""

    key: str
    """Part of its anchors."""
    label: str
    tone: Tone
    sign: str
    headline: str
    verdict: str
    """The headline with its figures."""
    lines: tuple[str, ...]
    """The figures that stand in the grid."""
    sentence: str
    outcomes: tuple[Outcomes, ...]
    sections: tuple[Section, ...]
    timed: bool
    """Whether the chart of throughput has it."""


def shown(row: Row, axes: Sequence[str]) -> Shown:
    """The cell; ``axes`` are those that tell it apart."""
    verdict = row.verdict
    tone = tones.of(verdict.headline)
    rate, fast = table.rate(row), speed(verdict.throughput)
    compared = ratio(verdict.throughput)
    lines = (
        f"{rate} fail" if rate else "",
        f"{fast} tok/s" + (f" ({compared}×)" if compared else "") if fast else "",
        path(verdict),
    )
    return Shown(
        key=short_id(row.cell),
        label=label(row, axes),
        tone=tone,
        sign=tones.sign(tone),
        headline=verdict.headline.value,
        verdict=verdict.text,
        lines=tuple(filter(None, lines)),
        sentence=verdict.reason,
        outcomes=outcomes(row.samples),
        sections=tuple(sections(row)),
        timed=verdict.throughput is not None,
    )


def sections(row: Row) -> list[Section]:
    """Everything that ``show`` says of a cell."""
    records = [sample.record for sample in row.samples]
    remarks = [note for note in table.remarks(row) if note not in evidence.marks(row)]
    about = [("cell", f"{row.cell.id} (key {row.cell.key})"), *row.cell.levels]
    hidden = [(name, value(name, text)) for name, text in row.cell.variables]
    return [
        Section("Figures", _facts(evidence.figures(row))),
        Section("Signatures", _points(evidence.signatures(row.verdict))),
        Section("Attention", _points(evidence.attention(row.verdict))),
        Section("Marks", _points([*evidence.marks(row), *remarks])),
        Section("First failure of each signature", tuple(_failures(row))),
        Section("Trials", _trials(row.samples)),
        Section("Cell", _facts(about)),
        Section("Condition", _facts([(key, str(found)) for key, found in row.cell.condition.values])),
        Section("Variables of its trials", _facts(hidden)),
        Section("Versions as imported", _facts(evidence.versions(records))),
        Section("Environment", _environment(row)),
    ]


def outcomes(samples: Sequence[Sample]) -> tuple[Outcomes, ...]:
    """The trials of each side, those that time rounds included."""
    found = []
    for side in Side:
        own = [sample.record.outcome for sample in evidence.in_order(samples) if sample.record.side is side]
        if own:
            counts = ", ".join(f"{own.count(each)} {each}" for each in dict.fromkeys(own))
            trials = tuple(Outcome(tones.of(each), each.value, each.value[0].upper()) for each in own)
            found.append(Outcomes(side.value, trials, counts))
    return tuple(found)


def shortened(text: str, trial: str) -> str:
    """A traceback, or stacks, without the middle of what is long; what was left out is said, and where it is."""
    lines = [line if len(line) <= WIDTH else f"{line[:WIDTH]} [...]" for line in text.splitlines()]
    left = len(lines) - HEAD - TAIL
    if left > 1:
        notice = f"[... {left} lines are left out here: `bisect-env show {trial}` has all ...]"
        lines = [*lines[:HEAD], notice, *lines[-TAIL:]]
    return "\n".join(lines)


def _failures(row: Row) -> list[Part]:
    records = [sample.record for sample in row.samples]
    found: list[Part] = []
    failures = evidence.first_failures(records)
    for record, failure in failures[:FAILURES]:
        body = shortened(failure.traceback or failure.message or "-", record.id)
        found.append(Verbatim(f"{evidence.failure_title(failure)} (trial {record.id}, {record.side})", body, long=True))
    for record in evidence.first_hangs(records):
        found.append(Verbatim(evidence.hang_title(record), shortened(record.stacks, record.id), long=True))
    if len(failures) > FAILURES:
        more = f"{len(failures) - FAILURES} more signatures: `bisect-env show {short_id(row.cell)}` has all."
        found.append(Points((more,)))
    return found


def _trials(samples: Sequence[Sample]) -> tuple[Part, ...]:
    ordered = evidence.in_order(samples)
    columns = (
        Column("block", tuple(str(sample.block + 1) for sample in ordered)),
        Column("side", tuple(sample.record.side.value for sample in ordered)),
        Column("outcome", tuple(sample.record.outcome.value for sample in ordered)),
        Column("seconds", tuple(f"{sample.record.seconds:.1f}" for sample in ordered)),
        Column("trial", tuple(sample.record.id for sample in ordered)),
        Column("", tuple("; ".join(evidence.said(sample.record))[:WIDTH] for sample in ordered)),
    )
    return (Grid(columns),)


def _environment(row: Row) -> tuple[Part, ...]:
    if row.lock is None:
        return ()
    lock = "Lock, without its hashes"
    notes = _points(row.lock.notes)
    pins = "\n".join(evidence.pins(row.lock))
    return (*_facts(evidence.environment(row.lock)), *notes, Verbatim(lock, pins, long=True))


def _facts(pairs: Sequence[tuple[str, str]]) -> tuple[Part, ...]:
    return (Facts(tuple(pairs)),)


def _points(texts: Sequence[str]) -> tuple[Part, ...]:
    return (Points(tuple(texts)),)
