"""Which lines that patterns match can be reached from a function, and by which path."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bisect_env.errors import BadInput
from bisect_env.inspection import meanings as why
from bisect_env.inspection.calls import Edge, calls_of
from bisect_env.inspection.lookup import Lookup
from bisect_env.inspection.meanings import Class, Function, Meaning, Module, Outside
from bisect_env.inspection.names import locate
from bisect_env.inspection.parsed import code_lines, lines_of, undisturbed
from bisect_env.inspection.records import Call, Hit, NotFound, Scan, Sources, Step, Unresolved

MOST = 4000
"""Functions that one scan reads; those that are called and not read are counted as beyond."""


@dataclass(frozen=True)
class _Reached:
    """How a function was first reached."""

    depth: int
    by: Function | None = None
    edge: Edge | None = None
    observed: bool = False


@undisturbed()
def scan(
    sources: Sources,
    dotted: str,
    patterns: Sequence[str],
    depth: int,
    observed: Sequence[Call] = (),
    *,
    comments: bool = False,
) -> Scan:
    """Search the source of every function that is reached from a name in at most ``depth`` calls.

    Breadth first: the way printed for a hit is a shortest one. From a class all its own methods are started from, from
    a module all functions and methods that it defines. Where a name has several definitions all are followed.

    Args:
        sources: where the modules are read.
        dotted: the name asked for.
        patterns: regular expressions, searched for in each line of the functions, their decorators included.
        depth: most calls on the way; 0: the function itself only.
        observed: calls that a run of it made; they add ways that the text does not show.
        comments: search comments and docstrings too. A match there is no call.

    Raises:
        BadInput: a pattern is no regular expression.
        InfrastructureError: a module is there and cannot be read.
    """
    compiled = [(pattern, _compiled(pattern)) for pattern in patterns]
    lookup = Lookup(sources, dotted)
    place = locate(lookup, dotted)
    if isinstance(place, NotFound):
        return Scan(sources.label, place, tuple(patterns), depth)
    texts = _Texts(lookup, comments)
    seen = _Observed(lookup, observed)
    reached = {function: _Reached(0) for function in starts(lookup, place.meanings)}
    waiting = deque(reached)
    hits: list[Hit] = []
    unresolved: list[Unresolved] = []
    beyond: set[Function] = set()
    read = 0
    while waiting and read < MOST:
        function = waiting.popleft()
        read += 1
        for pattern, line, text in texts.matches(function, compiled):
            hits.append(Hit(pattern, _way(lookup, reached, function, line), texts.path(function), line, text))
        calls = calls_of(lookup, function)
        unresolved.extend((*calls.unresolved, *seen.unknown(function)))
        at = reached[function].depth
        for edge, traced in (*((one, False) for one in calls.edges), *((one, True) for one in seen.edges(function))):
            if edge.callee not in reached:
                if at < depth:
                    reached[edge.callee] = _Reached(at + 1, function, edge, traced)
                    waiting.append(edge.callee)
                else:
                    beyond.add(edge.callee)
    left = (beyond - reached.keys()) | set(waiting)
    return Scan(
        sources.label, place.found, tuple(patterns), depth, read, tuple(hits), tuple(unresolved), beyond=len(left)
    )


def starts(lookup: Lookup, meanings: Iterable[Meaning]) -> tuple[Function, ...]:
    """The functions that a name stands for: its own, those of its class, those that its module defines."""
    found: list[Function] = []
    for one in lookup.expanded(meanings):
        if isinstance(one, Function):
            found.append(one)
        elif isinstance(one, Class):
            names = one.scope.parsed.table_of(one.node).names
            found.extend(of for name in names for of in lookup.classes.member(one, name) if isinstance(of, Function))
        elif isinstance(one, Module) and (tree := lookup.parsed(one.name)):
            own = [of for name in tree.table.names for of in lookup.member(one.name, name)]
            here = [of for of in own if isinstance(of, Function | Class) and of.module == one.name]
            found.extend(starts(lookup, here))
    return tuple(dict.fromkeys(found))


def function_at(lookup: Lookup, name: str) -> Function | None:
    """The function that ``module:qualname`` names, as tracebacks and profilers write it; what is defined inside a
    function is part of that function.
    """
    module, _, qualname = name.partition(":")
    meanings: tuple[Meaning, ...] = (Module(module),)
    for part in qualname.partition(".<locals>")[0].split("."):
        meanings = lookup.attribute(meanings[0], part) if meanings else ()
    return next((one for one in meanings if isinstance(one, Function)), None)


class _Observed:
    """Calls of a run by the function that made them."""

    def __init__(self, lookup: Lookup, calls: Sequence[Call]) -> None:
        self._edges: dict[Function, list[Edge]] = {}
        self._unknown: dict[Function, list[Unresolved]] = {}
        for call in dict.fromkeys(calls):
            caller = function_at(lookup, call.caller)
            callee = function_at(lookup, call.callee)
            if caller is None or caller == callee:
                continue
            if callee is not None:
                self._edges.setdefault(caller, []).append(Edge(callee, call.line))
            elif not isinstance(lookup.module(call.callee.partition(":")[0]), Outside):
                missed = Unresolved(caller.name, call.path, call.line, call.callee, f"seen in a run, {why.ABSENT}")
                self._unknown.setdefault(caller, []).append(missed)

    def edges(self, caller: Function) -> Sequence[Edge]:
        return self._edges.get(caller, ())

    def unknown(self, caller: Function) -> Sequence[Unresolved]:
        return self._unknown.get(caller, ())


class _Texts:
    """The lines of functions. Comments are cut out of a module only once something in it matches: it is slow."""

    def __init__(self, lookup: Lookup, comments: bool) -> None:
        self.lookup, self.comments = lookup, comments
        self._code: dict[str, tuple[str, ...]] = {}
        self._lines: dict[str, list[str]] = {}

    def path(self, function: Function) -> str:
        return self.lookup.scope_of(function).parsed.source.path

    def matches(
        self, function: Function, patterns: Sequence[tuple[str, re.Pattern[str]]]
    ) -> Iterable[tuple[str, int, str]]:
        """Pattern, line and the line's text."""
        module, node = function.module, function.node
        text = self.lookup.scope_of(function).parsed.source.text
        if module not in self._lines:
            self._lines[module] = lines_of(text)
        lines = self._lines[module]
        first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
        for number in range(first, min(node.end_lineno or first, len(lines)) + 1):
            for pattern, compiled in patterns:
                if compiled.search(lines[number - 1]) and compiled.search(self._line(module, text, number)):
                    yield pattern, number, lines[number - 1].strip()

    def _line(self, module: str, text: str, number: int) -> str:
        if self.comments:
            return self._lines[module][number - 1]
        if module not in self._code:
            self._code[module] = code_lines(text)
        return self._code[module][number - 1]


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as problem:
        raise BadInput(
            "pattern", "", f"{pattern!r}: {problem}", "a regular expression; a backslash makes any character plain"
        ) from problem


def _way(lookup: Lookup, reached: dict[Function, _Reached], function: Function, line: int) -> tuple[Step, ...]:
    steps: list[Step] = []
    observed = passed = False
    at: Function | None = function
    while at is not None:
        path = lookup.scope_of(at).parsed.source.path
        steps.append(Step(at.name, path, line, observed, passed))
        how = reached[at]
        if how.edge is not None:
            line, observed, passed = how.edge.line, how.observed, how.edge.passed
        at = how.by
    return tuple(reversed(steps))
