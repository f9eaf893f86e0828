"""Names and attributes followed to what they stand for."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from bisect_env.inspection import meanings as why
from bisect_env.inspection.bindings import Binding, Bound, Table, last_name, own_nodes
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
)
from bisect_env.inspection.parsed import Parsed, parsed
from bisect_env.inspection.records import Held, Sources

STANDARD = sys.stdlib_module_names | {"typing_extensions"}
"""Roots of modules that are neither followed nor missed."""

HANDS_OUT = frozenset(
    {"next", "getattr", "min", "max", "sum", "get", "pop", "popitem", "popleft", "setdefault", "result", "values"}
    | {"items", "copy", "deepcopy", "reduce", "enter_context", "send", "vars", "locals", "globals", "__import__"}
    | {"run", "submit", "ref", "proxy", "load", "loads"}
)
"""Functions of the standard library that return what was put in: their result is no standard object."""


DEEPEST = 40
"""Most lookups inside each other: longer chains are given up as unknown, before Python's own limit."""

RETURNS = 4
"""Most functions inside each other whose results are looked for: ``f`` returns what ``g`` returns, and so on."""

PATIENCE = 300
"""Lookups for one question after which what a circle cut short is kept as it is. Functions that return each other's
results make circles in circles: exact answers would take time exponential in their number."""

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
        """``dotted`` is the name asked for: the standard library is followed only where that is one of it."""
        self.sources = sources
        self._outside = STANDARD - {dotted.partition(".")[0]}
        self.hops: dict[tuple[str, str], tuple[str, str]] = {}
        """From a (module, name) to the one that it was imported from."""
        self._held: dict[str, Held] = {}
        self._kept: dict[object, tuple[Meaning, ...]] = {}
        self._orders: dict[Class, tuple[Meaning, ...]] = {}
        self._stores: dict[Class, Mapping[str, Sequence[tuple[ast.expr, ast.FunctionDef]]]] = {}
        self._busy: set[object] = set()
        self._cut = False
        self._steps = 0
        self._returns = 0

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
        return self._once((module, name), lambda: self._member(module, name))

    def class_member(self, owner: Class, name: str, after: bool = False) -> tuple[Meaning, ...]:
        """What a class's attribute stands for, through its bases; ``after``: through its bases only (``super()``)."""
        return self._once((owner, name, after), lambda: self._class_member(owner, name, after))

    def order(self, owner: Class) -> tuple[Meaning, ...]:
        """The class and its bases in the order in which attributes are looked up; what is no class stands for itself.

        A depth-first walk that keeps the last of what comes twice: Python's order but for rare cross-wise bases.
        """
        if owner not in self._orders:
            self._orders[owner] = (owner,)  # for a class that is its own base
            chain: list[Meaning] = []
            for base in owner.node.bases:
                base = base.value if isinstance(base, ast.Subscript) else base
                for meaning in self.expanded(self.evaluate(base, owner.scope))[:1]:
                    if isinstance(meaning, Class):
                        chain.extend(self.order(meaning))
                    else:
                        chain.append(meaning if isinstance(meaning, Outside | Unknown) else Unknown(why.RESULT))
            self._orders[owner] = (
                owner,
                *reversed(tuple(dict.fromkeys(one for one in reversed(chain) if one != owner))),
            )
        return self._orders[owner]

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
                return self.class_member(of, name) or self._of_bases(of, name)
            case Instance():
                found = self.class_member(of.of, name) or self._stored(of.of, name)
                if all(isinstance(one, Unknown) for one in found):
                    found = self._field(of.of, name) or found
                return found or self._of_bases(of.of, name)
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
                inside = self._once((one, "value"), partial(self.evaluate, one.node, one.scope))
                waiting = [*(inside or (Unknown(why.RESULT),)), *waiting]
        return unique(found)

    def result(self, function: Function) -> tuple[Meaning, ...]:
        """What a function returns, where that is an instance of a class, a class or a function."""
        if self._returns >= RETURNS:
            self._cut = True
            return (Unknown(why.RESULT),)
        self._returns += 1
        try:
            return self._once((function, "result"), lambda: self._result(function))
        finally:
            self._returns -= 1

    def typed(self, annotation: ast.expr | None, scope: Scope) -> tuple[Meaning, ...]:
        """Instances of the classes with text that an annotation names; nothing for any other annotation."""
        match annotation:
            case ast.Constant(value=str(text)):
                try:
                    return self.typed(ast.parse(text, mode="eval").body, scope)
                except SyntaxError:
                    return ()
            case ast.BinOp(op=ast.BitOr()):
                return unique((*self.typed(annotation.left, scope), *self.typed(annotation.right, scope)))
            case ast.Subscript(slice=inside) if last_name(annotation.value) in {"Optional", "Union", "Annotated"}:
                parts = inside.elts if isinstance(inside, ast.Tuple) else [inside]
                return unique(one for part in parts for one in self.typed(part, scope))
            case ast.Subscript():
                return self.typed(annotation.value, scope)
            case ast.Name() | ast.Attribute():
                classes = (one for one in self.evaluate(annotation, scope) if isinstance(one, Class))
                return unique(Instance(one) for one in classes if not self._is_protocol(one))
            case _:
                return ()

    def evaluate(self, node: ast.AST, scope: Scope) -> tuple[Meaning, ...]:
        """What an expression stands for."""
        match node:
            case ast.Name():
                return self._name(node.id, scope)
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr=name) if scope.owner:
                return self.class_member(scope.owner, name, after=True) or self._of_bases(scope.owner, name)
            case ast.Attribute():
                return unique(one for of in self.evaluate(node.value, scope) for one in self.attribute(of, node.attr))
            case ast.Call():
                return self._called(node, scope)
            case ast.Subscript():
                of = self.evaluate(node.value, scope)
                return unique(one if isinstance(one, Class) else Unknown(why.SUBSCRIPT) for one in of)
            case ast.IfExp():
                return unique((*self.evaluate(node.body, scope), *self.evaluate(node.orelse, scope)))
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

    def _once(self, key: object, find: Callable[[], tuple[Meaning, ...]]) -> tuple[Meaning, ...]:
        if key in self._kept:
            return self._kept[key]
        if key in self._busy:
            self._cut = True
            return ()
        if len(self._busy) > DEEPEST:
            self._cut = True
            return (Unknown(why.RESULT),)
        before, self._cut = self._cut, False
        self._steps = self._steps + 1 if self._busy else 0
        self._busy.add(key)
        try:
            found = find()
        finally:
            self._busy.discard(key)
        # What a circle cut short holds only for who asked in the middle of it.
        if not self._cut or not self._busy or self._steps > PATIENCE:
            self._kept[key] = found
        self._cut = bool(self._busy) and (self._cut or before)
        return found

    def _inside_extension(self, name: str) -> bool:
        outer = name.rpartition(".")[0]
        return bool(outer) and (self.holds(outer) is Held.EXTENSION or self._inside_extension(outer))

    def _member(self, module: str, name: str) -> tuple[Meaning, ...]:
        tree = self.parsed(module)
        if tree is None:
            of = self.module(module)
            return (Outside(f"{module}.{name}") if isinstance(of, Outside) else of,)
        winners = tree.table.winners(name)
        found = unique(one for each in winners for one in self._bound(each, Scope(tree), name))
        if found:
            # A real import of what is not there leaves the stand-in, as it does when Python runs it.
            others = [one for one in tree.table.names[name] if one.weak and one not in winners]
            if others and all(isinstance(one, Unknown) for one in found):
                found = unique((*(one for each in others for one in self._bound(each, Scope(tree), name)), *found))
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

    def _bound(self, binding: Binding, scope: Scope, qualname: str) -> tuple[Meaning, ...]:
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
                    found = self._once((id(node), "local"), lambda: self.evaluate(node, scope))
                    told = all(isinstance(one, Unknown) for one in found) and self._annotated(binding, scope)
                    return told or found
                return self._assigned(binding.node, binding.line, scope, qualname)
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

    def _assigned(self, node: ast.expr, line: int, scope: Scope, qualname: str) -> tuple[Meaning, ...]:
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
                return unique(one for each in table.winners(name) for one in self._bound(each, at, name))
        if name not in scope.parsed.table.names and hasattr(builtins, name):
            return (Outside(f"builtins.{name}"),)
        return self.member(scope.parsed.name, name)

    def _class_member(self, owner: Class, name: str, after: bool) -> tuple[Meaning, ...]:
        for cls in self.order(owner)[1 if after else 0 :]:
            if isinstance(cls, Class):
                table = self._body(cls)
                bindings = [one for one in table.winners(name) if one.bound is not Bound.OTHER]
                found = unique(one for each in bindings for one in self._in_class(cls, table, each))
                if found:
                    return found
        return ()

    def _body(self, cls: Class) -> Table:
        return cls.scope.parsed.table_of(cls.node)

    def _in_class(self, cls: Class, table: Table, binding: Binding) -> tuple[Meaning, ...]:
        node, qualname = binding.node, f"{cls.qualname}.{binding.name}"
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return (cls.scope.root or Function(cls.module, qualname, binding.line, node, cls),)
        if isinstance(node, ast.ClassDef):
            return (Class(cls.module, qualname, binding.line, node, cls.scope),)
        if isinstance(node, ast.Name) and node.id in table.names and node.id != binding.name:
            return self.class_member(cls, node.id)
        if binding.bound is Bound.VALUE and isinstance(node, ast.expr):
            return self._assigned(node, binding.line, cls.scope, qualname)
        return self._bound(binding, cls.scope, qualname)

    def _of_bases(self, owner: Class, name: str) -> tuple[Meaning, ...]:
        """For a name that no class with text has: of a base that is compiled, absent or standard, or unknown."""
        others = [one for one in self.order(owner) if not isinstance(one, Class)]
        for one in others:
            if isinstance(one, Unknown):
                return (one,)
        if name.startswith("__") or any(isinstance(one, Outside) and one.name not in _PLAIN for one in others):
            return (Outside(f"object.{name}"),)
        return (Unknown(why.ATTRIBUTE),)

    def stored(self, cls: Class) -> Mapping[str, Sequence[tuple[ast.expr, ast.FunctionDef]]]:
        """What a class's own methods assign to attributes of ``self``: the expressions, and the methods."""
        if cls not in self._stores:
            found: dict[str, list[tuple[ast.expr, ast.FunctionDef]]] = {}
            for method in cls.node.body:
                if isinstance(method, ast.FunctionDef) and method.args.args:
                    for name, value in _stores(method):
                        found.setdefault(name, []).append((value, method))
            self._stores[cls] = found
        return self._stores[cls]

    def _stored(self, owner: Class, name: str) -> tuple[Meaning, ...]:
        """What methods assign to ``self.name``."""
        return self._once((owner, name, "stored"), lambda: self._find_stored(owner, name))

    def _find_stored(self, owner: Class, name: str) -> tuple[Meaning, ...]:
        found: list[Meaning] = []
        for cls in self.order(owner):
            for value, method in self.stored(cls).get(name, ()) if isinstance(cls, Class) else ():
                assert isinstance(cls, Class)
                qualname = f"{cls.qualname}.{method.name}"
                function = cls.scope.root or Function(cls.module, qualname, method.lineno, method, cls)
                table = cls.scope.parsed.table_of(method, method=True)
                scope = Scope(cls.scope.parsed, (table, *cls.scope.tables), function, cls)
                found.extend(self.evaluate(value, scope))
        known = [one for one in found if one != Unknown(why.RUNTIME)]
        return unique(known or found)

    def _field(self, owner: Class, name: str) -> tuple[Meaning, ...]:
        """What the annotation of a class's field names."""
        for cls in self.order(owner):
            for one in self._body(cls).names.get(name, ()) if isinstance(cls, Class) else ():
                if isinstance(cls, Class) and (found := self.typed(one.annotation, cls.scope)):
                    return found
        return ()

    def _is_protocol(self, cls: Class) -> bool:
        return any(isinstance(one, Outside) and one.name.endswith(".Protocol") for one in self.order(cls))

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
                    for method in self.class_member(function.of, "__call__"):
                        found.extend(self.result(method) if isinstance(method, Function) else (Unknown(why.RESULT),))
                case Outside():
                    found.extend(self._standard(function.name, node, scope))
                case _:
                    found.append(Unknown(why.RESULT))
        # A function that was handed to one that wraps it is called when the result is.
        for argument in node.args:
            if isinstance(argument, ast.Name | ast.Attribute):
                found.extend(one for one in self.evaluate(argument, scope) if isinstance(one, Function))
        return unique(found)

    def _standard(self, name: str, node: ast.Call, scope: Scope) -> tuple[Meaning, ...]:
        """What a call into the standard library returns."""
        short, arguments = name.rpartition(".")[2], node.args
        if short in {"partial", "partialmethod"} and arguments:
            return self.evaluate(arguments[0], scope)
        if short in {"cast", "getattr"} and len(arguments) > 1:
            if short == "cast":
                return self.evaluate(arguments[1], scope)
            if isinstance(arguments[1], ast.Constant) and isinstance(arguments[1].value, str):
                attribute = ast.Attribute(arguments[0], arguments[1].value, ast.Load())
                return self.evaluate(attribute, scope)
        if short == "type" and len(arguments) == 1:
            return unique(
                one.of if isinstance(one, Instance) else Unknown(why.RESULT)
                for one in self.evaluate(arguments[0], scope)
            )
        if short == "import_module" and arguments and isinstance(arguments[0], ast.Constant):
            written = str(arguments[0].value)
            return (self.module(written),) if not written.startswith(".") else (Unknown(why.RESULT),)
        return (Unknown(why.RESULT) if short in HANDS_OUT else Outside(f"{name}()"),)


_PLAIN = {"builtins.object", "abc.ABC", "typing.Generic", "typing.Protocol", "typing_extensions.Protocol"}
"""Bases that add no attributes of their own."""


def unique(meanings: Iterable[Meaning]) -> tuple[Meaning, ...]:
    """Each once, in order."""
    return tuple(dict.fromkeys(meanings))


def _alike(module: str, name: str) -> bool:
    return name.lower().startswith(module.rpartition(".")[2].partition("_")[0].lower() or "?") or module.endswith(name)


def _stores(method: ast.FunctionDef) -> Iterable[tuple[str, ast.expr]]:
    """Attributes of its first parameter that a method assigns, with what (None where only a type is written)."""
    first = method.args.args[0].arg
    for node in own_nodes(method):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        for target in targets:
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == first:
                yield target.attr, value or ast.copy_location(ast.Constant(None), node)
