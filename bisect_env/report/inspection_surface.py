"""What a name offers, and how that changed from place to place, for a report of an inspection."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import reduce

from bisect_env.inspection.inspected import Inspection
from bisect_env.inspection.records import Change, Entry, Surface
from bisect_env.report.grid import Column
from bisect_env.report.inspection_columns import by_place
from bisect_env.report.pieces import Grid, Part, Points, Section, Words
from bisect_env.words import counted

SWITCH = "debug switch"
STEPS = ("appeared", "changed", "went")
OPENING, CLOSING = "([{", ")]}"
OVERLOAD = "; overload "
"""What stands before each overload that a signature has besides its own."""


def offered(inspection: Inspection) -> list[Section]:
    """The surface of one place as a list, of several as a table of what changed."""
    surfaces = [place.surface for place in inspection.places if place.surface is not None]
    if not surfaces:
        return []
    if len(inspection.places) == 1:
        return [_alone(surfaces[0], inspection.asked.match)]
    return [_table(inspection), _steps(inspection)]


def _alone(surface: Surface, match: str | None) -> Section:
    parts: list[Part] = []
    if surface.signature:
        parts.append(Words(f"Signature: {surface.signature}"))
    if surface.entries:
        parts.append(Points(tuple(map(_entry, surface.entries))))
    elif match is not None:
        parts.append(Words(f"No name in it matches {match!r}."))
    return Section(f"Surface in {surface.label}", tuple(parts))


def _entry(entry: Entry) -> str:
    sign = entry.signature
    said = f"{entry.name}{sign}" if sign.startswith("(") else f"{entry.name} = {sign}" if sign else entry.name
    marks = [
        entry.kind,
        *([SWITCH] if entry.switch else []),
        *([f"of {entry.origin}"] if entry.origin else []),
        *([f"line {entry.line}"] if entry.line else []),
    ]
    return f"{said}  [{', '.join(marks)}]"


def _table(inspection: Inspection) -> Section:
    """A row a name: there (``yes``), changed since the column before, or not there."""
    every = inspection.asked.match is not None
    labels = [place.label for place in inspection.places]
    rows = [change for change in inspection.changes if every or any(change.steps)]
    same = len(inspection.changes) - len(rows)
    texts = [[_cell(change, at) for at in range(len(labels))] for change in rows]
    names = Column("name", tuple(change.name for change in rows))
    parts: list[Part] = [Grid((names, *by_place(labels, texts, STEPS)))] if rows else []
    if same:
        others = "other " if rows else ""
        parts.append(Words(f"{counted(same, f'{others}name')} the same in all {len(labels)} places."))
    elif not rows:
        parts.append(Words("No name to compare."))
    return Section("Surface from place to place", tuple(parts))


def _cell(change: Change, at: int) -> str:
    step = change.steps[at - 1] if at else ""
    return step or ("-" if change.signatures[at] is None else "yes")


def _steps(inspection: Inspection) -> Section:
    labels = [place.label for place in inspection.places]
    lines = [line for change in inspection.changes for line in _changed(change, labels)]
    return Section("What changed", (Points(tuple(lines)),))


def _changed(change: Change, labels: list[str]) -> Iterator[str]:
    for at, step in enumerate(change.steps):
        before, after = change.signatures[at], change.signatures[at + 1]
        if step == "appeared":
            yield (
                f"{change.name} appeared in {labels[at + 1]}: {after}"
                if after
                else (f"{change.name} appeared in {labels[at + 1]}")
            )
        elif step == "went":
            yield f"{change.name} went with {labels[at + 1]}"
        elif step == "changed":
            yield f"{change.name} changed in {labels[at + 1]}: {differing(before or '', after or '')}"


def differing(before: str, after: str) -> str:
    """What of a signature is otherwise: parameters that came, went or are written in another way."""
    (before, *had), (after, *has) = before.split(OVERLOAD), after.split(OVERLOAD)
    ours, theirs = pieces(before), pieces(after)
    if not ours or not theirs:
        return f"{before or 'nothing'} became {after or 'nothing'}"
    said = [f"with {theirs[name]}" for name in theirs if name not in ours]
    said += [f"without {ours[name]}" for name in ours if name not in theirs]
    both = [name for name in ours if name in theirs]
    meant, later = pieces(plainly(before)), pieces(plainly(after))
    otherwise = [name for name in both if ours[name] != theirs[name]]
    said += [f"{ours[name]} became {theirs[name]}" for name in otherwise if meant.get(name) != later.get(name)]
    if any(meant.get(name) == later.get(name) for name in otherwise):
        said.append("some types only written in another way" if said else "types only written in another way")
    if both != [name for name in theirs if name in ours]:
        said.append("another order")
    said += _overloads(had, has)
    return "; ".join(said) or f"{before} became {after}"


def _overloads(had: list[str], has: list[str]) -> list[str]:
    """How many came and went: written out, they would hide what else changed."""
    numbers = {"with": sum(one not in had for one in has), "without": sum(one not in has for one in had)}
    said = [f"{word} {counted(number, 'overload')}" for word, number in numbers.items() if number]
    if said:
        return [f"{' and '.join(said)} (all in --json)"]
    return ["overloads in another order"] if had != has else []


def plainly(signature: str) -> str:
    """The signature with ``Optional[X]`` and ``Union[X, Y]`` as ``X | None`` and ``X | Y``; as it is, if it is none."""
    try:
        tree = ast.parse(f"def f{signature}: ...")
    except SyntaxError:
        return signature
    return ast.unparse(_Plain().visit(tree)).removeprefix("def f").partition(":\n")[0]


class _Plain(ast.NodeTransformer):
    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        name = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
        if name not in ("Optional", "Union"):
            return node
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if name == "Optional":
            parts = [*parts, ast.Constant(None)]
        return reduce(lambda one, other: ast.BinOp(one, ast.BitOr(), other), parts)


def pieces(signature: str) -> dict[str, str]:
    """The parameters of a signature, and what it returns, by name; empty for what is no signature."""
    if not signature.startswith("("):
        return {}
    parts, depth, quote, start = [], 0, "", 1
    for at, letter in enumerate(signature):
        if quote:
            quote = "" if letter == quote and signature[at - 1] != "\\" else quote
            continue
        if letter in "'\"":
            quote = letter
        elif letter in OPENING:
            depth += 1
        elif letter in CLOSING:
            depth -= 1
        if (letter == "," and depth == 1) or (letter in CLOSING and depth == 0):
            parts.append(signature[start:at].strip())
            start = at + 1
            if depth == 0:
                break
    found = {part.split(":")[0].split("=")[0].strip(): part for part in parts if part}
    rest = signature[start:].strip()
    return found | ({"->": rest} if rest else {})
