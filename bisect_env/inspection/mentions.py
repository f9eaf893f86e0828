"""The places in a module's text where a module-level name is stored or read."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bisect_env.inspection.bindings import Bound, Table, last_name
from bisect_env.inspection.lookup import Lookup
from bisect_env.inspection.meanings import Class, Function, Module, Scope, Value
from bisect_env.inspection.parsed import Parsed
from bisect_env.inspection.records import Scope as Shared
from bisect_env.inspection.walking import Following, Walker

_CHANGES: Mapping[Shared, Collection[str]] = {
    Shared.PROCESS: (
        ["add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "setdefault", "update"]
    ),
    Shared.CONTEXT: ("set", "reset"),
}
"""Methods that change what a name holds."""

_STORING = {"setattr", "delattr", "object", "patch"}
"""Functions that store what their first arguments name; ``object`` is mock's."""


@dataclass(frozen=True)
class State:
    """The name that is looked for."""

    module: str
    name: str
    shared: Shared


@dataclass(frozen=True)
class Mention:
    """A line where it is stored or read."""

    qualname: str
    """Of the function or class around it; empty at the top level."""
    line: int
    store: bool
    through: str = ""
    """The accessor that is called."""


def accessors(tree: Parsed, state: State) -> Mapping[str, bool]:
    """Functions of the defining module that do nothing but store it (True) or return it (False)."""
    found = {}
    for node in tree.tree.body:
        if isinstance(node, ast.FunctionDef):
            outer = tree.table_of(node).outer
            body = [one for one in node.body if not isinstance(one, ast.Global | ast.Pass) and not _docstring(one)]
            if body and all(_only_stores(one, state, outer) for one in body):
                found[node.name] = True
            elif len(body) == 1 and isinstance(body[0], ast.Return) and _only_reads(body[0].value, state):
                found[node.name] = False
    return found


def mentions(lookup: Lookup, tree: Parsed, state: State, helpers: Mapping[str, bool]) -> Iterator[Mention]:
    """All stores and reads in one module, each line and kind once."""
    walker = _Walker(lookup, tree, state, helpers)
    walker.visit(tree.tree)
    yield from dict.fromkeys(walker.found)


def _docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _names(node: ast.AST | None, state: State) -> bool:
    return isinstance(node, ast.Name) and node.id == state.name


def _only_stores(node: ast.stmt, state: State, outer: Collection[str]) -> bool:
    targets: Sequence[ast.expr] = ()
    match node:
        case ast.Assign() | ast.Delete():
            targets = node.targets
        case ast.AugAssign() | ast.AnnAssign():
            targets = [node.target]
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=of, attr=attr))):
            return _names(of, state) and attr in _CHANGES.get(state.shared, ())
        case ast.Expr(value=ast.Call(func=ast.Name(id="setattr" | "delattr"), args=[of, *_])):
            return _names(of, state)
    stored = [
        (_names(one, state) and state.name in outer)
        or (isinstance(one, ast.Attribute | ast.Subscript) and _names(one.value, state))
        for one in targets
    ]
    return bool(stored) and all(stored)


def _only_reads(node: ast.expr | None, state: State) -> bool:
    match node:
        case ast.Attribute() | ast.Subscript():
            return _names(node.value, state)
        case ast.Call(func=ast.Name(id="getattr"), args=[of, *_]):
            return _names(of, state)
        case ast.Call(func=ast.Attribute(value=of, attr="get")):
            return _names(of, state)
        case _:
            return _names(node, state)


