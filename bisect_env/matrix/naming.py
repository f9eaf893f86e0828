"""Cells' ids and tags: readable, and safe as names of files and of nox sessions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from bisect_env.matrix.expansion import Level
from bisect_env.matrix.vocabulary import WELL_KNOWN, Kind

LONGEST = 100
"""Characters of an id. File systems allow 255 for a name; nox hashes long paths of its own accord."""
_UNSAFE = re.compile(r"[^A-Za-z0-9.+_-]+")
_COMMIT = re.compile(r"[0-9a-f]{12,40}")


@dataclass(frozen=True)
class Part:
    """One column of a cell, as its id and its tags name it."""

    name: str
    kind: Kind
    level: Level


def identifiers(cells: Sequence[tuple[Sequence[Part], str]], name: str) -> list[str]:
    """One id for each cell, given as its parts and its key.

    Ids differ also after what nox does to a session's name to make a folder of it (everything but letters, digits and
    ``_`` becomes ``-``, repeated ones are joined, case is dropped): cells whose readable ids would collide have the
    beginning of their key appended. ``name`` stands for a cell without columns.
    """
    readable = [_readable(parts) or _safe(name) or "cell" for parts, _ in cells]
    folded = Counter(_folded(identifier) for identifier in readable)
    return [
        identifier if folded[_folded(identifier)] == 1 and len(identifier) <= LONGEST else _with_key(identifier, key)
        for identifier, (_, key) in zip(readable, cells, strict=True)
    ]


def tags(parts: Sequence[Part]) -> tuple[str, ...]:
    """Tags to select cells by: ``torch2.11``, ``cu130``, ``transformers5.6``, ``py3.12``, ``hot``, ``threads3``."""
    ambiguous = _ambiguous(parts)
    found: list[str] = []
    for part in parts:
        if part.kind is Kind.CONDITION:
            found.append(_condition(part, ambiguous, between="" if _is_number(part) else "-"))
        elif part.kind is Kind.VARIABLE:
            found.append(_safe(f"{part.name}-{part.level.text}"))
        elif part.level.value is None:
            continue
        elif part.kind is Kind.PYTHON:
            found.append(_safe(f"py{part.level.text}"))
        elif part.kind is Kind.CUDA:
            found.append(_safe(part.level.text))
        else:
            found.append(part.name + _minor(part.level))
            found.append(_variant_of(part))
    return tuple(dict.fromkeys(filter(None, found)))


def _readable(parts: Sequence[Part]) -> str:
    ambiguous = _ambiguous(parts)
    by_name = {part.name: part for part in parts}
    names: list[str] = []
    for part in parts:
        text = _short(part.level)
        if part.kind is Kind.CONDITION:
            names.append(_condition(part, ambiguous))
        elif part.kind is Kind.CUDA:
            # Said with torch, of which it is the variant.
            if "torch" not in by_name:
                names.append(_safe(text))
        elif part.name == "torch" and "cuda" in by_name and by_name["cuda"].level.value is not None:
            variant = f"+{by_name['cuda'].level.text}"
            names.append(_safe(f"torch-{text.removesuffix(variant)}{variant}"))
        else:
            names.append(_safe(f"{part.name}-{text}"))
    return "_".join(names)


def _ambiguous(parts: Sequence[Part]) -> set[str]:
    """Words that a condition's value cannot stand for alone: another condition's value, or a column's name."""
    words = Counter(part.level.text for part in parts if part.kind is Kind.CONDITION)
    return {word for word, count in words.items() if count > 1} | {*WELL_KNOWN, *(part.name for part in parts)}


def _condition(part: Part, ambiguous: set[str], between: str = "-") -> str:
    """A word stands for itself (``hot``); a number needs its name (``threads-3``)."""
    text = _short(part.level)
    if _is_number(part) or part.level.text in ambiguous:
        return _safe(f"{part.name}{between}{text}")
    return _safe(text)


def _is_number(part: Part) -> bool:
    return not isinstance(part.level.value, str) or part.level.text.replace(".", "").isdigit()


def _short(level: Level) -> str:
    """A level without what makes sources and folders long: the ref of a git URL, else the last name in the path."""
    text = level.text
    if "/" not in text:
        return text
    path, _, ref = text.partition("#")[0].rpartition("@")
    if path.startswith("git+") and "://" in path and "/" not in ref:
        return f"git-{ref[:12] if _COMMIT.fullmatch(ref) else ref}"
    return text.partition("#")[0].rstrip("/").rsplit("/", 1)[-1] or "root"


def _minor(level: Level) -> str:
    """``2.11`` of 2.11.0+cu130; a source is named as in the id."""
    found = re.match(r"v?(\d+\.\d+)", level.text)
    return found[1] if found else "-" + _safe(_short(level))


def _variant_of(part: Part) -> str:
    found = re.search(r"\+(cu\d+|cpu)$", part.level.text)
    return found[1] if found and part.name == "torch" else ""


def _safe(text: str) -> str:
    return _UNSAFE.sub("-", text).strip("-.")


def _folded(identifier: str) -> str:
    return re.sub(r"[^a-z0-9_]+", "-", identifier.lower()).strip("-")


def _with_key(identifier: str, key: str) -> str:
    return f"{identifier[: LONGEST - 9]}_{key[:8]}"
