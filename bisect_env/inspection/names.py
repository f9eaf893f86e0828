"""What a dotted name stands for: through packages, re-exports, aliases and base classes."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from bisect_env.inspection.lookup import Lookup
from bisect_env.inspection.meanings import Class, Function, Meaning, Module, Outside, Unknown, Value
from bisect_env.inspection.records import Found, Held, NotFound, Sources

NEAREST = 5
"""Names that are offered for one that is not there."""

_ALIKE = 0.55
"""Least likeness of an offered name, as difflib measures it."""


@dataclass(frozen=True)
class Located:
    """A name that was found, with all that it can stand for."""

    found: Found
    meanings: tuple[Meaning, ...]
    """The one that counts first; empty where there is only a place: a field without a value, a compiled module."""


def resolve(sources: Sources, dotted: str) -> Found | NotFound:
    """Where a dotted name is defined.

    Followed are packages, imports in all their forms, re-exports over any number of modules, ``*`` with ``__all__``,
    literal tables of lazy modules, other names for the same (``g = f``, ``functools.partial(f)``), classes and their
    bases. A decorated function is the function. Where a name is bound several times the last counts that is no
    stand-in (an ``except``, a TYPE_CHECKING import, an overload, None). Where a package has a module and another
    object of the same name, it is the module.

    Raises:
        InfrastructureError: a module is there and cannot be read.
    """
    place = locate(Lookup(sources, dotted), dotted)
    return place.found if isinstance(place, Located) else place


def locate(lookup: Lookup, dotted: str) -> Located | NotFound:
    """As :func:`resolve`, with what is found there."""
    parts = dotted.split(".")
    depth = next((n for n in range(len(parts), 0, -1) if lookup.holds(".".join(parts[:n])) is not Held.ABSENT), 0)
    module = ".".join(parts[:depth])
    if not depth or not all(parts):
        return NotFound(dotted, "", _nearest("", parts[0], lookup.sources.submodules("")))
    if lookup.holds(module) is Held.EXTENSION:
        if depth < len(parts):
            return NotFound(dotted, module, (), "compiled code")
        return Located(Found(dotted, module, "", "extension", "", 0), ())
    meanings: tuple[Meaning, ...] = (Module(module),)
    via: list[str] = []
    for number, part in enumerate(parts[depth:], depth):
        of, rest = meanings[0], parts[number:]
        meanings = lookup.attribute(of, part)
        if isinstance(of, Module):
            via.extend(_hops(lookup, of.name, rest))
        known = tuple(one for one in meanings if not isinstance(one, Unknown | Outside))
        if not known:
            bare = _bare(lookup, of, part) if number == len(parts) - 1 else None
            if bare:
                return Located(_found(lookup, dotted, *bare, kind="value", via=via), ())
            why = next((one.why for one in meanings if isinstance(one, Unknown)), "")
            told = why if why in _OPEN else OWN if any(isinstance(one, Outside) for one in meanings) else ""
            return NotFound(dotted, ".".join(parts[:number]), _offers(lookup, of, ".".join(parts[:number]), part), told)
        meanings = known
    return Located(_describe(lookup, dotted, meanings, via), meanings)


OWN = "Python's own library"
"""Why it cannot be told whether there is a name: what the standard library has is not followed."""
_OPEN = {"compiled code", "made by the module's __getattr__", "in a module that this Python does not parse"}


def members(lookup: Lookup, of: Meaning) -> tuple[str, ...]:
    """Names right below a module or a class, as far as the text tells."""
    if isinstance(of, Class):
        classes = [one for one in lookup.classes.order(of) if isinstance(one, Class)]
        names = [name for one in classes for name in one.scope.parsed.table_of(one.node).names]
        return tuple(dict.fromkeys((*names, *(name for one in classes for name in lookup.classes.stored(one)))))
    tree = lookup.parsed(of.name) if isinstance(of, Module) else None
    if tree is None or not isinstance(of, Module):
        return ()
    stars = [name for star in tree.table.stars if star != of.name for name in star_names(lookup, star, {of.name})]
    below = lookup.sources.submodules(of.name) if tree.source.package else ()
    return tuple(dict.fromkeys((*tree.table.names, *stars, *tree.lazy, *below)))


def star_names(lookup: Lookup, module: str, seen: set[str]) -> tuple[str, ...]:
    """What ``from module import *`` brings."""
    tree = lookup.parsed(module)
    if tree is None or module in seen:
        return ()
    if tree.exported is not None and not tree.table.stars:
        return tree.exported
    seen.add(module)
    own = [name for name in tree.table.names if not name.startswith("_")]
    stars = [name for star in tree.table.stars for name in star_names(lookup, star, seen)]
    return tuple(dict.fromkeys((*(tree.exported or own), *stars)))


def _hops(lookup: Lookup, module: str, rest: list[str]) -> list[str]:
    """The dotted names that an attribute of a module was imported through, from it on; empty where it is defined."""
    at = (module, rest[0])
    names: list[str] = []
    while at in lookup.hops and len(names) < len(lookup.hops):
        names.append(".".join([at[0], at[1], *rest[1:]]))
        at = lookup.hops[at]
    return names


def _describe(lookup: Lookup, asked: str, meanings: tuple[Meaning, ...], via: list[str]) -> Found:
    first = meanings[0]
    if isinstance(first, Module):
        return _found(lookup, asked, first.name, "", 1, kind="module", via=via)
    assert isinstance(first, Function | Class | Value), f"{asked} stands for {first}"
    kind = "class" if isinstance(first, Class) else "value" if isinstance(first, Value) else "function"
    if isinstance(first, Function) and first.owner:
        kind = "method"
    found = _found(lookup, asked, first.module, first.qualname, first.line, kind=kind, via=via)
    same = [one for one in meanings[1:] if isinstance(one, Function | Class | Value)]
    others = [one.line for one in same if (one.module, one.qualname) == (first.module, first.qualname)]
    return Found(**{**vars(found), "others": tuple(sorted(others))})


def _found(
    lookup: Lookup, asked: str, module: str, qualname: str, line: int, *, kind: str, via: Iterable[str]
) -> Found:
    tree = lookup.parsed(module)
    error = tree.error if tree and kind == "module" else ""
    return Found(asked, module, qualname, kind, tree.source.path if tree else "", line, tuple(via), error=error)


def _bare(lookup: Lookup, of: Meaning, name: str) -> tuple[str, str, int] | None:
    """Where a name is bound of which no more can be told."""
    if isinstance(of, Module):
        tree = lookup.parsed(of.name)
        bindings = tree.table.winners(name) if tree else ()
        return (of.name, name, bindings[0].line) if bindings else None
    for cls in lookup.classes.order(of) if isinstance(of, Class) else ():
        if isinstance(cls, Class):
            bindings = cls.scope.parsed.table_of(cls.node).names.get(name, ())
            stored = lookup.classes.stored(cls).get(name, ())
            lines = [one.line for one in bindings] or [one.lineno for one, _ in stored]
            if lines:
                return cls.module, f"{cls.qualname}.{name}", lines[0]
    return None


def _offers(lookup: Lookup, of: Meaning, known: str, part: str) -> tuple[str, ...]:
    return _nearest(f"{known}.", part, members(lookup, of))


def _nearest(before: str, part: str, names: Iterable[str]) -> tuple[str, ...]:
    """Names like one that is missing: whatever the case of letters, then those that hold it."""
    folded: dict[str, list[str]] = {}
    for name in names:
        folded.setdefault(name.lower(), []).append(name)
    wanted = part.lower()
    close = difflib.get_close_matches(wanted, folded, NEAREST, _ALIKE)
    close += [one for one in sorted(folded, key=len) if len(wanted) > 3 and wanted in one]
    return tuple(dict.fromkeys(before + name for one in close for name in folded[one]))[:NEAREST]
