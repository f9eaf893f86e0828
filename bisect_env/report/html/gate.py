"""The HTML report of a gate: the decision, a block for each question, and what stands behind the answers."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bisect_env.engine.results import Result
from bisect_env.gate.records import BASELINE, GateResult, Line, SideFacts
from bisect_env.report import evidence, gate
from bisect_env.report.html import cells, paper, strips, tones
from bisect_env.report.html.cells import Shown
from bisect_env.report.html.strips import Chart, Measured
from bisect_env.report.html.tones import Tone
from bisect_env.report.pieces import Part, Section, Verbatim
from bisect_env.report.rows import short_id
from bisect_env.verdicts.records import Headline, Verdict
from bisect_env.verdicts.samples import by_side
from bisect_env.verdicts.throughput import rates


@dataclass(frozen=True)
class Asked:
    """One question with its answer."""

    line: Line
    tone: Tone
    sign: str
    answer: str
    figures: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Side:
    """One of the two environments, and all that was measured in it."""

    name: str
    origin: str
    shown: Shown


def page(result: GateResult) -> str:
    """The report as one HTML document: of a gate that has ended, or of what is known so far."""
    tone = tones.of(result.decision)
    return paper.write(
        "gate.html",
        title=f"Gate {result.id}".strip(),
        headline=gate.headline(result),
        answer=gate.answer(result.decision),
        tone=tone,
        sign=tones.sign(tone),
        questions=[_asked(line) for line in result.lines],
        charts=charts(result),
        sections=[replace(each, parts=_told_once(each)) for each in gate.background(result)],
        sides=[_side(side) for side in (result.baseline, result.candidate)],
    )


def charts(result: GateResult) -> list[Chart]:
    """Throughput of both sides on one scale; nothing where neither was timed."""
    measured = []
    for side in (result.baseline, result.candidate):
        row = _row(side)
        found = row.verdict.throughput
        if found is not None:
            text = dict(evidence.figures(row))["tokens/s"]
            own = rates(by_side(side.samples))
            measured.append(Measured(short_id(side.cell), side.name, own, found, text, side.name == BASELINE))
    return [strips.chart("", measured)] if measured else []


def _told_once(section: Section) -> tuple[Part, ...]:
    """Without trials and locks in full, which the evidence of the two environments has."""
    return tuple(part for part in section.parts if not (isinstance(part, Verbatim) and part.long))


def _asked(line: Line) -> Asked:
    tone = tones.of(line.decision)
    figures = tuple((name, f"{value:.6g}") for name, value in line.figures)
    return Asked(line, tone, tones.sign(tone), gate.answer(line.decision), figures)


def _side(side: SideFacts) -> Side:
    return Side(side.name, side.snapshot.origin, cells.shown(_row(side), ()))


def _row(side: SideFacts) -> Result:
    return Result(side.cell, side.verdict or Verdict(Headline.NOT_RUN), side.lock, side.samples)
