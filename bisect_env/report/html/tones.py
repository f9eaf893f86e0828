"""How good or bad a verdict is, as a tone of the page, and the sign that stands beside its word."""

from __future__ import annotations

from enum import StrEnum

from bisect_env.explanation.records import Standing
from bisect_env.gate.records import Decision
from bisect_env.trials.records import Outcome
from bisect_env.verdicts.records import Headline


class Tone(StrEnum):
    """A class of the style sheet. Colour is never alone: a word and a sign stand beside it."""

    GOOD = "good"
    BAD = "bad"
    POOR = "poor"
    """Works, and costs too much."""
    OPEN = "open"
    """Not known yet."""
    BARRED = "barred"
    """Cannot run at all."""
    NONE = "none"


SIGNS = {Tone.GOOD: "✓", Tone.BAD: "✕", Tone.POOR: "▲", Tone.OPEN: "?", Tone.BARRED: "⊘", Tone.NONE: "–"}

_HEADLINES = {
    Headline.UNRESOLVABLE: Tone.BARRED,
    Headline.BUILD_FAILED: Tone.BARRED,
    Headline.IMPORT_FAILED: Tone.BARRED,
    Headline.SKIPPED: Tone.BARRED,
    Headline.RACE: Tone.BAD,
    Headline.HANG: Tone.BAD,
    Headline.BROKEN: Tone.BAD,
    Headline.OOM: Tone.BAD,
    Headline.WRONG: Tone.BAD,
    Headline.DENSE: Tone.POOR,
    Headline.SLOW: Tone.POOR,
    Headline.UNSURE: Tone.OPEN,
    Headline.FULL: Tone.GOOD,
    Headline.NOT_RUN: Tone.NONE,
}
_OUTCOMES = {
    Outcome.CLEAN: Tone.GOOD,
    Outcome.FAILED: Tone.BAD,
    Outcome.HANG: Tone.BAD,
    Outcome.OOM: Tone.BAD,
    Outcome.WRONG: Tone.BAD,
    Outcome.IMPORT_FAILED: Tone.BARRED,
    Outcome.SKIPPED: Tone.BARRED,
    Outcome.INFRA: Tone.NONE,
}
_DECISIONS = {
    Decision.PASS: Tone.GOOD,
    Decision.FAIL: Tone.BAD,
    Decision.INCONCLUSIVE: Tone.OPEN,
    Decision.NOT_ASKED: Tone.NONE,
}
_STANDINGS = {
    Standing.KEPT: Tone.BAD,
    Standing.ELIMINATED: Tone.BARRED,
    Standing.UNDECIDED: Tone.OPEN,
    Standing.UNTESTED: Tone.NONE,
}


def of(found: Headline | Outcome | Decision | Standing) -> Tone:
    """The tone of a verdict, of a trial, of a gate's answer, or of a hypothesis."""
    if isinstance(found, Headline):
        return _HEADLINES[found]
    if isinstance(found, Standing):
        return _STANDINGS[found]
    return _OUTCOMES[found] if isinstance(found, Outcome) else _DECISIONS[found]


def sign(tone: Tone) -> str:
    """The sign beside the word."""
    return SIGNS[tone]
