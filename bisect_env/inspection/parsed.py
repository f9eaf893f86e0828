"""A module's text as a tree, with the names that it binds."""

from __future__ import annotations

import ast
import gc
import io
import re
import tokenize
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache

from bisect_env.inspection.bindings import Bound, Table, has_decorator, table_of
from bisect_env.inspection.lazy import exported, lazy_names
from bisect_env.inspection.records import Held, Source, Sources

MODULES = 1200
"""Parsed modules that are kept, over all sources: some 1 MB each for large ones."""

UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What Python raises for a text that it does not parse: no Python, null bytes, or nested too deeply."""

_LAZY = re.compile(r"__getattr__|[Ll]azy|\battach\(")


@dataclass(frozen=True, eq=False)
class Parsed:
    """One module."""

    source: Source
    tree: ast.Module
    table: Table
    exported: tuple[str, ...] | None
    """``__all__`` as far as it is literal, with all names without underscore that are defined here where it is not
    literal all through; None without one.
    """
    lazy: Mapping[str, tuple[tuple[str, str], ...]]
    """Names that it hands out when asked: candidates of (absolute module, attribute)."""
    error: str = ""
    """Why this Python does not parse it; the tree is empty then."""
    tables: dict[int, Table] = field(default_factory=dict)
    """Of the definitions in it, by ``id`` of the node, which lives as long as the tree: filled when asked."""

    @property
    def name(self) -> str:
        """Dotted."""
        return self.source.module

    def table_of(self, node: ast.AST, method: bool = False) -> Table:
        """The bindings in the body of a class, a function or a lambda of this module."""
        known = self.tables.get(id(node))
        if known is None:
            known = self.tables[id(node)] = self._table(node, method)
        return known

    def _table(self, node: ast.AST, method: bool) -> Table:
        name, package = self.source.module, self.source.package
        if isinstance(node, ast.Lambda):
            return table_of([node.body], name, package, node.args)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = None
            if method and not has_decorator(node, "staticmethod"):
                special = node.name in {"__new__", "__init_subclass__", "__class_getitem__"}
                first = Bound.CLS if special or has_decorator(node, "classmethod") else Bound.SELF
            return table_of(node.body, name, package, node.args, first)
        return table_of(getattr(node, "body", ()), name, package)


@dataclass(frozen=True, eq=False)
class _Same:
    """Sources by identity: they need not be hashable."""

    sources: Sources

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.sources is self.sources

    def __hash__(self) -> int:
        return id(self.sources)


def parsed(sources: Sources, module: str) -> Parsed | None:
    """The module, None when it has no text here; the same object as long as it is kept.

    Raises:
        InfrastructureError: it is there and cannot be read.
    """
    return _parsed(_Same(sources), module)


@lru_cache(maxsize=MODULES)
def _parsed(same: _Same, module: str) -> Parsed | None:
    if same.sources.holds(module) is not Held.SOURCE:
        return None
    source = same.sources.module(module)
    if source is None:
        return None
    error = source.error
    try:
        tree = _tree(source.text)
        table = table_of(tree.body, module, source.package)
    except UNREADABLE as problem:
        tree, error = ast.Module(body=[], type_ignores=[]), f"{type(problem).__name__}: {problem}"
        table = table_of(tree.body, module, source.package)
    # Both walk the tree once more: only where there is something to find.
    public, whole = exported(tree) if "__all__" in source.text else (None, True)
    if public is not None and not whole:
        public = tuple(dict.fromkeys((*public, *_defined(table))))
    lazy = lazy_names(tree, module, source.package, table) if _LAZY.search(source.text) else {}
    return Parsed(source, tree, table, public, lazy, error)


_DEFINES = {Bound.FUNCTION, Bound.CLASS, Bound.VALUE}


def _defined(table: Table) -> Iterator[str]:
    """Names of functions, classes and values, without underscore."""
    for name, bindings in table.names.items():
        if not name.startswith("_") and any(one.bound in _DEFINES for one in bindings):
            yield name


@contextmanager
def undisturbed() -> Iterator[None]:
    """Python's search for garbage in cycles put off: trees are all live objects, and going through them again and again
    while they grow takes longer than to parse them.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


@undisturbed()
def _tree(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes are the library's business
        return ast.parse(text)


def lines_of(text: str) -> list[str]:
    """The lines as Python counts them: a form feed, which old code has between its parts, ends none."""
    return text.removesuffix("\n").split("\n")


def code_lines(text: str) -> tuple[str, ...]:
    """The lines of a module without comments and docstrings: what is cut out leaves blanks, so that lines keep
    their numbers. Strings that are used stay; a string that is a statement of its own is a docstring here.
    """
    lines = lines_of(text)
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        return tuple(lines)
    skipped = {tokenize.NL, tokenize.COMMENT}
    between = {tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING}
    told = [token for token in tokens if token.type not in skipped]
    cut = [token for token in tokens if token.type == tokenize.COMMENT]
    for before, token, after in zip([None, *told], told, [*told[1:], None], strict=False):
        alone = before is None or before.type in between
        if token.type == tokenize.STRING and alone and (after is None or after.type in {*between, tokenize.ENDMARKER}):
            cut.append(token)
    for token in cut:
        (first, left), (last, right) = token.start, token.end
        for number in range(first, min(last, len(lines)) + 1):
            line = lines[number - 1]
            start, end = (left if number == first else 0), (right if number == last else len(line))
            lines[number - 1] = line[:start] + " " * (end - start) + line[end:]
    return tuple(lines)


def tree_of(sources: Sources, module: str) -> ast.Module | str:
    """The tree alone, without what it binds; or in words why there is none.

    Raises:
        InfrastructureError: the module is there and cannot be read.
    """
    held = sources.holds(module)
    if held is not Held.SOURCE:
        return f"there is no {module}" if held is Held.ABSENT else f"{module} is compiled code"
    source = sources.module(module)
    assert source is not None, "it holds the source"
    try:
        return ast.parse(source.text)
    except SyntaxError as error:
        return f"{source.path}, line {error.lineno}, is not Python as it is understood here"
    except UNREADABLE as error:
        return f"{source.path} is not Python as it is understood here: {error}"
