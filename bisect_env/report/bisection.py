"""What a bisection found, as a report to read: text for a terminal, Markdown to paste into an issue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from bisect_env.bisection import reading
from bisect_env.bisection.records import BAD, GOOD, Answer, Confirmation, Eliminated, Finding, Observation
from bisect_env.environments.requirements import lines_of
from bisect_env.matrix.cells import Condition
from bisect_env.report import pieces
from bisect_env.report.bisection_words import UNSET, change, held, level, members, outcome, place, probability, value
from bisect_env.report.grid import Column
from bisect_env.report.pieces import Facts, Grid, Part, Points, Section, Verbatim, Words
from bisect_env.report.rows import cut, interval
from bisect_env.verdicts.records import Interval
from bisect_env.words import counted, lasting

FOUND = (Answer.CULPRIT, Answer.PAIR, Answer.RANGE)
MEMBERS = 4
"""Named of those that move together with a culprit; the smallest difference has all."""
SUSPECTS = 8
"""Shown of the suspects, as long as there is no culprit."""
SIGNATURE = 300
"""Most characters of a failure's text."""
FORMATS = ("text", "markdown")
EVERY_BATCH = "Every batch"

Item = TypeVar("Item")


def report(found: Finding, fmt: str = "text", width: int = 100, files: tuple[str, str] | None = None) -> str:
    """Everything that is printed of a finding.

    Args:
        found: the finding, or what is known so far.
        fmt: ``text`` or ``markdown``.
        width: characters a line of text; Markdown has none.
        files: paths of the two lock files, good side and bad side, where they were written.
    """
    found_sections = sections(found, files)
    return pieces.markdown(found_sections) if fmt == "markdown" else pieces.text(found_sections, width)


def sections(found: Finding, files: tuple[str, str] | None = None) -> list[Section]:
    """The report's sections, whatever it is written in; ``files`` as for :func:`report`."""
    return [
        Section("", tuple(_head(found))),
        Section(_confirmed_title(found.confirmation), tuple(_confirmed(found.confirmation))),
        Section("Smallest difference that still fails", tuple(_smallest(found, files))),
        Section("What reproduces each side", tuple(_commands(found))),
        Section("Still suspected", tuple(_suspects(found))),
        Section("Cleared", tuple(_cleared(found))),
        *(
            Section(
                f"Read beforehand: {each.distribution}",
                (Words(reading.summary(each)), Points(reading.lines(each))),
            )
            for each in found.readings
        ),
        Section("Held: differs, cannot be changed here, is not cleared", tuple(_held(found))),
        Section("Could not be tested", tuple(_skipped(found))),
        Section("Other failures on the way, counted for neither side", tuple(_others(found))),
        Section("Read on", (Facts(tuple((link.label, link.url) for link in found.links)),)),
        Section("Notes", (Points(found.notes),)),
        Section("What it rests on", tuple(_effort(found))),
    ]


def _head(found: Finding) -> list[Part]:
    facts = [(_named(len(found.factors)), _factor_words(found))]
    if found.perhaps_with:
        perhaps = "; ".join(f"{factor.name} {change(factor)}" for factor in found.perhaps_with)
        facts.append(("perhaps only with", f"{perhaps}: at its bad level throughout"))
    for along in (found.versions, found.second_versions):
        if along is None:
            continue
        between = f"; any of {', '.join(along.candidates)} may be the first" if len(along.candidates) > 1 else ""
        said = f"{along.last_good} is the last that does not fail, {along.first_bad} the first that does{between}"
        facts.append((along.distribution, f"{said} ({probability(along.probability)})"))
    if found.commits is not None:
        commits = found.commits
        subject = f" ({commits.subject})" if commits.subject else ""
        several = len(commits.candidates) > 1
        first = ", ".join(map(_commit, commits.candidates)) if several else _commit(commits.first_bad) + subject
        said = f"{'one of ' if several else ''}{first}, after {_commit(commits.last_good)}, of {commits.repository}"
        facts.append(("commit", f"{said} ({probability(commits.probability)})"))
    facts.append(("failure", cut(found.signature or "", SIGNATURE)))
    tried = [Words(found.tried)] if found.tried else []
    return [Words(found.sentence), Facts(tuple(facts)), *tried]


def _named(number: int) -> str:
    return "culprit" if number == 1 else "culprits, together"


def _factor_words(found: Finding) -> str:
    texts = []
    for factor in found.factors:
        along = members(factor, MEMBERS)
        texts.append(f"{factor.name} {change(factor)}" + (f" (with it {along})" if along else ""))
    return "; ".join(texts)


def _confirmed_title(confirmation: Confirmation | None) -> str:
    if confirmation is None or confirmation.confirmed:
        return "Confirmed on fresh trials, with nothing else changed"
    return "NOT confirmed on fresh trials"


def _confirmed(confirmation: Confirmation | None) -> list[Part]:
    if confirmation is None:
        return []
    rows: list[tuple[str, str, Interval]] = [
        (arm.label, "should fail" if arm.fails else "should not", arm.rate) for arm in confirmation.arms
    ]
    if not rows:
        rest = f"the rest {confirmation.background}"
        rows = [
            (f"at its good level, {rest}", "should not", confirmation.good),
            (f"at its bad level, {rest}", "should fail", confirmation.bad),
        ]
    columns = (
        _column("environment", rows, lambda row: row[0]),
        _column("expected", rows, lambda row: row[1]),
        _column("fail (95 % interval)", rows, lambda row: interval(row[2])),
    )
    chance = "below 0.0001" if confirmation.p_value < 1e-4 else f"{confirmation.p_value:.2g}"
    both = ", both directions together" if confirmation.other is not None else ""
    said = "The trials took turns, and none of them was seen by the search. A difference at least this large by chance"
    return [
        Grid(columns, ("expected",)),
        Words(f"{said} alone: p = {chance} (exact, one-sided{both}).".replace("p = below", "p below")),
    ]


