"""What a gate decided, as a report to read: text for a terminal, Markdown to paste into a change request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from bisect_env.environments.records import Lock
from bisect_env.environments.requirements import lines_of
from bisect_env.gate.records import Decision, GateResult, Line, SideFacts
from bisect_env.report import pieces
from bisect_env.report.bisection_words import change, level
from bisect_env.report.grid import Column
from bisect_env.report.pieces import Facts, Grid, Part, Points, Section, Verbatim, Words
from bisect_env.report.rows import cut
from bisect_env.snapshots.factors import Factor
from bisect_env.trials.records import TrialRecord
from bisect_env.words import counted, lasting

FORMATS = ("text", "markdown")
MEMBERS = 3
"""Named of those that move together with a factor; the JSON document has all."""
HELD = "Held: differs, cannot be changed here, is not tested"
ORIGIN = 100
"""Most characters of a side's origin."""
SENTENCE = 1500
"""Most characters of an answer: what uv says of a candidate that does not resolve may be long."""
SIGNATURE = 200
"""Most characters of a failure's text."""


def report(result: GateResult, fmt: str = "text", width: int = 100) -> str:
    """Everything that is printed of a gate.

    Args:
        result: what it decided, or what is known so far.
        fmt: ``text`` or ``markdown``.
        width: characters a line of text; Markdown has none.
    """
    found = sections(result)
    return pieces.markdown(found) if fmt == "markdown" else pieces.text(found, width)


def sections(result: GateResult) -> list[Section]:
    """The report's sections, whatever it is written in."""
    return [
        Section("", tuple(_head(result))),
        Section("Question by question", (_table(result.lines), Facts(_sentences(result.lines)))),
        Section("What it would take to decide", (Facts(_more(result.lines)),)),
        *background(result),
    ]


def background(result: GateResult) -> list[Section]:
    """What stands behind the answers, and what to do about a failure."""
    return [
        Section("Find what made it fail", (Verbatim("", result.bisect_command, "sh"),)),
        Section("What changes", tuple(_changes(result))),
        Section(HELD, (Points(_held(result)),)),
        Section("Announced before the first trial", (Points(result.announcement.sentences if result.trials else ()),)),
        Section("Notes", (Points(result.notes),)),
        Section("What it rests on", tuple(_effort(result))),
    ]


def plan(result: GateResult, fmt: str = "text", width: int = 100) -> str:
    """What a gate would do, of a result that nothing was run for, as text or as Markdown."""
    about = f"candidate {_origin(result.candidate)} against baseline {_origin(result.baseline)}; nothing was run."
    lines = [line for line in result.lines if line.decision is Decision.FAIL]
    found = [
        Section("", (Words(f"A gate of {about}"), Facts(_sentences(lines)))),
        Section("What changes", tuple(_changes(result))),
        Section(HELD, (Points(_held(result)),)),
        Section("What it takes", (Points(result.announcement.sentences),)),
        Section("Notes", (Points(result.notes),)),
    ]
    return pieces.markdown(found) if fmt == "markdown" else pieces.text(found, width)


def headline(result: GateResult) -> str:
    """The decision in a sentence."""
    names = {decision: _names(result.lines, decision) for decision in Decision}
    about = f"candidate {_origin(result.candidate)} against baseline {_origin(result.baseline)}"
    if result.decision is Decision.FAIL:
        return f"FAIL on {names[Decision.FAIL]}: {about}."
    if result.decision is Decision.PASS:
        return f"PASS on {names[Decision.PASS]}: {about}."
    return f"INCONCLUSIVE on {names[Decision.INCONCLUSIVE]}: {about}."


def _head(result: GateResult) -> list[Part]:
    return [Words(headline(result))]


def _origin(side: SideFacts) -> str:
    return cut(side.snapshot.origin, ORIGIN)


def _names(lines: Iterable[Line], decision: Decision) -> str:
    names = [line.question.value for line in lines if line.decision is decision]
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _table(lines: Sequence[Line]) -> Grid:
    return Grid(
        (
            Column("question", tuple(line.question.value for line in lines)),
            Column("answer", tuple(answer(line.decision) for line in lines)),
            Column("baseline", tuple(cut(line.baseline, 60) for line in lines)),
            Column("candidate", tuple(cut(line.candidate, 60) for line in lines)),
        )
    )


def answer(decision: Decision) -> str:
    """A decision as tables have it: an answer in capitals, what was not asked not."""
    return decision.value if decision is Decision.NOT_ASKED else decision.value.upper()


def _sentences(lines: Iterable[Line]) -> tuple[tuple[str, str], ...]:
    return tuple((line.question.value, cut(line.sentence, SENTENCE)) for line in lines)


def _more(lines: Iterable[Line]) -> tuple[tuple[str, str], ...]:
    return tuple((line.question.value, line.more) for line in lines)


def _changes(result: GateResult) -> list[Part]:
    factors, followers = result.difference.factors, result.difference.followers
    grid = Grid(
        (
            Column("what", tuple(factor.name for factor in factors)),
            Column("kind", tuple(factor.kind.value for factor in factors)),
            Column("change", tuple(change(factor) for factor in factors)),
            Column("with", tuple(_with(factor) for factor in factors)),
        )
    )
    names = tuple(
        f"{each.change.name} {level(each.change.good)} -> {level(each.change.bad)}, with {', '.join(each.factors)}"
        for each in followers
    )
    return [grid, Points(names)]


def _with(factor: Factor) -> str:
    names = [each.name for each in factor.members if each.name != factor.name]
    more = f" and {len(names) - MEMBERS} more" if len(names) > MEMBERS else ""
    return ", ".join(names[:MEMBERS]) + more


def _held(result: GateResult) -> tuple[str, ...]:
    return tuple(f"{h.name} {level(h.good)} -> {level(h.bad)}: {h.why}" for h in result.difference.held)


def _effort(result: GateResult) -> list[Part]:
    if not result.id:
        return []  # Nothing was begun.
    took = (
        f"{counted(result.trials, 'trial')}, {counted(result.builds, 'environment')} built, {lasting(result.seconds)}"
    )
    parts: list[Part] = [
        Words(f"{took}; gate {result.id}. `bisect-env show ID` has everything about a cell or a trial."),
        Facts(tuple((side.name, _measured(side)) for side in (result.baseline, result.candidate))),
    ]
    for side in (result.baseline, result.candidate):
        lines = [_trial(sample.record, sample.block) for sample in side.samples]
        parts.append(Verbatim(f"Every trial of the {side.name}", "\n".join(lines), long=True))
    for side in (result.baseline, result.candidate):
        if isinstance(side.lock, Lock):
            parts.append(Verbatim(f"Lock of the {side.name}, without hashes", _without_hashes(side.lock), long=True))
    return parts


def _measured(side: SideFacts) -> str:
    sides = Counter(sample.record.side for sample in side.samples)
    told = ", ".join(f"{count} of {name}" for name, count in sides.items())
    return f"cell {side.cell.key[:8]}: {counted(len(side.samples), 'trial')}{f' ({told})' if told else ''}"


def _trial(record: TrialRecord, block: int) -> str:
    said = f"{record.id}  {record.side:7}  block {block:<3d}  {record.outcome} in {record.seconds:.1f} s"
    return f"{said}: {cut(str(record.failures[0].signature), SIGNATURE)}" if record.failures else said


def _without_hashes(lock: Lock) -> str:
    return "\n".join(
        f"{line.name}=={line.version}" if line.version else f"{line.name} @ {line.url}" for line in lines_of(lock.text)
    )
