"""Columns of places: those side by side that say the same are one, and what all headings begin with stands once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from bisect_env.report.grid import Column


def by_place(labels: Sequence[str], rows: Sequence[Sequence[str]], alone: Sequence[str] = ()) -> list[Column]:
    """The columns of a table whose rows have a text for each place.

    Args:
        labels: of the places: ``torch 2.8.0``.
        rows: each with as many texts.
        alone: texts of which one makes a column stand by itself: ``changed`` twice in a row is not the same.
    """
    short = shortened(labels)
    columns = list(zip(short, zip(*rows, strict=True), strict=True)) if rows else []
    merged = []
    for (texts, _), same in groupby(columns, key=lambda each: (each[1], each[0] if {*alone} & {*each[1]} else "")):
        names = [name for name, _ in same]
        merged.append(Column(names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}", texts))
    return merged


def shortened(labels: Sequence[str]) -> list[str]:
    """The labels without the word that all of them begin with."""
    words = {label.partition(" ")[0] for label in labels}
    rest = [label.partition(" ")[2] for label in labels]
    return rest if len(words) == 1 and all(rest) and len(labels) > 1 else list(labels)


def listed(labels: Sequence[str], every: Sequence[str]) -> str:
    """These of all places in words: ``torch 2.8.0 to 2.10.0, 2.12.1``; empty where they are all."""
    if len(labels) == len(every):
        return ""
    short = dict(zip(every, shortened(every), strict=True))
    runs: list[list[str]] = []
    before = -2
    for label in labels:
        at = list(every).index(label)
        if at == before + 1:
            runs[-1].append(short[label])
        else:
            runs.append([short[label]])
        before = at
    said = ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(run) for run in runs)
    first = labels[0].removesuffix(short[labels[0]])
    return f"{first}{said}"
