"""What a module, a class or a function offers."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from bisect_env.errors import BadInput
from bisect_env.inspection import walking
from bisect_env.inspection.bindings import Binding, Bound, Table, has_decorator
from bisect_env.inspection.lookup import Lookup
from bisect_env.inspection.meanings import Class, Function, Meaning, Module, Outside, Unknown, Value
from bisect_env.inspection.names import Located, locate, members
from bisect_env.inspection.parsed import Parsed
from bisect_env.inspection.records import Entry, Sources, Surface
from bisect_env.inspection.signatures import environment_reads, fields, is_switch, signature, takes_self, written


def surface(sources: Sources, dotted: str, match: str | None = None) -> Surface:
    """The surface of a name.

    Of a module: its public names (``__all__``; without one, what it defines that has no underscore, and of a package
    what it imports and its modules) and its debug switches; of a class: its own methods and fields; of a function: its
    signature. Environment variables that the module reads are entries as well, named ``$NAME``.

    Args:
        sources: where the modules are read.
        dotted: the name.
        match: a regular expression, whatever the case of letters: all names that it is found in and only those,
            private, imported and (of a class) inherited ones included; of a function, the names of its module.

    Raises:
        BadInput: ``match`` is no regular expression.
        InfrastructureError: a module is there and cannot be read.
    """
    try:
        wanted = re.compile(match, re.IGNORECASE) if match is not None else None
    except re.error as problem:
        raise BadInput(
            "match", "", f"{match!r}: {problem}", "a regular expression; a backslash makes any character plain"
        ) from problem
    lookup = Lookup(sources, dotted)
    place = locate(lookup, dotted)
    if not isinstance(place, Located):
        return Surface(sources.label, place)
    first = place.meanings[0] if place.meanings else None
    entries: tuple[Entry, ...] = ()
    if isinstance(first, Class):
        entries = _of_class(lookup, first, wanted)
    elif isinstance(first, Module):
        entries = _of_module(lookup, first.name, wanted)
    elif wanted is not None:
        entries = _of_module(lookup, place.found.module, wanted)
    return Surface(sources.label, place.found, entries, _signature(lookup, first) if first else "")


def _of_module(lookup: Lookup, module: str, wanted: re.Pattern[str] | None) -> tuple[Entry, ...]:
    tree = lookup.parsed(module)
    if tree is None:
        return ()
    entries = []
    for name in members(lookup, Module(module)):
        public = _public(tree, name)
        binding = next(iter(tree.table.winners(name)), None)
        value = binding.node if binding and binding.bound is Bound.VALUE else None
        switch = isinstance(value, ast.expr) and is_switch(name, value)
        if wanted.search(name) if wanted else public or switch:
            entries.append(_entry(lookup, tree, name, binding, public, switch))
    entries.extend(
        Entry(f"${name}", "value", how, line, False, True)
        for name, how, line in _once(environment_reads(tree.tree))
        if wanted is None or wanted.search(name)
    )
    return tuple(entries)


def _once(reads: Iterable[tuple[str, str, int]]) -> Iterable[tuple[str, str, int]]:
    """The first read of each variable, by line."""
    found: dict[str, tuple[str, str, int]] = {}
    for one in sorted(reads, key=lambda one: one[2]):
        found.setdefault(one[0], one)
    return found.values()


def _public(tree: Parsed, name: str) -> bool:
    if tree.exported is not None:
        return name in tree.exported
    imported = all(one.bound is Bound.IMPORT for one in tree.table.names.get(name, ()))
    return not name.startswith("_") and (tree.source.package or not imported)


def _entry(lookup: Lookup, tree: Parsed, name: str, binding: Binding | None, public: bool, switch: bool) -> Entry:
    found = lookup.member(tree.name, name)
    meaning = found[0] if found else Unknown("")
    line = binding.line if binding else 1
    origin = binding.module if binding and binding.bound is Bound.IMPORT else ""
    text = _signature(lookup, meaning) + _overloads(tree.table, name)
    match meaning:
        case Module():
            return Entry(
                name, "module", "", line, public, origin="" if meaning.name == f"{tree.name}.{name}" else meaning.name
            )
        case Function() | Class() | Value():
            kind = "function" if isinstance(meaning, Function) else "class" if isinstance(meaning, Class) else "value"
            home = "" if meaning.module == tree.name else meaning.module
            return Entry(name, kind, text, meaning.line if not home else line, public, switch, home)
        case Outside() if meaning.name in {origin, name}:
            return Entry(name, "module", "", line, public, origin=meaning.name if origin != name else "")
        case _:
            annotation = binding.annotation if binding and binding.annotation else None
            told = f": {walking.written(annotation)}" if annotation else ""
            return Entry(name, "value", told, line, public, switch, origin)


def _of_class(lookup: Lookup, owner: Class, wanted: re.Pattern[str] | None) -> tuple[Entry, ...]:
    entries: dict[str, Entry] = {}
    for cls in lookup.classes.order(owner):
        if not isinstance(cls, Class) or (wanted is None and cls != owner):
            continue
        table = cls.scope.parsed.table_of(cls.node)
        home = "" if cls == owner else f"{cls.module}.{cls.qualname}"
        for name, bindings in table.names.items():
            if name not in entries and (wanted is None or wanted.search(name)):
                public = not name.startswith("_") or name in {"__init__", "__call__", "__new__"}
                if public or wanted:
                    binding = next(iter(table.winners(name)), bindings[-1])
                    entries[name] = _attribute(table, name, binding, public, home)
        for name, stored in lookup.classes.stored(cls).items():
            if name not in entries and (wanted.search(name) if wanted else not name.startswith("_")):
                entries[name] = Entry(name, "value", "", stored[0][0].lineno, not name.startswith("_"), origin=home)
    return tuple(entries.values())


def _attribute(table: Table, name: str, binding: Binding, public: bool, home: str) -> Entry:
    node = binding.node
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        text = signature(node) + _overloads(table, name)
        return Entry(name, "method", text, binding.line, public, origin=home)
    if isinstance(node, ast.ClassDef):
        return Entry(name, "class", "", binding.line, public, origin=home)
    annotation = f": {walking.written(binding.annotation)}" if binding.annotation else ""
    value = written(node) if binding.bound is Bound.VALUE and isinstance(node, ast.expr) else ""
    text = f"{annotation} = {value}" if annotation and value else annotation or value
    return Entry(name, "value", text, binding.line, public, origin=home)


def _signature(lookup: Lookup, meaning: Meaning) -> str:
    match meaning:
        case Function():
            return signature(meaning.node, bound=meaning.owner is not None and takes_self(meaning.node))
        case Class():
            for one in lookup.classes.member(meaning, "__init__") or lookup.classes.member(meaning, "__new__"):
                if isinstance(one, Function):
                    return signature(one.node, bound=True)
            return fields(meaning.node)
        case Value():
            return written(meaning.node)
        case _:
            return ""


def _overloads(table: Table, name: str) -> str:
    """The overloads of a function, after its own signature."""
    nodes = [one.node for one in table.names.get(name, ()) if has_decorator(one.node, "overload")]
    return "".join(
        f"; overload {signature(node)}" for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
