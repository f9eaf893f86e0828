"""The HTML report of a bisection: the finding, the posterior over time, every batch, and the text report's sections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bisect_env.bisection.log import History
from bisect_env.bisection.records import Answer, Finding, Observation
from bisect_env.report import bisection
from bisect_env.report.bisection import EVERY_BATCH
from bisect_env.report.bisection_words import outcome, place
from bisect_env.report.grid import Column
from bisect_env.report.html import paper, posterior, tones
from bisect_env.report.html.tones import Tone
from bisect_env.report.pieces import Grid, Part, Section, Verbatim
from bisect_env.report.rows import interval
from bisect_env.verdicts.records import Interval

_TONES = {
    Answer.CULPRIT: Tone.GOOD,
    Answer.PAIR: Tone.GOOD,
    Answer.RANGE: Tone.GOOD,
    Answer.NOT_REPRODUCED: Tone.POOR,
    Answer.GOOD_FAILS: Tone.POOR,
    Answer.NONE: Tone.OPEN,
    Answer.INCONCLUSIVE: Tone.OPEN,
    Answer.MISFIT: Tone.OPEN,
    Answer.NOTHING: Tone.NONE,
}


@dataclass(frozen=True)
class Arm:
    """Confirming trials of one environment, as a line from 0 to 100 %."""

    label: str
    expected: str
    text: str
    low: float
    estimate: float
    high: float


def page(found: Finding, history: History | None = None, files: tuple[str, str] | None = None) -> str:
    """The report as one HTML document.

    Args:
        found: the finding, or what is known so far.
        history: its log, from which the posterior over time comes; None where nothing was begun.
        files: paths of the two lock files, good side and bad side, where they were written.

    Raises:
        ValueError: the log is not one that a bisection wrote.
    """
    asked = history.header.specification if history is not None else None
    about = "" if asked is None else f"{asked.good.origin} against {asked.bad.origin}"
    tone = _TONES[found.answer]
    sections = [replace(each, parts=_without_batches(each)) for each in bisection.sections(found, files)]
    names = [factor.name for factor in history.header.factors] if history is not None else []
    return paper.write(
        "bisection.html",
        title=f"Bisection {found.id}".strip(),
        about=about,
        answer=found.answer.value,
        tone=tone,
        sign=tones.sign(tone),
        head=sections[0],
        panels=posterior.panels(history) if history is not None else (),
        arms=arms(found),
        confirmed=sections[1],
        sections=sections[2:],
        batches=batches(found.observations, names),
    )


def arms(found: Finding) -> tuple[Arm, ...]:
    """The confirming trials of each environment."""
    confirmation = found.confirmation
    return tuple(
        Arm(arm.label, "should fail" if arm.fails else "should not", interval(arm.rate), *_percent(arm.rate))
        for arm in (confirmation.arms if confirmation is not None else ())
    )


def batches(observations: Sequence[Observation], names: Sequence[str]) -> Grid:
    """Every batch on a line, with the ids of its trials."""
    columns = (
        Column("batch", tuple(str(seen.batch) for seen in observations)),
        Column("stage", tuple(seen.stage.value for seen in observations)),
        Column("environment", tuple(_where(seen, names) for seen in observations)),
        Column("came to", tuple(map(outcome, observations))),
        Column("trials", tuple(" ".join(seen.trials) for seen in observations)),
    )
    return Grid(columns)


def _where(seen: Observation, names: Sequence[str]) -> str:
    return place(seen.stage, seen.point, names) + (" (off-pin)" if seen.off_pin else "")


def _percent(rate: Interval) -> tuple[float, float, float]:
    estimate = rate.k / rate.n if rate.n else rate.low
    low, middle, high = (round(100 * value, 2) for value in (rate.low, estimate, rate.high))
    return low, middle, high


def _without_batches(section: Section) -> tuple[Part, ...]:
    """Without the lines that the page has as a table."""
    return tuple(part for part in section.parts if not (isinstance(part, Verbatim) and part.label == EVERY_BATCH))
