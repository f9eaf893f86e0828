"""A report as a list of checks, each passed or not: what continuous integration shows. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from bisect_env.gate.records import Decision, GateResult, Line
from bisect_env.report.rows import Row, fault, interval, short_id
from bisect_env.report.summary import AVOIDED
from bisect_env.trials.records import Failure, Outcome, TrialRecord
from bisect_env.verdicts.records import Headline
from bisect_env.verdicts.samples import Sample


class State(StrEnum):
    """How a check ended."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    """No answer: there is no environment, it is undecided, or the machine failed."""
    SKIPPED = "skipped"
    """Not asked, or not run."""


class Level(StrEnum):
    """How loud it is, the loudest first; the value is GitHub's word."""

    ERROR = "error"
    """It decides the exit code."""
    WARNING = "warning"
    NOTICE = "notice"


@dataclass(frozen=True)
class Check:
    """One cell of a matrix, or one question of a gate."""

    name: str
    state: State
    kind: str
    """Headline or decision: ``RACE``, ``inconclusive``."""
    message: str
    """One sentence."""
    evidence: str = ""
    """Lines to read: figures, the first failure in full, and where there is more."""
    seconds: float = 0.0
    """That its trials took together."""
    level: Level | None = None
    """None: nothing to draw attention to."""
    weight: int = 0
    """Among checks of a level, the lower comes first."""


BAD = (*AVOIDED, Headline.DENSE)
"""Headlines that fail where nobody says which do."""
NO_ANSWER = (Headline.UNSURE, Headline.IMPORT_FAILED, Headline.BUILD_FAILED, Headline.UNRESOLVABLE)
WEIGHTS = {headline: place for place, headline in enumerate((*BAD, *NO_ANSWER))}
LINES = 40
"""Most lines of a traceback or of a trial's output, the last ones."""
LISTED = 5
"""Most trials named."""
WENT_WRONG = (Outcome.FAILED, Outcome.HANG, Outcome.OOM, Outcome.WRONG, Outcome.IMPORT_FAILED)


def of_matrix(rows: Sequence[Row], fail_on: Collection[Headline], trouble: str = "") -> list[Check]:
    """A check a cell, in the table's order.

    With ``fail_on``, what ``--fail-on`` names, those cells fail and no others. Without it, cells fail that the report
    says to avoid, and dense ones; a cell without an answer is an error. A cell that was not measured is skipped; it is
    an error where the machine is to blame.

    Args:
        rows: of the table.
        fail_on: headlines that decide the exit code; empty: none does.
        trouble: what ended the run, where the machine failed.
    """
    return [_cell(row, fail_on, trouble) for row in rows]


def of_gate(found: GateResult) -> list[Check]:
    """A check a question, in the order of the questions. An inconclusive answer is an error: it does not pass."""
    samples = {sample.record.id: sample for side in (found.baseline, found.candidate) for sample in side.samples}
    return [of_question(line, [samples[name] for name in line.trials if name in samples]) for line in found.lines]


def _cell(row: Row, fail_on: Collection[Headline], trouble: str) -> Check:
    verdict, headline = row.verdict, row.verdict.headline
    blamed = headline is Headline.NOT_RUN and bool(trouble or verdict.infra)
    return Check(
        name=row.cell.id,
        state=_state(headline, fail_on, blamed),
        kind=headline.value,
        message=f"{verdict.text}: {trouble if blamed and trouble else verdict.reason}".rstrip(": "),
        evidence=_evidence(row),
        seconds=sum(sample.record.seconds for sample in row.samples),
        level=_level(headline, fail_on, blamed),
        weight=WEIGHTS.get(headline, len(WEIGHTS)),
    )


def _state(headline: Headline, fail_on: Collection[Headline], blamed: bool) -> State:
    if headline in (fail_on or BAD):
        return State.FAILED
    if blamed or (not fail_on and headline in NO_ANSWER):
        return State.ERROR
    return State.SKIPPED if headline in (Headline.NOT_RUN, Headline.SKIPPED, *NO_ANSWER) else State.PASSED


def _level(headline: Headline, fail_on: Collection[Headline], blamed: bool) -> Level | None:
    if headline in fail_on or blamed:
        return Level.ERROR
    if headline in (*BAD, *NO_ANSWER):
        return Level.WARNING
    return Level.NOTICE if headline in (Headline.NOT_RUN, Headline.SKIPPED) else None


def _evidence(row: Row) -> str:
    verdict = row.verdict
    figures = (("threads", verdict.threads), ("serial", verdict.serial), ("solo", verdict.solo))
    lines = [f"{name}: {interval(found)} went wrong" for name, found in figures if found is not None]
    lines += [
        f"{fault(item.signature)}: {item.threads} threaded, {item.serial} serial, {item.solo} solo trials"
        for item in verdict.signatures
    ]
    lines += [*(row.lock.marks if row.lock else ()), *verdict.marks]
    lines += _trials(row.samples)
    return "\n".join([*lines, f"More: bisect-env show {short_id(row.cell)}"])


def of_question(line: Line, samples: Sequence[Sample]) -> Check:
    """The check of one question, with the trials that are its evidence."""
    state, level = {
        Decision.PASS: (State.PASSED, None),
        Decision.FAIL: (State.FAILED, Level.ERROR),
        Decision.INCONCLUSIVE: (State.ERROR, Level.WARNING),
        Decision.NOT_ASKED: (State.SKIPPED, Level.NOTICE),
    }[line.decision]
    sides = [f"{name}: {text}" for name, text in (("baseline", line.baseline), ("candidate", line.candidate)) if text]
    figures = [f"{name}: {value:g}" for name, value in line.figures]
    return Check(
        name=line.question.value,
        state=state,
        kind=line.decision.value,
        message=" ".join(filter(None, (line.sentence, line.more))),
        evidence="\n".join([*sides, *figures, *_trials(samples)]),
        seconds=sum(sample.record.seconds for sample in samples),
        level=level,
    )


def _trials(samples: Sequence[Sample]) -> list[str]:
    """The trials that went wrong by name, and the first of them in full."""
    wrong = [sample.record for sample in samples if sample.record.outcome in WENT_WRONG]
    if not wrong:
        return []
    named = ", ".join(f"{record.id} ({record.side} {record.outcome})" for record in wrong[:LISTED])
    more = f" and {len(wrong) - LISTED} more" if len(wrong) > LISTED else ""
    return [f"trials: {named}{more}", "", *_first(wrong[0])]


def _first(record: TrialRecord) -> list[str]:
    told = record.failures[0] if record.failures else None
    text = _said(told) if told is not None else record.stacks or record.output
    lines = text.splitlines()
    cut = [f"({len(lines) - LINES} lines before are left out)"] if len(lines) > LINES else []
    head = f"{record.id}, {record.side}: {record.outcome}" + (f", {record.message}" if record.message else "")
    return [head, *cut, *lines[-LINES:], ""]


def _said(failure: Failure) -> str:
    return failure.traceback or failure.message
