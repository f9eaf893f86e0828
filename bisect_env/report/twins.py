"""Cells that differ in one key of their condition only: what a comparison of that key's levels is made of."""

from __future__ import annotations

from collections.abc import Sequence

from bisect_env.report.rows import Row

Group = tuple[Row, ...]


def groups(rows: Sequence[Row], key: str) -> tuple[Group, ...]:
    """Rows with the same environment, condition and variables but for ``key``; groups of one are left out.

    Groups and their rows are in the order of ``rows``. A row whose condition does not have the key is in none.
    """
    found: dict[object, list[Row]] = {}
    for row in rows:
        values = row.cell.condition.as_dict()
        if key in values:
            rest = tuple(pair for pair in row.cell.condition.values if pair[0] != key)
            found.setdefault((row.cell.request.key, rest, row.cell.variables), []).append(row)
    return tuple(tuple(group) for group in found.values() if len(group) > 1)


def level_of(row: Row, key: str) -> str:
    """The row's level of the key, as text."""
    return str(row.cell.condition.get(key, ""))
