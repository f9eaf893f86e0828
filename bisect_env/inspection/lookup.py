"""Names and attributes followed to what they stand for."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from bisect_env.inspection import meanings as why
from bisect_env.inspection import standard
from bisect_env.inspection.answers import Answers
from bisect_env.inspection.bindings import Binding, Bound, last_name, own_nodes
from bisect_env.inspection.classes import Classes
from bisect_env.inspection.meanings import (
    Class,
    Function,
    FunctionNode,
    Instance,
    Meaning,
    Module,
    Outside,
    Scope,
    Unknown,
    Value,
    unique,
)
from bisect_env.inspection.parsed import UNREADABLE, Parsed, parsed
from bisect_env.inspection.records import Held, Sources
from bisect_env.inspection.walking import operands

STANDARD = sys.stdlib_module_names | {"typing_extensions"}
"""Roots of modules that are neither followed nor missed."""

RETURNS = 4
"""Most functions inside each other whose results are looked for: ``f`` returns what ``g`` returns, and so on."""

_LITERALS = (
    *(ast.Constant, ast.JoinedStr, ast.List, ast.Tuple, ast.Dict, ast.Set),
    *(ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp, ast.Slice),
)

_LASTING = {why.COMPILED, why.ABSENT, why.UNPARSED, why.DYNAMIC}
"""Reasons that hold for the attributes of what is not known as well."""


class Lookup:
    """Looks names up in one place; what was found once is kept.

    What is asked about is never run. A name can stand for several things, such as a function defined in both branches
    of an ``if``: all of them are given, the one that counts most first. Nothing means that the lookup ran in a circle.
    """

    def __init__(self, sources: Sources, dotted: str = "") -> None:
        """``dotted`` is the name asked for: the standard library is followed only where that is in it."""
        self.sources = sources
        self._outside = frozenset() if dotted.partition(".")[0] in STANDARD else STANDARD
        self.hops: dict[tuple[str, str], tuple[str, str]] = {}
        """From a (module, name) to the one that it was imported from."""
        self._held: dict[str, Held] = {}
        self._answers = Answers()
        self.classes = Classes(self, self._answers)
        self._returns = 0
        self._evaluating = False

    def parsed(self, module: str) -> Parsed | None:
        """The module's tree; None without text."""
        return parsed(self.sources, module) if self.holds(module) is Held.SOURCE else None

    def holds(self, module: str) -> Held:
        """Whether there is such a module; those of the standard library count as absent."""
        if module not in self._held:
            outside = module.partition(".")[0] in self._outside
            self._held[module] = Held.ABSENT if outside else self.sources.holds(module)
        return self._held[module]

    def module(self, name: str) -> Meaning:
        """What ``import name`` gives."""
        held = self.holds(name)
        if held is Held.SOURCE:
            return Module(name)
        if name.partition(".")[0] in self._outside:
            return Outside(name)
        return Unknown(why.COMPILED if held is Held.EXTENSION or self._inside_extension(name) else why.ABSENT)

    def member(self, module: str, name: str) -> tuple[Meaning, ...]:
        """What a module's attribute stands for."""
        return self._answers.once((module, name), lambda: self._member(module, name))

    def scope_of(self, function: Function) -> Scope:
        """The scope in a function's body."""
        tree = self.parsed(function.module)
        assert tree is not None, f"{function.module} had a function and has no text"
        table = tree.table_of(function.node, method=function.owner is not None)
        return Scope(tree, (table,), function, function.owner)

    def attribute(self, of: Meaning, name: str) -> tuple[Meaning, ...]:
        """What an attribute stands for."""
        match of:
            case Module():
                return self.member(of.name, name)
            case Class():
                return self.classes.member(of, name) or self.classes.elsewhere(of, name)
            case Instance():
                found = self.classes.member(of.of, name) or self.classes.assigned(of.of, name)
                if all(isinstance(one, Unknown) for one in found):
                    found = self.classes.field(of.of, name) or found
                return found or self.classes.elsewhere(of.of, name)
            case Value():
                return unique(one for meaning in self.expanded((of,)) for one in self.attribute(meaning, name))
            case Outside():
                return (Outside(f"{of.name}.{name}"),)
            case Function():
                own = name.startswith(("__", "cache_")) or name in {"register", "dispatch"}
                return (Outside(f"function.{name}"),) if own else (Unknown(why.ATTRIBUTE),)
            case Unknown():
                return (of if of.why in _LASTING else Unknown(why.ATTRIBUTE),)

    def expanded(self, meanings: Iterable[Meaning]) -> tuple[Meaning, ...]:
        """The same with values replaced by what was assigned."""
        found: list[Meaning] = []
        seen: set[Value] = set()  # values can be assigned each other
        waiting = [*meanings]
        while waiting:
            one = waiting.pop(0)
            if not isinstance(one, Value):
                found.append(one)
            elif one not in seen:
                seen.add(one)
                inside = self._answers.once((one, "value"), partial(self.evaluate, one.node, one.scope))
                waiting = [*(inside or (Unknown(why.RESULT),)), *waiting]
        return unique(found)

    def result(self, function: Function) -> tuple[Meaning, ...]:
        """What a function returns, where that is an instance of a class, a class or a function."""
        if self._returns >= RETURNS:
            self._cut = True
            return (Unknown(why.RESULT),)
        self._returns += 1
        try:
            return self._answers.once((function, "result"), lambda: self._result(function))
        finally:
            self._returns -= 1

    def typed(self, annotation: ast.expr | None, scope: Scope) -> tuple[Meaning, ...]:
        """Instances of the classes with text that an annotation names; nothing for any other annotation."""
        match annotation:
            case ast.Constant(value=str(text)):
                try:
                    return self.typed(ast.parse(text, mode="eval").body, scope)
                except UNREADABLE:
                    return ()
            case ast.BinOp(op=ast.BitOr()):
                return unique(one for part in operands(annotation) for one in self.typed(part, scope))
            case ast.Subscript(slice=inside) if last_name(annotation.value) in {"Optional", "Union", "Annotated"}:
                parts = inside.elts if isinstance(inside, ast.Tuple) else [inside]
                return unique(one for part in parts for one in self.typed(part, scope))
            case ast.Subscript():
                return self.typed(annotation.value, scope)
            case ast.Name() | ast.Attribute():
                classes = (one for one in self.evaluate(annotation, scope) if isinstance(one, Class))
                return unique(Instance(one) for one in classes if not self.classes.is_protocol(one))
            case _:
                return ()

    def evaluate(self, node: ast.AST, scope: Scope) -> tuple[Meaning, ...]:
        """What an expression stands for; unknown for one that is nested too deeply to be followed."""
        if self._evaluating:
            return self._evaluate(node, scope)
        self._evaluating = True
        try:
            return self._evaluate(node, scope)
        except RecursionError:
            return (Unknown(why.RESULT),)
        finally:
            self._evaluating = False

    def _evaluate(self, node: ast.AST, scope: Scope) -> tuple[Meaning, ...]:
        match node:
            case ast.Name():
                return self._name(node.id, scope)
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr=name) if scope.owner:
                return self.classes.member(scope.owner, name, after=True) or self.classes.elsewhere(scope.owner, name)
            case ast.Attribute():
                return unique(one for of in self.evaluate(node.value, scope) for one in self.attribute(of, node.attr))
            case ast.Call():
                return self._called(node, scope)
            case ast.Subscript():
                of = self.evaluate(node.value, scope)
                return unique(one if isinstance(one, Class) else Unknown(why.SUBSCRIPT) for one in of)
            case ast.IfExp():
                taken = scope.parsed.table.conditions.decides(node.test)
                parts = [node.body] * (taken is not False) + [node.orelse] * (not taken)
                return unique(one for part in parts for one in self.evaluate(part, scope))
            case ast.BoolOp():
                return unique(one for value in node.values for one in self.evaluate(value, scope))
            case ast.NamedExpr() | ast.Await() | ast.Starred():
                return self.evaluate(node.value, scope)
            case ast.Lambda():
                return (scope.root,) if scope.root else (Unknown(why.RESULT),)
            case ast.Constant(value=None):
                return (Unknown(why.RUNTIME),)
            case _ if isinstance(node, _LITERALS):
                return (Outside("builtins"),)
            case _:
                return (Unknown(why.RESULT),)

    def _inside_extension(self, name: str) -> bool:
        outer = name.rpartition(".")[0]
        return bool(outer) and (self.holds(outer) is Held.EXTENSION or self._inside_extension(outer))

    def _member(self, module: str, name: str) -> tuple[Meaning, ...]:
        tree = self.parsed(module)
        if tree is None:
            of = self.module(module)
            return (Outside(f"{module}.{name}") if isinstance(of, Outside) else of,)
        winners = tree.table.winners(name)
        found = unique(one for each in winners for one in self.bound(each, Scope(tree), name))
        if found:
            # A real import of what is not there leaves the stand-in, as it does when Python runs it.
            others = [one for one in tree.table.names[name] if one.weak and one not in winners]
            if others and all(isinstance(one, Unknown) for one in found):
                found = unique((*(one for each in others for one in self.bound(each, Scope(tree), name)), *found))
            elif winners[0].bound is Bound.IMPORT:
                self.hops[module, name] = (winners[0].module, winners[0].attribute)
            return found
        if self.holds(f"{module}.{name}") is not Held.ABSENT:
            return (self.module(f"{module}.{name}"),)
        # Of many stars, those first whose module is named like what is asked for.
        for star in sorted(tree.table.stars, key=lambda one: not _alike(one, name)):
            found = self._through_star(star, name)
            if found:
                self.hops[module, name] = (star, name)
                return found
        for where, attribute in tree.lazy.get(name, ()):
            if self.holds(where) is not Held.ABSENT:
                found = self.member(where, attribute) if attribute else (self.module(where),)
                if any(not isinstance(one, Unknown) for one in found):
                    self.hops[module, name] = (where, attribute)
                    return found
        return (self._nothing(tree, name),)

    def _nothing(self, tree: Parsed, name: str) -> Meaning:
        if name.startswith("__") and name.endswith("__"):
            return Outside(f"module.{name}")
        if tree.error:
            return Unknown(why.UNPARSED)
        if any(isinstance(of := self.module(star), Unknown) and of.why == why.COMPILED for star in tree.table.stars):
            return Unknown(why.COMPILED)
        return Unknown(why.DYNAMIC if "__getattr__" in tree.table.names else why.ABSENT)

    def _through_star(self, star: str, name: str) -> tuple[Meaning, ...]:
        tree = self.parsed(star)
        if tree is None or (name.startswith("_") and name not in (tree.exported or ())):
            return ()
        # A list that is not literal all through says nothing about what is missing from it.
        if tree.exported and name not in tree.exported and name not in tree.table.names and not tree.table.stars:
            return ()
        if tree.exported and name not in tree.exported and name in tree.table.names:
            return ()
        found = self.member(star, name)
        return () if all(isinstance(one, Unknown | Outside) for one in found) else found

    def bound(self, binding: Binding, scope: Scope, qualname: str) -> tuple[Meaning, ...]:
        """What one binding of a module or a function stands for."""
        module = scope.parsed.name
        match binding.bound:
            case Bound.FUNCTION:
                assert isinstance(binding.node, FunctionNode)
                return (scope.root or Function(module, qualname, binding.line, binding.node),)
            case Bound.CLASS:
                assert isinstance(binding.node, ast.ClassDef)
                name = f"{scope.root.qualname}.<locals>.{qualname}" if scope.root else qualname
                return (Class(module, name, binding.line, binding.node, scope),)
            case Bound.IMPORT:
                if binding.attribute:
                    return self.member(binding.module, binding.attribute)
                return (self.module(binding.module),)
            case Bound.VALUE:
                assert isinstance(binding.node, ast.expr)
                if scope.tables:
                    node = binding.node
                    found = self._answers.once((id(node), "local"), lambda: self.evaluate(node, scope))
                    told = all(isinstance(one, Unknown) for one in found) and self._annotated(binding, scope)
                    return told or found
                return self.assigned(binding.node, binding.line, scope, qualname)
            case Bound.SELF if scope.owner:
                return (Instance(scope.owner),)
            case Bound.CLS if scope.owner:
                return (scope.owner,)
            case Bound.OTHER:
                return (Unknown(why.UNPACKED),)
            case _:
                return self._annotated(binding, scope) or (Unknown(why.PARAMETER),)

    def _annotated(self, binding: Binding, scope: Scope) -> tuple[Meaning, ...]:
        """As :meth:`typed`, outside of the function: in ``def f(types: types)`` the second one is no parameter."""
        return self.typed(binding.annotation, replace(scope, tables=scope.tables[1:]))

    def assigned(self, node: ast.expr, line: int, scope: Scope, qualname: str) -> tuple[Meaning, ...]:
        """A module's or a class's value: what it is another name for, or the value."""
        if isinstance(node, ast.Lambda):
            return (Function(scope.parsed.name, qualname, line, node),)
        if isinstance(node, ast.Name | ast.Attribute) or last_name(node) == "partial":
            found = self.evaluate(node, scope)
            if any(isinstance(one, Module | Function | Class | Value) for one in found):
                return found
        return (Value(scope.parsed.name, qualname, line, node, scope),)

    def _name(self, name: str, scope: Scope) -> tuple[Meaning, ...]:
        for number, table in enumerate(scope.tables):
            if name in table.names and name not in table.outer:
                at = Scope(scope.parsed, scope.tables[number:], scope.root, scope.owner)
                return unique(one for each in table.winners(name) for one in self.bound(each, at, name))
        if name not in scope.parsed.table.names and hasattr(builtins, name):
            return (Outside(f"builtins.{name}"),)
        return self.member(scope.parsed.name, name)

    def _result(self, function: Function) -> tuple[Meaning, ...]:
        scope, node = self.scope_of(function), function.node
        if isinstance(node, ast.Lambda):
            return self.evaluate(node.body, scope)
        returned = [one.value for one in own_nodes(node) if isinstance(one, ast.Return) and one.value]
        found = unique(one for value in returned for one in self.evaluate(value, scope))
        known = tuple(one for one in found if isinstance(one, Instance | Class | Function))
        generates = any(isinstance(one, ast.Yield | ast.YieldFrom) for one in own_nodes(node))
        return known or (not generates and self.typed(node.returns, scope)) or (Unknown(why.RESULT),)

    def _called(self, node: ast.Call, scope: Scope) -> tuple[Meaning, ...]:
        found: list[Meaning] = []
        for function in self.expanded(self.evaluate(node.func, scope)):
            match function:
                case Class():
                    found.append(Instance(function))
                case Function():
                    found.extend(self.result(function))
                case Instance():
                    for method in self.classes.member(function.of, "__call__"):
                        found.extend(self.result(method) if isinstance(method, Function) else (Unknown(why.RESULT),))
                case Outside():
                    found.extend(standard.returned(self, function.name, node, scope))
                case _:
                    found.append(Unknown(why.RESULT))
        # A function that was handed to one that wraps it is called when the result is.
        for argument in node.args:
            if isinstance(argument, ast.Name | ast.Attribute):
                found.extend(one for one in self.evaluate(argument, scope) if isinstance(one, Function))
        return unique(found)


def _alike(module: str, name: str) -> bool:
    return name.lower().startswith(module.rpartition(".")[2].partition("_")[0].lower() or "?") or module.endswith(name)
