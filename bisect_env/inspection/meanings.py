"""What an expression can stand for, as far as the text tells."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field

from bisect_env.inspection.bindings import Table
from bisect_env.inspection.parsed import Parsed

PARAMETER = "a parameter"
ATTRIBUTE = "an attribute of a value"
SUBSCRIPT = "a subscript"
COMPILED = "compiled code"
ABSENT = "not in the source"
UNPACKED = "a variable of a loop, a with or an unpacking"
RUNTIME = "set at run time"
RESULT = "what a call returns"
UNPARSED = "in a module that this Python does not parse"
DYNAMIC = "made by the module's __getattr__"

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@dataclass(frozen=True)
class Module:
    """A module or package with text."""

    name: str


@dataclass(frozen=True)
class Function:
    """A function or method. Functions in its body are part of it, and stand for it."""

    module: str
    qualname: str
    line: int
    """Tells conditional definitions of one name apart."""
    node: FunctionNode = field(compare=False, repr=False)
    owner: Class | None = field(default=None, compare=False, repr=False)
    """Of a method."""

    @property
    def name(self) -> str:
        """``module:qualname``."""
        return f"{self.module}:{self.qualname}"


@dataclass(frozen=True)
class Class:
    """A class."""

    module: str
    qualname: str
    line: int
    node: ast.ClassDef = field(compare=False, repr=False)
    scope: Scope = field(compare=False, repr=False)
    """Where it stands."""


@dataclass(frozen=True)
class Value:
    """A module's or a class's name that was assigned an expression."""

    module: str
    qualname: str
    line: int
    node: ast.expr = field(compare=False, repr=False)
    scope: Scope = field(compare=False, repr=False)


@dataclass(frozen=True)
class Instance:
    """An instance of a class, or of a subclass of it."""

    of: Class


@dataclass(frozen=True)
class Outside:
    """Of the standard library or the builtins: neither followed nor missed."""

    name: str
    """Dotted, where it is known."""


@dataclass(frozen=True)
class Unknown:
    """The text does not tell."""

    why: str


Meaning = Module | Function | Class | Value | Instance | Outside | Unknown


@dataclass(frozen=True, eq=False)
class Scope:
    """Where an expression stands: the tables of the functions around it, the innermost first, and the module."""

    parsed: Parsed
    tables: tuple[Table, ...] = ()
    root: Function | None = None
    """The outermost function around it; what is defined in there is part of it."""
    owner: Class | None = None
    """The class that ``self`` and ``cls`` are of."""

    def inner(self, table: Table) -> Scope:
        """The scope in a function in here."""
        return Scope(self.parsed, (table, *self.tables), self.root, self.owner)


def unique(meanings: Iterable[Meaning]) -> tuple[Meaning, ...]:
    """Each once, in order."""
    return tuple(dict.fromkeys(meanings))
