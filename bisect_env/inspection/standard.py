"""What calls into the standard library return, as far as inspected code shows through them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from bisect_env.inspection import meanings as why
from bisect_env.inspection.meanings import Instance, Meaning, Outside, Scope, Unknown, unique

if TYPE_CHECKING:
    from bisect_env.inspection.lookup import Lookup

HANDS_OUT = frozenset(
    {"next", "getattr", "min", "max", "sum", "get", "pop", "popitem", "popleft", "setdefault", "result", "values"}
    | {"items", "copy", "deepcopy", "reduce", "enter_context", "send", "vars", "locals", "globals", "__import__"}
    | {"run", "submit", "ref", "proxy", "load", "loads"}
)
"""Functions of the standard library that return what was put in: their result is no standard object."""


def returned(lookup: Lookup, name: str, node: ast.Call, scope: Scope) -> tuple[Meaning, ...]:
    """What a call of the function of this name returns; seen through ``partial``, ``cast``, ``getattr`` and others."""
    short, arguments = name.rpartition(".")[2], node.args
    if short in {"partial", "partialmethod"} and arguments:
        return lookup.evaluate(arguments[0], scope)
    if short in {"cast", "getattr"} and len(arguments) > 1:
        if short == "cast":
            return lookup.evaluate(arguments[1], scope)
        if isinstance(arguments[1], ast.Constant) and isinstance(arguments[1].value, str):
            attribute = ast.Attribute(arguments[0], arguments[1].value, ast.Load())
            return lookup.evaluate(attribute, scope)
    if short == "type" and len(arguments) == 1:
        return unique(
            one.of if isinstance(one, Instance) else Unknown(why.RESULT) for one in lookup.evaluate(arguments[0], scope)
        )
    if short == "import_module" and arguments and isinstance(arguments[0], ast.Constant):
        written = str(arguments[0].value)
        return (lookup.module(written),) if not written.startswith(".") else (Unknown(why.RESULT),)
    return (Unknown(why.RESULT) if short in HANDS_OUT else Outside(f"{name}()"),)
