"""Conditions in a text that the platform decides: ``sys.platform == "win32"``, ``os.name in (...)``, names for them."""

from __future__ import annotations

import ast
import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_UNKNOWN = object()
_MODULES = ("sys", "os", "platform")
"""Known by these names in a function, too, whose own text does not import them."""
_METHODS = ("startswith", "endswith", "lower", "upper", "casefold")
DEEPEST = 20
"""Parts of a condition inside each other; names that stand for each other in a circle end there."""


@dataclass(frozen=True)
class Platform:
    """What conditions ask of the platform, by the dotted names of the standard library."""

    facts: Mapping[str, Any]


HERE = Platform(
    {
        "sys.platform": sys.platform,
        "sys.builtin_module_names": sys.builtin_module_names,
        "os.name": os.name,
        "platform.system": platform.system(),
    }
)
"""Of this process: environments and wheels that are read are for its platform."""


class Conditions:
    """The conditions of one body of statements. Told of what is bound there, in the order of the text."""

    def __init__(self, of: Platform = HERE) -> None:
        self._facts = of.facts
        self._imports: dict[str, str] = {}
        self._values: dict[str, ast.expr | None] = {}
        self._asked = 0
        """How often a fact was looked up."""

    def imported(self, name: str, dotted: str) -> None:
        """A name is bound to a module or to an attribute of one."""
        self._imports[name] = dotted

    def assigned(self, name: str, value: ast.expr) -> None:
        """A name is bound to a value; one that is bound again is not known any more."""
        self._values[name] = None if name in self._values else value

    def decides(self, test: ast.expr) -> bool | None:
        """Whether the condition holds on the platform; None where it asks for anything else."""
        found = self._told(test, DEEPEST)
        return None if found is _UNKNOWN else bool(found)

    def _told(self, node: ast.expr, left: int) -> Any:
        """A value that the platform has a part in: other constants may be set to something else at any time."""
        before = self._asked
        found = self._value(node, left)
        return found if self._asked > before else _UNKNOWN

    def _fact(self, dotted: str) -> Any:
        self._asked += dotted in self._facts
        return self._facts.get(dotted, _UNKNOWN)

    def _value(self, node: ast.expr, left: int) -> Any:
        if not left:
            return _UNKNOWN
        match node:
            case ast.Constant():
                return node.value
            case ast.Tuple() | ast.List() | ast.Set():
                parts = [self._value(part, left - 1) for part in node.elts]
                return _UNKNOWN if any(part is _UNKNOWN for part in parts) else tuple(parts)
            case ast.Name(id=name) if (value := self._values.get(name)) is not None:
                return self._told(value, left - 1)
            case ast.Name() | ast.Attribute():
                return self._fact(self._dotted(node))
            case ast.UnaryOp(op=ast.Not()):
                of = self._value(node.operand, left - 1)
                return _UNKNOWN if of is _UNKNOWN else not of
            case ast.BoolOp():
                return self._several(node, left)
            case ast.Compare(ops=[op], comparators=[other]):
                return _compared(self._value(node.left, left - 1), op, self._value(other, left - 1))
            case ast.Call(func=func, args=[], keywords=[]) if self._dotted(func) == "platform.system":
                return self._fact("platform.system")
            case ast.Call(func=ast.Attribute(value=of, attr=method), args=args, keywords=[]) if method in _METHODS:
                text, given = self._value(of, left - 1), [self._value(one, left - 1) for one in args]
                if isinstance(text, str) and all(isinstance(one, str | tuple) for one in given):
                    try:
                        return getattr(text, method)(*given)
                    except TypeError:  # It is called in a way that Python refuses too.
                        return _UNKNOWN
        return _UNKNOWN

    def _several(self, node: ast.BoolOp, left: int) -> Any:
        """As far as the parts that are known decide it, whatever the others are."""
        parts = [self._value(part, left - 1) for part in node.values]
        decisive = isinstance(node.op, ast.Or)
        if any(part is not _UNKNOWN and bool(part) is decisive for part in parts):
            return decisive
        return _UNKNOWN if any(part is _UNKNOWN for part in parts) else not decisive

    def _dotted(self, node: ast.expr) -> str:
        """``sys.platform`` of ``s.platform`` after ``import sys as s``; empty for anything that no import tells."""
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            before = self._dotted(node.value)
            return f"{before}.{node.attr}" if before else ""
        if not isinstance(node, ast.Name) or node.id in self._values:
            return ""
        return self._imports.get(node.id) or (node.id if node.id in _MODULES else "")


def _compared(one: Any, op: ast.cmpop, other: Any) -> Any:
    if one is _UNKNOWN or other is _UNKNOWN:
        return _UNKNOWN
    match op:
        case ast.Eq():
            return one == other
        case ast.NotEq():
            return one != other
        case ast.In() | ast.NotIn() if isinstance(one, str) and isinstance(other, tuple | str):
            return (one in other) is isinstance(op, ast.In)
        case _:
            return _UNKNOWN
