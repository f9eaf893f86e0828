"""Why a cell fails, as a report to read: text for a terminal, Markdown to paste into an issue."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Sequence

from bisect_env.explanation.records import Account, Explanation, Hypothesis
from bisect_env.report import explanation_timeline as timeline
from bisect_env.report import pieces
from bisect_env.report.explanation_follows import follows
from bisect_env.report.explanation_words import (
    begin,
    evidence,
    headline,
    ledger,
    line,
    noun,
    others,
    primary,
    proofs,
    stacks,
    unknown,
)
from bisect_env.report.grid import Column
from bisect_env.report.pieces import Facts, Grid, Part, Points, Section, Verbatim, Words
from bisect_env.words import counted

FORMATS = ("text", "markdown")
NARROW = 24
"""Characters of a table's column that is wrapped, at least."""


def report(
    explanation: Explanation, fmt: str = "text", width: int = 100, *, matrix: str = "", drawn: bool = False
) -> str:
    """Everything that is printed of an explanation.

    Args:
        explanation: what the witnessed trials show.
        fmt: ``text`` or ``markdown``.
        width: characters a line of text; Markdown has none, but for its picture.
        matrix: file that the cell is one of, without which its name may fit a cell of another.
        drawn: the page with the drawing was asked for as well: no command line for it.
    """
    found = [
        Section("", tuple(_head(explanation))),
        *(_telling(explanation, width)),
        Section("Hypotheses", (_ledger(ledger(explanation), width if fmt == "text" else 0),)),
        Section("Could not be watched", (Points(unknown(explanation)),)),
        Section(
            "The other witnessed trials", (Facts(tuple((each.trial, line(each)) for each in others(explanation))),)
        ),
        *background(explanation),
        Section("Go on", (Verbatim("", _commands(explanation, matrix, drawn), "sh"),)),
    ]
    return pieces.markdown(found) if fmt == "markdown" else pieces.text(found, width)


def background(explanation: Explanation) -> list[Section]:
    """What the answer rests on."""
    return [
        Section("Watched", tuple(_watched(explanation))),
        Section("What it rests on", (Facts(effort(explanation)),)),
        Section("Notes", (Points(explanation.notes),)),
    ]


def effort(explanation: Explanation) -> tuple[tuple[str, str], ...]:
    """Trials with and without the witness, and what it cost."""
    plain = f"{explanation.plain_failed} of {counted(explanation.plain, 'trial')} of the same condition went wrong"
    return (
        ("with the witness", f"{explanation.failed} of {counted(len(explanation.accounts), 'trial')} went wrong"),
        ("without it", plain if explanation.plain else "no trial of the same condition is stored"),
        ("its cost", explanation.cost),
        ("environment", explanation.environment),
    )


def show(account: Account) -> str:
    """The command line that prints everything about a trial."""
    return f"bisect-env show {account.trial}  # everything about the trial that is told here"


def _commands(explanation: Explanation, matrix: str, drawn: bool) -> str:
    account = primary(explanation)
    which = shlex.join([explanation.cell, *([matrix] if matrix else [])])
    draw = f"bisect-env explain {which} --html explanation.html  # with the trial drawn"
    return "\n".join([*([show(account)] if account is not None else []), *([] if drawn else [draw])])


def _head(explanation: Explanation) -> list[Part]:
    told = (headline(explanation), explanation.vanished, follows(explanation))
    return [Words(text) for text in told if text]


def _telling(explanation: Explanation, width: int) -> list[Section]:
    account = primary(explanation)
    if account is None:
        return []
    found = [Section(f"Trial {account.trial}, {account.outcome}", (Points(account.sentences),))]
    if account.collisions:
        first = account.collisions[0]
        found_in = [Verbatim(label, text) for label, text in stacks(first, begin(account))]
        picture, legend = timeline.draw(account, first, width - len(_INDENT))
        found += [
            Section(proofs(first), tuple(found_in)),
            Section(f"Round the {noun(first)}", (Verbatim("", picture), Words(legend))),
        ]
    return found


_INDENT = " " * 4
"""Of lines that are shown as they are."""


def _ledger(hypotheses: Sequence[Hypothesis], width: int) -> Grid:
    """The table; with a width its last column is wrapped to what the others leave."""
    rows: list[tuple[str, str, str]] = []
    names = max([len("hypothesis"), *(len(each.name) for each in hypotheses)])
    room = max(NARROW, width - names - max(len(each.standing) for each in hypotheses) - 4) if hypotheses else NARROW
    for each in hypotheses:
        said = evidence(each)
        lines = [" ".join(said)]
        if width:
            lines = [piece for sentence in said for piece in textwrap.wrap(sentence, room, subsequent_indent="  ")]
        firsts = [(each.name, each.standing.value), *[("", "")] * len(lines)]
        rows += [(name, standing, text) for (name, standing), text in zip(firsts, lines, strict=False)]
    columns = tuple(zip(*rows, strict=True)) or ((), (), ())
    return Grid(tuple(Column(header, texts) for header, texts in zip(_HEADERS, columns, strict=True)))


_HEADERS = ("hypothesis", "standing", "what it says, and the evidence")


def _watched(explanation: Explanation) -> list[Part]:
    logs = [account.log for account in explanation.accounts if account.log is not None]
    found = dict.fromkeys((each.state.value, each.where, each.how) for log in logs for each in log.watched)
    if not found:
        return []
    versions = ", ".join(dict.fromkeys(f"torch {log.torch}, Python {log.python}" for log in logs))
    states = ", ".join(dict.fromkeys(state for state, _, _ in found))
    places = "\n".join(f"{state}: {where} ({how})" for state, where, how in found)
    said = f"{states}; in {counted(len(found), 'place')} of {versions}."
    return [Words(said), Verbatim("Every place that was watched, and how", places, long=True)]
