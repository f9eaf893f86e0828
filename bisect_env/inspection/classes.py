"""What the attributes of classes and of their instances stand for."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from bisect_env.inspection import meanings as why
from bisect_env.inspection.answers import Answers
from bisect_env.inspection.bindings import Binding, Bound, Table, own_nodes
from bisect_env.inspection.meanings import Class, Function, Meaning, Outside, Scope, Unknown, unique

if TYPE_CHECKING:
    from bisect_env.inspection.lookup import Lookup

_PLAIN = {"builtins.object", "abc.ABC", "typing.Generic", "typing.Protocol", "typing_extensions.Protocol"}
"""Bases that add no attributes of their own."""


class Classes:
    """The part of a lookup that knows of classes; the values of their attributes are the lookup's again."""

    def __init__(self, lookup: Lookup, answers: Answers) -> None:
        self._lookup, self._answers = lookup, answers
        self._orders: dict[Class, tuple[Meaning, ...]] = {}
        self._stores: dict[Class, Mapping[str, Sequence[tuple[ast.expr, ast.FunctionDef]]]] = {}

    def member(self, owner: Class, name: str, after: bool = False) -> tuple[Meaning, ...]:
        """What a class's attribute stands for, through its bases; ``after``: through its bases only (``super()``)."""
        return self._answers.once((owner, name, after), lambda: self._member(owner, name, after))

    def order(self, owner: Class) -> tuple[Meaning, ...]:
        """The class and its bases in the order in which attributes are looked up; what is no class stands for itself.

        A depth-first walk that keeps the last of what comes twice: Python's order but for rare cross-wise bases.
        """
        if owner not in self._orders:
            self._orders[owner] = (owner,)  # for a class that is its own base
            try:
                chain = self._above(owner)
            except RecursionError:
                del self._orders[owner]  # Of whoever asked from too deep inside; the next one may not.
                raise
            self._orders[owner] = (
                owner,
                *reversed(tuple(dict.fromkeys(one for one in reversed(chain) if one != owner))),
            )
        return self._orders[owner]

    def _above(self, owner: Class) -> list[Meaning]:
        """The bases of a class and theirs, as a walk comes across them."""
        chain: list[Meaning] = []
        for base in owner.node.bases:
            base = base.value if isinstance(base, ast.Subscript) else base
            for meaning in self._lookup.expanded(self._lookup.evaluate(base, owner.scope))[:1]:
                if isinstance(meaning, Class):
                    chain.extend(self.order(meaning))
                else:
                    chain.append(meaning if isinstance(meaning, Outside | Unknown) else Unknown(why.RESULT))
        return chain

    def _member(self, owner: Class, name: str, after: bool) -> tuple[Meaning, ...]:
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
            return self.member(cls, node.id)
        if binding.bound is Bound.VALUE and isinstance(node, ast.expr):
            return self._lookup.assigned(node, binding.line, cls.scope, qualname)
        return self._lookup.bound(binding, cls.scope, qualname)

    def elsewhere(self, owner: Class, name: str) -> tuple[Meaning, ...]:
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

    def assigned(self, owner: Class, name: str) -> tuple[Meaning, ...]:
        """What methods assign to ``self.name``, through the bases."""
        return self._answers.once((owner, name, "stored"), lambda: self._find_stored(owner, name))

    def _find_stored(self, owner: Class, name: str) -> tuple[Meaning, ...]:
        found: list[Meaning] = []
        for cls in self.order(owner):
            for value, method in self.stored(cls).get(name, ()) if isinstance(cls, Class) else ():
                assert isinstance(cls, Class)
                qualname = f"{cls.qualname}.{method.name}"
                function = cls.scope.root or Function(cls.module, qualname, method.lineno, method, cls)
                table = cls.scope.parsed.table_of(method, method=True)
                scope = Scope(cls.scope.parsed, (table, *cls.scope.tables), function, cls)
                found.extend(self._lookup.evaluate(value, scope))
        known = [one for one in found if one != Unknown(why.RUNTIME)]
        return unique(known or found)

    def field(self, owner: Class, name: str) -> tuple[Meaning, ...]:
        """What the annotation of a class's field names."""
        for cls in self.order(owner):
            for one in self._body(cls).names.get(name, ()) if isinstance(cls, Class) else ():
                if isinstance(cls, Class) and (found := self._lookup.typed(one.annotation, cls.scope)):
                    return found
        return ()

    def is_protocol(self, cls: Class) -> bool:
        """Whether only its shape counts: an instance is one of some other class."""
        return any(isinstance(one, Outside) and one.name.endswith(".Protocol") for one in self.order(cls))


def _stores(method: ast.FunctionDef) -> Iterable[tuple[str, ast.expr]]:
    """Attributes of its first parameter that a method assigns, with what (None where only a type is written)."""
    first = method.args.args[0].arg
    for node in own_nodes(method):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        for target in targets:
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == first:
                yield target.attr, value or ast.copy_location(ast.Constant(None), node)
