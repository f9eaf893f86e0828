"""Parameters, literals and environment variables as they are written."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bisect_env.inspection import walking
from bisect_env.inspection.bindings import has_decorator, last_name
from bisect_env.inspection.meanings import FunctionNode

LONGEST = 200
"""Characters of a value that are kept."""


def signature(node: FunctionNode, bound: bool = False) -> str:
    """``(query: Tensor, *, scale: float | None = None) -> Tensor``: annotations and defaults as they are written.

    Args:
        node: a function, a method or a lambda.
        bound: leave the first parameter out, as callers of a method do.
    """
    given = node.args
    positional = [*given.posonlyargs, *given.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(given.defaults)) + list(given.defaults)
    parts = [_parameter(one, default) for one, default in zip(positional, defaults, strict=True)]
    if given.posonlyargs:
        parts.insert(len(given.posonlyargs), "/")
    parts = parts[1:] if bound and parts else parts
    if given.vararg:
        parts.append("*" + _parameter(given.vararg, None))
    elif given.kwonlyargs:
        parts.append("*")
    parts += [_parameter(one, default) for one, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    if given.kwarg:
        parts.append("**" + _parameter(given.kwarg, None))
    returns = None if isinstance(node, ast.Lambda) else node.returns
    return f"({', '.join(parts)})" + (f" -> {walking.written(returns)}" if returns else "")


def takes_self(node: FunctionNode) -> bool:
    """Whether callers of a method leave its first parameter out."""
    return not has_decorator(node, "staticmethod")


def fields(node: ast.ClassDef) -> str:
    """The signature of a class whose constructor is made from its annotated fields; empty for other classes."""
    made = has_decorator(node, "dataclass") or any(last_name(one) == "NamedTuple" for one in node.bases)
    if not made:
        return ""
    parts = []
    for one in node.body:
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            default = f" = {walking.written(one.value)}" if one.value else ""
            parts.append(f"{one.target.id}: {walking.written(one.annotation)}{default}")
    return f"({', '.join(parts)})"


def written(node: ast.expr) -> str:
    """An expression as one line, cut when it is long."""
    text = " ".join(walking.written(node).split())
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def is_switch(name: str, value: ast.expr) -> bool:
    """Whether a module-level value looks like a debug switch: an upper-case or private one that is True, False or None,
    or one that an environment variable sets.
    """
    flag = isinstance(value, ast.Constant) and (value.value is None or isinstance(value.value, bool))
    return (flag and (name.isupper() or name.startswith("_"))) or any(True for _ in environment_reads(value))


def environment_reads(tree: ast.AST) -> Iterator[tuple[str, str, int]]:
    """Environment variables that code reads by a literal name: name, how (as written), line."""
    for node in ast.walk(tree):
        name: ast.AST | None = None
        match node:
            case ast.Call(args=[first, *_]) if last_name(node) == "getenv":
                name = first
            case ast.Call(func=ast.Attribute(attr="get" | "setdefault" | "pop", value=of), args=[first, *_]):
                name = first if last_name(of) == "environ" else None
            case ast.Subscript(value=of, slice=key, ctx=ast.Load()) if last_name(of) == "environ":
                name = key
            case ast.Compare(left=left, ops=[ast.In() | ast.NotIn()], comparators=[of]) if last_name(of) == "environ":
                name = left
        if isinstance(name, ast.Constant) and isinstance(name.value, str) and isinstance(node, ast.expr):
            yield name.value, written(node), node.lineno


def _parameter(argument: ast.arg, default: ast.expr | None) -> str:
    text = argument.arg + (f": {walking.written(argument.annotation)}" if argument.annotation else "")
    if default is None:
        return text
    return text + (" = " if argument.annotation else "=") + walking.written(default)
