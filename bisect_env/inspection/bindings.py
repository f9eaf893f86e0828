"""Which names a body of statements binds, and to what: nothing is looked up yet."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from bisect_env.inspection.platforms import Conditions
from bisect_env.inspection.walking import Following, Walker


class Bound(StrEnum):
    """What a name is bound by."""

    FUNCTION = "function"
    CLASS = "class"
    IMPORT = "import"
    VALUE = "value"
    """An assignment whose right-hand side is known."""
    PARAMETER = "parameter"
    SELF = "self"
    """The first parameter of a method."""
    CLS = "cls"
    """The first parameter of a class method."""
    OTHER = "other"
    """A loop, an unpacking, ``with ... as``, ``except ... as``: what it holds cannot be told from the text."""


@dataclass(frozen=True, eq=False)
class Binding:
    """One binding of a name."""

    name: str
    bound: Bound
    node: ast.AST
    """The definition, the assigned expression, or the statement."""
    line: int
    module: str = ""
    """Of an import: the absolute name of the module."""
    attribute: str = ""
    """Of ``from module import attribute``."""
    weak: bool = False
    """A stand-in, used when there is no other: in an ``except``, under TYPE_CHECKING, in a branch for another platform,
    an overload, None."""
    annotation: ast.expr | None = None
    wraps: bool = False
    """``f = wrap(f)``, where f was defined before: what is wrapped counts more, as with a decorator."""


@dataclass(frozen=True, eq=False)
class Table:
    """All bindings of one body, in the order of the text."""

    names: Mapping[str, tuple[Binding, ...]]
    stars: tuple[str, ...] = ()
    """Absolute names of the modules of ``from module import *``, the stand-ins last."""
    outer: frozenset[str] = field(default_factory=frozenset)
    """Declared ``global`` or ``nonlocal``: bound elsewhere."""
    conditions: Conditions = field(default_factory=Conditions)
    """What the platform decides of its conditions."""

    def winners(self, name: str) -> tuple[Binding, ...]:
        """The bindings that count: the real ones, the last first; the stand-ins where there is nothing else."""
        all_of_it = self.names.get(name, ())
        real = tuple(one for one in all_of_it if not one.weak) or all_of_it
        last_first = real[::-1]
        return tuple(sorted(last_first, key=lambda one: one.wraps))


def absolute(module: str, package: bool, written: str | None, level: int) -> str:
    """The absolute name of the module in ``from ..written import x``; empty when it leads above the top."""
    if not level:
        return written or ""
    parts = module.split(".")
    kept = parts[: len(parts) - (level - 1 if package else level)]
    return ".".join([*kept, *([written] if written else [])]) if kept else ""


def last_name(node: ast.AST) -> str:
    """``wraps`` of ``functools.wraps(f)``, of ``functools.wraps`` and of ``wraps``; empty for anything else."""
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def has_decorator(node: ast.AST, *names: str) -> bool:
    """Whether a definition has a decorator whose last name is one of these."""
    return any(last_name(one) in names for one in getattr(node, "decorator_list", ()))


def parameters(arguments: ast.arguments) -> Iterator[ast.arg]:
    """All parameters, in the order of the text."""
    yield from arguments.posonlyargs
    yield from arguments.args
    if arguments.vararg:
        yield arguments.vararg
    yield from arguments.kwonlyargs
    if arguments.kwarg:
        yield arguments.kwarg


def table_of(
    body: Sequence[ast.AST],
    module: str,
    package: bool,
    arguments: ast.arguments | None = None,
    first: Bound | None = None,
) -> Table:
    """The bindings of a module's, a class's or a function's body.

    Args:
        body: statements (of a lambda: its expression).
        module: where it stands.
        package: whether that is the ``__init__`` of a package.
        arguments: of a function.
        first: what the first parameter is, for a method.
    """
    collector = _Collector(module, package)
    for number, argument in enumerate(parameters(arguments) if arguments else ()):
        bound = first if first and number == 0 else Bound.PARAMETER
        collector.add(argument.arg, bound, argument, annotation=argument.annotation)
    for statement in body:
        collector.visit(statement)
    names = {name: tuple(bindings) for name, bindings in collector.names.items()}
    stars = tuple(dict.fromkeys((*collector.stars, *collector.weak_stars)))
    return Table(names, stars, frozenset(collector.outer), collector.conditions)


def _typing_only(test: ast.expr) -> bool:
    return last_name(test) == "TYPE_CHECKING"


_DEFINED = {Bound.FUNCTION, Bound.CLASS, Bound.IMPORT}


class _Collector(Walker):
    """Walks a body, not the bodies of what is defined in it."""

    def __init__(self, module: str, package: bool) -> None:
        self.module, self.package = module, package
        self.names: dict[str, list[Binding]] = {}
        self.stars: list[str] = []
        self.weak_stars: list[str] = []
        self.outer: set[str] = set()
        self.weak = False
        self.conditions = Conditions()

    def add(
        self,
        name: str,
        bound: Bound,
        node: ast.AST,
        *,
        module: str = "",
        attribute: str = "",
        weak: bool = False,
        annotation: ast.expr | None = None,
        wraps: bool = False,
    ) -> None:
        line = getattr(node, "lineno", 1)
        binding = Binding(name, bound, node, line, module, attribute, weak or self.weak, annotation, wraps)
        self.names.setdefault(name, []).append(binding)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        if has_decorator(node, "setter", "deleter"):
            return  # the getter of that name stands before it
        self.add(node.name, Bound.FUNCTION, node, weak=has_decorator(node, "overload"))

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.add(node.name, Bound.CLASS, node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """A scope of its own."""

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            module = alias.name if alias.asname else name
            self.add(name, Bound.IMPORT, node, module=module)
            self.conditions.imported(name, module)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        source = absolute(self.module, self.package, node.module, node.level)
        if not source:
            return
        for alias in node.names:
            name = alias.asname or alias.name
            if name == "*":
                (self.weak_stars if self.weak else self.stars).append(source)
            else:
                self.add(name, Bound.IMPORT, node, module=source, attribute=alias.name)
                self.conditions.imported(name, f"{source}.{alias.name}")

    def visit_Assign(self, node: ast.Assign) -> Following:
        for target in node.targets:
            self._target(target, node.value)
        return (node.value,)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Following:
        if isinstance(node.target, ast.Name):
            value: ast.AST = node.value or node
            bound = Bound.VALUE if node.value else Bound.OTHER
            self.add(node.target.id, bound, value, weak=_empty(node.value), annotation=node.annotation)
        return (node.value,) if node.value else ()

    def visit_NamedExpr(self, node: ast.NamedExpr) -> Following:
        self._target(node.target, node.value)
        return (node.value,)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store):
            self.add(node.id, Bound.OTHER, node)

    def visit_MatchAs(self, node: ast.MatchAs) -> Following:
        if node.name:
            self.add(node.name, Bound.OTHER, node)
        return ast.iter_child_nodes(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> Following:
        return (node.value,)  # the name was bound before

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> None:
        self.outer.update(node.names)

    visit_Nonlocal = visit_Global

    def visit_If(self, node: ast.If) -> Following:
        taken = self.conditions.decides(node.test)
        self.visit(node.test)
        self._weakly(node.body, _typing_only(node.test) or taken is False)
        if taken:
            self._weakly(node.orelse, True)
            return ()
        return node.orelse

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self.add(node.name, Bound.OTHER, node, weak=True)
        self._weakly(node.body, True)

    def _weakly(self, body: Sequence[ast.stmt], weak: bool) -> None:
        before, self.weak = self.weak, self.weak or weak
        for statement in body:
            self.visit(statement)
        self.weak = before

    def _target(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            defined = any(one.bound in _DEFINED for one in self.names.get(target.id, ()))
            wraps = defined and any(isinstance(one, ast.Name) and one.id == target.id for one in ast.walk(value))
            self.add(target.id, Bound.VALUE, value, weak=_empty(value), wraps=wraps)
            self.conditions.assigned(target.id, value)
        elif isinstance(target, ast.Tuple | ast.List):
            values = value.elts if isinstance(value, ast.Tuple | ast.List) else []
            starred = any(isinstance(one, ast.Starred) for one in (*target.elts, *values))
            if len(values) == len(target.elts) and not starred:
                for part, of in zip(target.elts, values, strict=True):
                    self._target(part, of)
            else:
                for part in target.elts:
                    self.visit(part)
        elif not isinstance(target, ast.Attribute | ast.Subscript):
            self.visit(target)


def _empty(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and (value.value is None or value.value is ...))


def own_nodes(definition: ast.AST) -> Iterator[ast.AST]:
    """All nodes of a function's body but for those in definitions inside it."""
    waiting = list(getattr(definition, "body", ())) if not isinstance(definition, ast.Lambda) else [definition.body]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            waiting.extend(ast.iter_child_nodes(node))
