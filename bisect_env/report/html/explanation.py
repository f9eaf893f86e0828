"""The HTML report of an explanation: the answer, the trial as a drawing, the stacks, and the ledger of hypotheses."""

from __future__ import annotations

from dataclasses import dataclass

from bisect_env.explanation.records import Account, Explanation, Hypothesis, Mechanism, Standing
from bisect_env.report import explanation as words
from bisect_env.report.explanation_follows import follows
from bisect_env.report.explanation_lanes import Kind, Sign
from bisect_env.report.explanation_words import (
    begin,
    fault,
    headline,
    ledger,
    line,
    others,
    primary,
    proofs,
    stacks,
    unknown,
)
from bisect_env.report.html import paper, timeline, tones
from bisect_env.report.html.timeline import Picture
from bisect_env.report.html.tones import Tone
from bisect_env.report.pieces import Points, Section, Verbatim

SIGNS = {Standing.KEPT: "✓", Standing.ELIMINATED: "✕", Standing.UNDECIDED: "?", Standing.UNTESTED: "–"}
DRAWN = 6
"""Other trials with a drawing of their own."""


@dataclass(frozen=True)
class Tried:
    """One hypothesis."""

    name: str
    statement: str
    evidence: tuple[str, ...]
    tone: Tone
    sign: str
    word: str


@dataclass(frozen=True)
class Told:
    """One trial."""

    trial: str
    outcome: str
    line: str
    sentences: tuple[str, ...]
    message: str
    proofs: str
    """Title of the stacks."""
    stacks: tuple[tuple[str, str], ...]
    pictures: tuple[Picture, ...]
    kinds: tuple[tuple[Kind, str], ...]
    signs: tuple[Sign, ...]


def page(explanation: Explanation) -> str:
    """The report as one HTML document."""
    account, rest = primary(explanation), others(explanation)
    tone, answer = _answer(account)
    unwatched = Section("Could not be watched", (Points(unknown(explanation)),))
    commands = Section("Go on", (Verbatim("", "" if account is None else words.show(account), "sh"),))
    return paper.write(
        "explanation.html",
        title=f"Why {explanation.cell} fails",
        headline=headline(explanation),
        vanished=explanation.vanished,
        follows=follows(explanation),
        tone=tone,
        sign=tones.sign(tone),
        answer=answer,
        told=None if account is None else _told(account, True, True),
        hypotheses=[_tried(each) for each in ledger(explanation)],
        others=[_told(each, at < DRAWN, False) for at, each in enumerate(rest)],
        sections=[unwatched, *words.background(explanation), commands],
    )


def _answer(account: Account | None) -> tuple[Tone, str]:
    if account is None or (not account.collisions and account.outcome == "clean"):
        return Tone.NONE, "nothing to explain"
    if not account.collisions or account.collisions[0].mechanism is Mechanism.UNKNOWN:
        return Tone.OPEN, "not explained"
    return Tone.BAD, str(account.collisions[0].mechanism)


def _tried(found: Hypothesis) -> Tried:
    standing = found.standing
    return Tried(found.name, found.statement, found.evidence, tones.of(standing), SIGNS[standing], standing.value)


def _told(account: Account, drawn: bool, whole: bool) -> Told:
    first = account.collisions[0] if account.collisions else None
    pictures = [timeline.near(account, first, account.trial)] if first is not None and drawn else []
    if whole and (account.log is not None or account.windows):
        pictures.append(timeline.entire(account, first, account.trial))
    return Told(
        account.trial,
        account.outcome,
        line(account),
        account.sentences,
        fault(first) if first is not None else "",
        proofs(first) if first is not None else "",
        stacks(first, begin(account)) if first is not None else (),
        tuple(pictures),
        *timeline.legend(pictures),
    )
