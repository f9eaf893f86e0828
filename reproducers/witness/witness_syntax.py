"""Questions about a syntax tree: which names a module defines, which are a function's own, what a test asks. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from witness_targets import Module


def definitions(tree: ast.Module, module: Module) -> Iterator[tuple[str, tuple[str, str]]]:
    """The module-level names that a pattern fits: state, and ``flag``, ``thread-local``, ``other`` or ``function``."""
    for node in tree.body:
        names: Sequence[ast.expr] = ()
        value: ast.expr | None = None
        if isinstance(node, ast.Assign):
            names, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign):
            names, value = [node.target], node.value
        for target in names:
            for state, pattern in module.flags:
                if isinstance(target, ast.Name) and pattern.fullmatch(target.id):
                    yield target.id, (state, _kind(value))


def _kind(value: ast.expr | None) -> str:
    if value is None or isinstance(value, ast.Constant):
        return "flag"
    if isinstance(value, ast.Call) and last_part(value.func) == "local":
        return "thread-local"
    return "other"


def last_part(node: ast.expr) -> str:
    """The last part of a dotted name; empty for anything else."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def is_text(node: ast.stmt) -> bool:
    """Whether a statement is a text alone: a docstring, where it is the first."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def own_names(node: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Names that are the function's own."""
    arguments = node.args
    every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
    bound = {argument.arg for argument in every if argument}
    declared: set[str] = set()
    waiting: list[ast.AST] = list(node.body)
    while waiting:
        part = waiting.pop()
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            bound.add(part.name)
            continue
        if isinstance(part, ast.Lambda):
            continue
        if isinstance(part, ast.Global):
            declared.update(part.names)
        elif isinstance(part, ast.Name) and isinstance(part.ctx, (ast.Store, ast.Del)):
            bound.add(part.id)
        waiting += ast.iter_child_nodes(part)
    return bound - declared


def asks(test: ast.expr, names: Sequence[str], way: bool = True) -> bool | None:
    """Whether the test is about one of the calls: True when it holds if the call is true, False when if it is false."""
    if isinstance(test, ast.Call) and last_part(test.func) in names:
        return way
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return asks(test.operand, names, not way)
    if isinstance(test, ast.BoolOp):
        for value in test.values:
            found = asks(value, names, way)
            if found is not None:
                return found
    return None