def _smallest(found: Finding, files: tuple[str, str] | None) -> list[Part]:
    rows = [
        *_pins(found.locks),
        *((name, value(name, good), value(name, bad)) for name, good, bad in _pairs(found.variables)),
    ]
    if found.conditions is not None:
        rows += _pairs((_written(found.conditions[0]), _written(found.conditions[1])))
    if not rows and found.locks is None:
        return []
    columns = (
        _column("what", rows, lambda row: row[0]),
        _column("good", rows, lambda row: cut(row[1], 60)),
        _column("bad", rows, lambda row: cut(row[2], 60)),
    )
    parts: list[Part] = [Grid(columns)]
    if files is not None:
        parts.append(Facts((("good side's lock", files[0]), ("bad side's lock", files[1]))))
    if found.locks is not None:
        parts += [
            Verbatim(f"Lock of the {side} side, without hashes", _without_hashes(lock), long=True)
            for side, lock in zip((GOOD, BAD), found.locks, strict=True)
        ]
    return parts


def _pins(locks: tuple[str, str] | None) -> list[tuple[str, str, str]]:
    if locks is None:
        return []
    good, bad = ({line.name: line.version or line.url or "" for line in lines_of(lock)} for lock in locks)
    names = sorted(name for name in good.keys() | bad.keys() if good.get(name) != bad.get(name))
    return [(name, level(good.get(name)), level(bad.get(name))) for name in names]


def _pairs(sides: tuple[Sequence[tuple[str, str]], Sequence[tuple[str, str]]]) -> list[tuple[str, str, str]]:
    good, bad = dict(sides[0]), dict(sides[1])
    names = sorted(name for name in good.keys() | bad.keys() if good.get(name) != bad.get(name))
    return [(name, good.get(name, UNSET), bad.get(name, UNSET)) for name in names]


def _written(condition: Condition) -> list[tuple[str, str]]:
    return [(key, str(value)) for key, value in condition.values]


def _without_hashes(lock: str) -> str:
    return "\n".join(
        f"{line.name}=={line.version}" if line.version else f"{line.name} @ {line.url}" for line in lines_of(lock)
    )


def _commands(found: Finding) -> list[Part]:
    if found.commands is None:
        return []
    return [
        Verbatim(f"{side} side:", command, "sh") for side, command in zip(("Good", "Bad"), found.commands, strict=True)
    ]


def _suspects(found: Finding) -> list[Part]:
    if found.answer in FOUND or not found.suspects:
        return []
    shown = found.suspects[:SUSPECTS]
    rest = found.suspects[SUSPECTS:]
    parts: list[Part] = [
        Grid(
            (
                _column("suspect", shown, lambda item: item[0]),
                _column("probability", shown, lambda item: probability(item[1])),
            )
        )
    ]
    if rest:
        share = sum(chance for _, chance in rest)
        parts.append(Words(f"and {len(rest)} more, {probability(share)} together"))
    return parts


def _cleared(found: Finding) -> list[Part]:
    by_evidence: dict[str, list[Eliminated]] = {}
    for item in found.eliminated:
        by_evidence.setdefault(item.evidence, []).append(item)
    texts = []
    for evidence, items in by_evidence.items():
        left = probability(max(item.probability for item in items))
        each = "each " if len(items) > 1 else ""
        texts.append(f"{', '.join(item.factor for item in items)} ({each}{left} left): {evidence}")
    return [Points(tuple(texts))]


def _held(found: Finding) -> list[Part]:
    return [Points(tuple(map(held, found.held)))]


def _skipped(found: Finding) -> list[Part]:
    return [Points(tuple(f"{where}: {cut(why, SIGNATURE)}" for where, why in found.skipped))]


def _others(found: Finding) -> list[Part]:
    counts = found.other_signatures
    return [Points(tuple(f"in {counted(count, 'trial')}: {cut(text, SIGNATURE)}" for text, count in counts))]


def _effort(found: Finding) -> list[Part]:
    if not found.id:
        return []  # Nothing to compare: nothing was begun.
    took = f"{counted(found.trials, 'trial')}, {counted(found.builds, 'environment')} built, {lasting(found.seconds)}"
    where = f"bisection {found.id}; `bisect-env bisect log {found.id}` has every batch, `bisect-env show ID` a trial"
    lines = [batch_line(seen) for seen in found.observations]
    return [Words(f"{took}; {where}."), Verbatim(EVERY_BATCH, "\n".join(lines), long=True)]


def batch_line(seen: Observation, names: Sequence[str] = ()) -> str:
    """One batch on a line: its number, its stage, its environment, and what it came to; ``names`` of all factors."""
    mark = " (off-pin)" if seen.off_pin else ""
    return f"{seen.batch:4d}  {seen.stage:8}  {place(seen.stage, seen.point, names)}{mark}: {outcome(seen)}"


def _commit(source: str) -> str:
    """A commit as people write it, of ``git+https://...@SHA``; a version stays as it is."""
    return source.rpartition("@")[2].partition("#")[0][:12]


def _column(header: str, items: Sequence[Item], text: Callable[[Item], str]) -> Column:
    return Column(header, tuple(map(text, items)))
