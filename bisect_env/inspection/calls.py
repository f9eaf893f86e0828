"""The calls in a function's text: those that can be followed, and why the others cannot."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from bisect_env.inspection import meanings as why
from bisect_env.inspection.bindings import last_name
from bisect_env.inspection.lookup import Lookup
from bisect_env.inspection.meanings import Class, Function, Instance, Meaning, Outside, Scope, Unknown
from bisect_env.inspection.records import Unresolved
from bisect_env.inspection.walking import Following, Walker, written

LONGEST = 80
"""Characters of a called expression that are kept."""

HANDED_ON = {
    "torch.nn.modules.module:Module._wrapped_call_impl": "forward",
    "torch.autograd.function:Function.apply": "forward",
}
"""Methods that call another one of the instance's own class, which their own text cannot tell, by name."""

_CONSTRUCTORS = ("__new__", "__init__", "__post_init__")
_PROPERTIES = ("property", "cached_property")


@dataclass(frozen=True)
class Edge:
    """A function that another one calls."""

    callee: Function
    line: int
    passed: bool = False
    """Handed over as an argument, not called by its name."""


@dataclass(frozen=True)
class Calls:
    """All calls in one function."""

    edges: tuple[Edge, ...]
    """One for each callee, its first line, in the order of the text."""
    unresolved: tuple[Unresolved, ...]


def calls_of(lookup: Lookup, function: Function) -> Calls:
    """The calls in a function, those of the functions and lambdas inside it included.

    Followed are names and attributes (:mod:`lookup`), constructors, ``__call__`` of known instances, decorators, the
    context managers of ``with``, properties of known instances, and functions handed over as arguments. Calls into the
    standard library are left out. Not seen are operators, iteration and attributes that Python turns into calls
    (``__add__``, ``__iter__``, ``__getattr__``), and what a subclass of a known instance's class does otherwise.
    """
    walker = _Walker(lookup, function)
    walker.read()
    return Calls(tuple(walker.edges.values()), tuple(dict.fromkeys(walker.unresolved)))