class _Walker(Walker):
    def __init__(self, lookup: Lookup, tree: Parsed, state: State, helpers: Mapping[str, bool]) -> None:
        self.lookup, self.tree, self.state, self.helpers = lookup, tree, state, helpers
        self.at_home = tree.name == state.module
        self.qualname = ""
        self.tables: tuple[Table, ...] = ()
        self.body: Table | None = None
        """Of the class whose body is read; its names are not seen in its methods."""
        self.found: list[Mention] = []

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for outside in (*node.decorator_list, *node.args.defaults, *(one for one in node.args.kw_defaults if one)):
            self.visit(outside)
        before = self.qualname, self.tables, self.body
        self.qualname = self._inside(node.name)
        self.tables, self.body = (self.tree.table_of(node), *self.tables), None
        for part in node.body:
            self.visit(part)
        self.qualname, self.tables, self.body = before

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> Following:
        before = self.tables
        self.tables = (self.tree.table_of(node), *self.tables)

        def leave() -> None:
            self.tables = before

        return node.body, leave

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for outside in (*node.decorator_list, *node.bases):
            self.visit(outside)
        before = self.qualname, self.body
        self.qualname, self.body = self._inside(node.name), self.tree.table_of(node)
        for part in node.body:
            self.visit(part)
        self.qualname, self.body = before

    def visit_Name(self, node: ast.Name) -> None:
        if self._is_it(node):
            self._add(node, not isinstance(node.ctx, ast.Load))

    def visit_Attribute(self, node: ast.Attribute) -> Following:
        if self._is_it(node) or self._is_it(node.value):
            self._add(node, not isinstance(node.ctx, ast.Load))
            return ()
        return (node.value,)

    def visit_Subscript(self, node: ast.Subscript) -> Following:
        by_name = self.at_home and last_name(node.value) == "globals" and _literal(node.slice) == self.state.name
        if by_name or self._is_it(node.value):
            self._add(node, not isinstance(node.ctx, ast.Load))
            return (node.slice,)
        return ast.iter_child_nodes(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> Following:
        return node.value, node.target

    def visit_Call(self, node: ast.Call) -> Following:
        following = []
        called, first = last_name(node), node.args[0] if node.args else None
        rest = node.args[1:]
        if called in self.helpers and self._calls(node.func, called):
            self._add(node, self.helpers[called], called)
        method = node.func if isinstance(node.func, ast.Attribute) else None
        if method and method.attr in _CHANGES.get(self.state.shared, ()) and self._is_it(method.value):
            self._add(node, True)
        else:
            following.append(node.func)
        if first is not None:
            named = bool(rest) and _literal(rest[0]) == self.state.name and self._is_home(first)
            if named or _literal(first) == f"{self.state.module}.{self.state.name}":
                self._add(node, called in _STORING)
            elif called in {"setattr", "delattr"} and self._is_it(first):
                self._add(node, True)
            else:
                following.append(first)
        return (*following, *rest, *node.keywords)

    def _inside(self, name: str) -> str:
        if not self.qualname:
            return name
        return f"{self.qualname}.{name}" if self.body is not None else f"{self.qualname}.<locals>.{name}"

    def _add(self, node: ast.expr, store: bool, through: str = "") -> None:
        self.found.append(Mention(self.qualname, node.lineno, store, through))

    def _scope(self) -> Scope:
        return Scope(self.tree, (self.body, *self.tables) if self.body else self.tables)

    def _is_it(self, node: ast.expr) -> bool:
        """Whether an expression is the name; of a copy in another module, whether it holds the same object."""
        if isinstance(node, ast.Attribute):
            return node.attr == self.state.name and self._is_home(node.value)
        if not isinstance(node, ast.Name):
            return False
        local = self._local(node.id)
        if self.at_home:
            return node.id == self.state.name and local is None
        # Assigning to an imported name makes another one here.
        if not isinstance(node.ctx, ast.Load):
            return False
        for one in (local or self.tree.table).names.get(node.id, ()):
            if one.bound is Bound.IMPORT and one.attribute:
                if (one.module, one.attribute) == (self.state.module, self.state.name):
                    return True
                if one.attribute == self.state.name and self._means(node, self.state.name):
                    return True
        return False

    def _local(self, name: str) -> Table | None:
        """The table of the function or class around here that binds it."""
        tables = (self.body, *self.tables) if self.body else self.tables
        return next((one for one in tables if name in one.names and name not in one.outer), None)

    def _is_home(self, node: ast.expr) -> bool:
        """Whether an expression is the defining module."""
        if self._dotted(node) == self.state.module:
            return True
        if isinstance(node, ast.Subscript) and last_name(node.value) == "modules":
            return _literal(node.slice) == self.state.module
        return Module(self.state.module) in self.lookup.evaluate(node, self._scope())

    def _calls(self, node: ast.expr, helper: str) -> bool:
        if isinstance(node, ast.Attribute) and self._is_home(node.value):
            return True
        return self._means(node, helper)

    def _means(self, node: ast.expr, name: str) -> bool:
        found = self.lookup.evaluate(node, self._scope())
        known = [one for one in found if isinstance(one, Function | Class | Value)]
        return any((one.module, one.qualname) == (self.state.module, name) for one in known)

    def _dotted(self, node: ast.expr) -> str:
        """The module that an expression names by imports alone: nothing has to be read for that."""
        attributes = []
        while isinstance(node, ast.Attribute):
            attributes.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        for one in (self._local(node.id) or self.tree.table).names.get(node.id, ()):
            if one.bound is Bound.IMPORT:
                named = [one.module, one.attribute] if one.attribute else [one.module]
                return ".".join([*named, *reversed(attributes)])
        return ""


def _literal(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
