"""Columns to text: empty ones left out, and in a terminal the least needed ones dropped until it fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

NOTED = ("plain", "simple", "github", "pipe")
"""Formats read as they stand: columns that are empty or alike are left out, and notes are numbered below. The others
are read by programs or typeset: every column is there, and the notes stand in theirs."""
FITTED = ("plain", "simple")
"""Formats for a terminal, whose columns are dropped, least needed first, until the table fits."""


@dataclass(frozen=True)
class Column:
    """A column with the text of each of its cells."""

    header: str
    texts: tuple[str, ...]
    axis: bool = False
    """An axis of the matrix, which no table drops."""


def draw(columns: Sequence[Column], fmt: str) -> str:
    """The columns in a format of tabulate's."""
    from tabulate import tabulate

    body = list(zip(*(column.texts for column in columns), strict=True))
    if fmt == "simple" and columns:
        # tabulate widens each column by two characters over its header, which cost a table a column or two.
        heads = tuple(column.header for column in columns)
        rule = tuple("-" * max(map(len, (column.header, *column.texts))) for column in columns)
        return tabulate([heads, rule, *body], tablefmt="plain", disable_numparse=True)
    return tabulate(body, [column.header for column in columns], tablefmt=fmt, disable_numparse=True)


def fitted(columns: Sequence[Column], fmt: str, width: int, dropped: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """The columns that say something, fitted to ``width`` where the format is for a terminal.

    Args:
        columns: in their order.
        fmt: any format of tabulate's.
        width: characters a line.
        dropped: headers that may go, the least needed first.

    Returns:
        The table, and the headers of the columns that had to go.
    """
    kept = [column for column in columns if any(column.texts)]
    table, hidden = draw(kept, fmt), []
    for header in dropped if fmt in FITTED else ():
        if max(map(len, table.splitlines()), default=0) <= width:
            break
        fewer = [column for column in kept if column.axis or column.header != header]
        if len(fewer) < len(kept):
            kept, table = fewer, draw(fewer, fmt)
            hidden.append(header)
    return table, tuple(hidden)