class _Walker(Walker):
    def __init__(self, lookup: Lookup, function: Function) -> None:
        self.lookup, self.function = lookup, function
        self.scope = lookup.scope_of(function)
        self.edges: dict[Function, Edge] = {}
        self.unresolved: list[Unresolved] = []

    def read(self) -> None:
        node, scope = self.function.node, self.scope
        self.scope = self.function.owner.scope if self.function.owner else Scope(scope.parsed)
        self._decorators(node)
        self.scope = scope
        for part in node.body if isinstance(node.body, list) else [node.body]:
            self.visit(part)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._decorators(node)
        self._inside(node, self.scope.inner(self.scope.parsed.table_of(node)))

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> Following:
        outer, self.scope = self.scope, self.scope.inner(self.scope.parsed.table_of(node))

        def leave() -> None:
            self.scope = outer

        return node.body, leave

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._decorators(node)
        outer = self.scope
        name = f"{self.function.qualname}.<locals>.{node.name}"
        owner = Class(self.function.module, name, node.lineno, node, outer)
        for part in node.body:
            if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
                self._decorators(part)
                table = outer.parsed.table_of(part, method=True)
                self._inside(part, Scope(outer.parsed, (table, *outer.tables), outer.root, owner))
            else:
                self.visit(part)

    def visit_Call(self, node: ast.Call) -> Following:
        following: list[ast.AST] = []
        self._follow(self.lookup.expanded(self.lookup.evaluate(node.func, self.scope)), node, node.func)
        for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
            argument = argument.value if isinstance(argument, ast.Starred) else argument
            if isinstance(argument, ast.Name | ast.Attribute):
                for one in self.lookup.expanded(self.lookup.evaluate(argument, self.scope)):
                    if isinstance(one, Function):
                        self._edge(one, node.lineno, passed=True)
            following.append(argument)
        # The called attribute itself is no property; what it is an attribute of may be one.
        return (*following, node.func.value if isinstance(node.func, ast.Attribute) else node.func)

    def visit_Attribute(self, node: ast.Attribute) -> Following:
        for of in self.lookup.evaluate(node.value, self.scope):
            for one in self.lookup.classes.member(of.of, node.attr) if isinstance(of, Instance) else ():
                if isinstance(one, Function) and _is_property(one.node):
                    self._edge(one, node.lineno)
        return (node.value,)

    def visit_With(self, node: ast.With | ast.AsyncWith) -> Following:
        for item in node.items:
            managers = self.lookup.expanded(self.lookup.evaluate(item.context_expr, self.scope))
            for one in managers:
                if isinstance(one, Instance):
                    self._methods(one.of, ("__enter__", "__exit__", "__aenter__", "__aexit__"), node.lineno)
                elif isinstance(one, Unknown) and not isinstance(item.context_expr, ast.Call):
                    self._miss(node.lineno, item.context_expr, one.why, "with ")
        return ast.iter_child_nodes(node)

    visit_AsyncWith = visit_With

    def _inside(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
        outer, self.scope = self.scope, scope
        for part in node.body:
            self.visit(part)
        self.scope = outer

    def _decorators(self, node: ast.AST) -> None:
        for decorator in getattr(node, "decorator_list", ()):
            meanings = self.lookup.expanded(self.lookup.evaluate(decorator, self.scope))
            if isinstance(decorator, ast.Call):
                self.visit(decorator)
                meanings = tuple(one for one in meanings if isinstance(one, Function | Instance))
            self._follow(meanings, decorator, decorator)

    def _follow(self, meanings: Iterable[Meaning], node: ast.expr, called: ast.expr) -> None:
        missing = ""
        for one in meanings:
            match one:
                case Function():
                    self._edge(one, node.lineno)
                    if one.name in HANDED_ON and isinstance(called, ast.Attribute):
                        self._handed_on(called.value, HANDED_ON[one.name], node.lineno)
                case Class():
                    if not self._methods(one, _CONSTRUCTORS, node.lineno):
                        missing = missing or self._foreign_base(one)
                case Instance():
                    if self._methods(one.of, ("__call__",), node.lineno):
                        if any(callee.name in HANDED_ON for callee in self.edges):
                            self._methods(one.of, ("forward",), node.lineno)
                    else:
                        missing = missing or self._foreign_base(one.of) or why.ATTRIBUTE
                case Outside():
                    pass
                case Unknown():
                    missing = missing or one.why
                case _:
                    missing = missing or why.RUNTIME
        if missing:
            self._miss(node.lineno, called, missing)

    def _handed_on(self, of: ast.expr, method: str, line: int) -> None:
        for one in self.lookup.expanded(self.lookup.evaluate(of, self.scope)):
            if isinstance(one, Class):
                self._methods(one, (method,), line)

    def _methods(self, owner: Class, names: Iterable[str], line: int) -> bool:
        found = [one for name in names for one in self.lookup.classes.member(owner, name) if isinstance(one, Function)]
        for one in found:
            self._edge(one, line)
        return bool(found)

    def _foreign_base(self, owner: Class) -> str:
        return next((one.why for one in self.lookup.classes.order(owner) if isinstance(one, Unknown)), "")

    def _edge(self, callee: Function, line: int, passed: bool = False) -> None:
        known = self.edges.get(callee)
        if callee != self.function and (known is None or (known.passed and not passed)):
            self.edges[callee] = Edge(callee, line, passed)

    def _miss(self, line: int, called: ast.expr, reason: str, before: str = "") -> None:
        text = before + " ".join(written(called).split())
        text = text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
        path = self.scope.parsed.source.path
        self.unresolved.append(Unresolved(self.function.name, path, line, text, reason))


def _is_property(node: ast.AST) -> bool:
    return any(last_name(one).endswith(_PROPERTIES) for one in getattr(node, "decorator_list", ()))
