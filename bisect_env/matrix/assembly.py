"""Combinations of levels to cells: requests, conditions, variables, columns, ids, and the reference. Pure."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bisect_env.matrix import naming
from bisect_env.matrix.cells import Cell, Condition, EnvironmentRequest, Scalar
from bisect_env.matrix.expansion import Axis, Combination, Combined, Level
from bisect_env.matrix.naming import Part
from bisect_env.matrix.problems import Unfit
from bisect_env.matrix.vocabulary import Kind, Vocabulary

_VARIANT_OF_TORCH = re.compile(r"(?P<pin>torch==.*)\+(?P<variant>cu\d+|cpu)")


@dataclass(frozen=True)
class Common:
    """What every cell starts from."""

    request: EnvironmentRequest
    condition: Mapping[str, Scalar]
    """Every key of the condition with its default or its one value."""
    variables: Mapping[str, str]
    name: str
    """Of the matrix; names a cell without columns."""


@dataclass(frozen=True)
class Assembled:
    """The cells with the names of the table's columns."""

    cells: tuple[Cell, ...]
    columns: tuple[str, ...]


def assemble(combined: Sequence[Combined], axes: Sequence[Axis], words: Vocabulary, common: Common) -> Assembled:
    """The cells of all combinations, in their order.

    Raises:
        Unfit: a combination contradicts itself.
    """
    drafts = [_draft(combination.levels, words, common) for combination in combined]
    columns = _columns(combined, axes, words, drafts)
    parts = [
        _parts(combination.levels, draft, columns, words) for combination, draft in zip(combined, drafts, strict=True)
    ]
    ids = naming.identifiers([(part, draft.key) for part, draft in zip(parts, drafts, strict=True)], common.name)
    cells = tuple(
        dataclasses.replace(
            draft, id=identifier, levels=tuple((part.name, part.level.text) for part in row), tags=naming.tags(row)
        )
        for draft, identifier, row in zip(drafts, ids, parts, strict=True)
    )
    return Assembled(cells, columns)


def duplicates(cells: Sequence[Cell]) -> tuple[int, int] | None:
    """Positions of the first two cells with the same content, or None."""
    seen: dict[str, int] = {}
    for at, cell in enumerate(cells):
        if cell.key in seen:
            return seen[cell.key], at
        seen[cell.key] = at
    return None


def reference_levels(
    wanted: Combination, combined: Sequence[Combined], cells: Sequence[Cell]
) -> tuple[tuple[str, str], ...]:
    """The reference's levels as the cells spell them.

    Raises:
        Unfit: they do not mark exactly one cell under every condition.
    """
    marked: dict[str, list[Cell]] = {cell.condition_key: [] for cell in cells}
    for combination, cell in zip(combined, cells, strict=True):
        levels = combination.levels
        if all(level.same(levels.get(name, _of_condition(name, cell))) for name, level in wanted.items()):
            marked[cell.condition_key].append(cell)
    right = "levels that mark one cell under every condition"
    for key, found in marked.items():
        if len(found) != 1:
            under = _condition_words(next(cell for cell in cells if cell.condition_key == key), cells)
            which = ", ".join(cell.id for cell in found[:5]) + (", ..." if len(found) > 5 else "")
            what = f"{len(found)} cells ({which})" if found else "no cell"
            raise Unfit(f"the reference marks {what}{under}", right)
    texts = dict(next(iter(marked.values()))[0].levels)
    return tuple((name, texts[name]) for name in wanted if name in texts)


def _draft(levels: Combination, words: Vocabulary, common: Common) -> Cell:
    """The cell without its id, columns and tags."""
    pins: list[str] = []
    cuda: str | None = None
    python: str | None = None
    condition, variables = dict(common.condition), dict(common.variables)
    for name, level in levels.items():
        kind = words.kind(name)
        if kind is Kind.CONDITION and level.value is not None:
            condition[name] = level.value
        elif kind is Kind.VARIABLE:
            variables.pop(name, None)
            if level.value is not None:
                variables[name] = str(level.value)
        elif level.value is not None:
            if kind is Kind.CUDA:
                cuda = str(level.value)
            elif kind is Kind.PYTHON:
                python = str(level.value)
            else:
                pins.append(str(level.value))
    pins, cuda = _split_variant(pins, cuda)
    request = dataclasses.replace(
        common.request,
        # Sorted: an axis or a requirement that moved in the file must not make another environment.
        requirements=tuple(sorted({*pins, *common.request.requirements})),
        cuda=cuda,
        python=python,
    )
    return Cell("", (), request, Condition.of(condition), tuple(sorted(variables.items())))


def _split_variant(pins: Sequence[str], cuda: str | None) -> tuple[list[str], str | None]:
    """``torch==2.11.0+cu130`` asks for what torch 2.11.0 with cuda cu130 asks for, and is made the same request."""
    split: list[str] = []
    for pin in pins:
        found = _VARIANT_OF_TORCH.fullmatch(pin)
        if found is None:
            split.append(pin)
            continue
        if cuda not in (None, found["variant"]):
            wanted = "torch without its local version beside cuda, or torch with it and no cuda"
            raise Unfit(f"a cell with {pin} and cuda {cuda}", wanted)
        cuda = found["variant"]
        split.append(found["pin"])
    return split, cuda


def _columns(
    combined: Sequence[Combined], axes: Sequence[Axis], words: Vocabulary, drafts: Sequence[Cell]
) -> tuple[str, ...]:
    """Axes as written, then conditions that differ between cells, then what only ``include`` entries name."""
    columns = [axis.name for axis in axes if not axis.condition]
    keys = [axis.name for axis in axes if axis.condition]
    added = [name for combination in combined for name in combination.levels if name not in (*columns, *keys)]
    keys += [name for name in added if words.kind(name) is Kind.CONDITION]
    columns += [key for key in keys if len({draft.condition.get(key, "") for draft in drafts}) > 1]
    columns += [name for name in added if words.kind(name) is not Kind.CONDITION]
    return tuple(dict.fromkeys(columns))


def _parts(
    levels: Combination,
    draft: Cell,
    columns: Sequence[str],
    words: Vocabulary,
) -> list[Part]:
    parts: list[Part] = []
    for name in columns:
        kind = words.kind(name)
        level = levels.get(name) or (_of_condition(name, draft) if kind is Kind.CONDITION else None)
        if level is not None:
            parts.append(Part(name, kind, level))
    return parts


def _of_condition(name: str, cell: Cell) -> Level | None:
    value = cell.condition.as_dict().get(name)
    return None if value is None else Level(str(value), repr(value), value)


def _condition_words(cell: Cell, cells: Sequence[Cell]) -> str:
    """`` under pattern=hot``: what tells this cell's condition from the others'."""
    differing = [
        f"{key}={value}"
        for key, value in (*cell.condition.values, *cell.variables)
        if any(dict((*other.condition.values, *other.variables)).get(key) != value for other in cells)
    ]
    return f" under {', '.join(differing)}" if differing else ""
