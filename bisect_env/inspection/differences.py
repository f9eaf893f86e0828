"""How a module, a class or a function differs between two places."""

from __future__ import annotations

import difflib

from bisect_env.inspection.lookup import Lookup
from bisect_env.inspection.meanings import Class, Function, Value
from bisect_env.inspection.names import Located, locate
from bisect_env.inspection.parsed import lines_of
from bisect_env.inspection.records import Sources


def difference(before: Sources, after: Sources, dotted: str) -> str:
    """A unified diff of what a name stands for, decorators included; empty when the texts are the same.

    Where only one place has it, all of it was added or went; where none has, the diff is empty too: ask
    :func:`bisect_env.inspection.names.resolve` for what is missing. The headers name place, file and name; line
    numbers are those of the files.

    Raises:
        InfrastructureError: a module is there and cannot be read.
    """
    old, old_first, old_header = _text(before, dotted)
    new, new_first, new_header = _text(after, dotted)
    lines = difflib.unified_diff(old, new, old_header, new_header, lineterm="")
    return "\n".join(_shifted(line, old_first - 1, new_first - 1) for line in lines)


def _text(sources: Sources, dotted: str) -> tuple[list[str], int, str]:
    """The lines, the number of the first one, and a header."""
    lookup = Lookup(sources, dotted)
    place = locate(lookup, dotted)
    if not isinstance(place, Located):
        return [], 1, f"{sources.label}: no {dotted}"
    tree = lookup.parsed(place.found.module)
    header = f"{sources.label}: {place.found.path} {place.found.qualname}".rstrip()
    if tree is None:
        return [], 1, f"{sources.label}: {dotted} is compiled code"
    lines = lines_of(tree.source.text)
    first = place.meanings[0] if place.meanings else None
    if not isinstance(first, Function | Class | Value):
        return (
            (lines, 1, header)
            if not place.found.qualname
            else ([lines[place.found.line - 1]], place.found.line, header)
        )
    start = min([first.node.lineno, *(one.lineno for one in getattr(first.node, "decorator_list", ()))])
    return lines[start - 1 : first.node.end_lineno], start, header


def _shifted(line: str, old: int, new: int) -> str:
    """A hunk's header with the files' line numbers."""
    if not line.startswith("@@ -"):
        return line
    _, before, after, _ = line.split(" ")
    return f"@@ -{_moved(before[1:], old)} +{_moved(after[1:], new)} @@"


def _moved(span: str, by: int) -> str:
    first, comma, count = span.partition(",")
    return f"{int(first) + by}{comma}{count}"
