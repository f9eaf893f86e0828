"""TOML documents as they are handed over: parsed, or refused with the place of the fault; values asked for by type."""

from __future__ import annotations

import re
import tomllib
from typing import Any, TypeVar

from bisect_env.errors import BadInput
from bisect_env.snapshots.pasted import is_chatter
from bisect_env.snapshots.pieces import shortened

Value = TypeVar("Value")
Table = dict[str, Any]
"""A table of a TOML document, whose values are of any type until they are asked for."""


def parse(text: str, origin: str, form: str) -> Table:
    """The document. Lines of a terminal before its first key are left out.

    Raises BadInput with the place where the text stops being TOML: a file that was cut off says its last line.
    """
    wanted = f"the whole of a {form}, as the tool wrote it"
    try:
        return tomllib.loads(_without_chatter(text))
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"\(at (.*)\)$", str(error))
        words = shortened(str(error).partition(" (at ")[0])
        where = place[1] if place is not None else ""
        if where == "end of document":
            where = f"line {text.rstrip().count(chr(10)) + 1}, the last"
        raise BadInput(origin, where, f"no TOML ({words}): it is cut off or damaged there", wanted) from None
    except (ValueError, RecursionError):
        raise BadInput(origin, "", f"TOML with numbers or nesting that no {form} has", wanted) from None


def _without_chatter(text: str) -> str:
    lines = text.split("\n")
    for at, line in enumerate(lines):
        if line.strip() and not is_chatter(line):
            break
        lines[at] = ""
    return "\n".join(lines)


def value(table: Table, key: str, kind: type[Value], origin: str, place: str) -> Value | None:
    """The value of a key; None where there is none. Raises BadInput: it is of another type."""
    found = table.get(key)
    if found is None:
        return None
    if not isinstance(found, kind) or (kind is int and isinstance(found, bool)):
        names = {str: "a text", int: "a number", list: "a list", dict: "a table"}
        raise BadInput(origin, f"{place}{key}", shortened(repr(found), 60), names.get(kind, kind.__name__))
    return found


def tables(table: Table, key: str, origin: str, place: str) -> list[Table]:
    """The tables in the list under a key, empty where there is none. Raises BadInput: it is something else."""
    return _list_of(dict, "a table", table, key, origin, place)


def texts(table: Table, key: str, origin: str, place: str) -> list[str]:
    """The texts in the list under a key, empty where there is none. Raises BadInput: it is something else."""
    return _list_of(str, "a text", table, key, origin, place)


def _list_of(kind: type, wanted: str, table: Table, key: str, origin: str, place: str) -> list[Any]:
    found: list[Any] = value(table, key, list, origin, place) or []
    for at, each in enumerate(found):
        if not isinstance(each, kind):
            raise BadInput(origin, f"{place}{key}[{at}]", shortened(repr(each), 60), wanted)
    return found
