"""``__all__``, and names that a module hands out only when they are asked for, as far as they stand there literally."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

from bisect_env.inspection.bindings import Bound, Table, absolute, last_name, own_nodes, table_of
from bisect_env.inspection.walking import operands


def exported(tree: ast.Module) -> tuple[tuple[str, ...] | None, bool]:
    """``__all__`` with its literal additions (``+=``, ``append``, ``extend``), None without; whether it is all."""
    names: list[str] | None = None
    whole = True
    for node in own_nodes(tree):
        value: ast.expr | None = None
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and any(
            _is(target, "__all__") for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        ):
            value = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is(node.func.value, "__all__"):
            value = node.args[0] if node.args else None
        if value is not None:
            names = [*(names or []), *_strings(value)]
            whole = whole and _literal(value)
    return None if names is None else tuple(dict.fromkeys(names)), whole


def _literal(value: ast.expr) -> bool:
    """Whether a value is strings that are written out, and nothing but them."""
    if isinstance(value, ast.List | ast.Tuple | ast.Set):
        return all(map(_literal, value.elts))
    if isinstance(value, ast.BinOp):
        return all(map(_literal, operands(value)))
    return (isinstance(value, ast.Constant) and isinstance(value.value, str)) or _is(value, "__all__")


def lazy_names(tree: ast.Module, module: str, package: bool, table: Table) -> Mapping[str, tuple[tuple[str, str], ...]]:
    """Names of a module's ``__getattr__`` or of a lazy module object: candidates of (absolute module, attribute).

    Understood are dictionaries ``{"submodule": ["Name", ...]}`` (transformers' ``_import_structure``, ``lazy_loader``),
    ``{"Name": "module"}`` or ``{"Name": "module:attribute"}``, ``{"Name": ("module", "attribute")}``, and imports
    inside ``__getattr__``.
    """
    found: dict[str, list[tuple[str, str]]] = {}

    def add(name: str, where: str, attribute: str) -> None:
        level = len(where) - len(where.lstrip("."))
        inside = absolute(module, package, where[level:] or None, level or 1)
        for candidate in (inside, where) if not level else (inside,):
            found.setdefault(name, []).append((candidate, attribute))

    getter = next((one.node for one in table.winners("__getattr__") if one.bound is Bound.FUNCTION), None)
    if isinstance(getter, ast.FunctionDef):
        for name, bindings in table_of(getter.body, module, package).names.items():
            for one in bindings:
                if one.bound is Bound.IMPORT and one.attribute:
                    found.setdefault(name, []).append((one.module, one.attribute))
    if getter is not None or any(_makes_lazy(node) for node in own_nodes(tree)):
        for key, value in _items((*own_nodes(tree), *(ast.walk(getter) if getter else ()))):
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                where, _, attribute = value.value.partition(":")
                add(key, where, attribute or key)
            elif isinstance(value, ast.List | ast.Tuple):
                names = _strings(value)
                if isinstance(value, ast.Tuple) and len(names) == 2:
                    add(key, names[0], names[1])
                for name in names:
                    add(name, key, name)
    return {name: tuple(dict.fromkeys(candidates)) for name, candidates in found.items()}


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _strings(node: ast.AST) -> list[str]:
    return [one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)]


def _makes_lazy(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ("lazy" in last_name(node).lower() or last_name(node) == "attach")


def _items(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, ast.expr]]:
    """Literal keys and values of dictionaries, ``d["key"] = value`` and ``d["key"].extend(value)``."""
    for node in nodes:
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield key.value, value
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            yield from _one(node.targets[0], node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            if node.func.attr == "extend" and isinstance(node.func.value, ast.Subscript):
                yield from _one(node.func.value, node.args[0])
            elif node.func.attr == "append" and isinstance(node.func.value, ast.Subscript):
                yield from _one(node.func.value, ast.List([node.args[0]]))


def _one(target: ast.Subscript, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target.slice, ast.Constant) and isinstance(target.slice.value, str):
        yield target.slice.value, value
