"""Who sets and who reads a module-level name."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from bisect_env.errors import BadInput
from bisect_env.inspection.bindings import last_name
from bisect_env.inspection.configs import is_config, overrides
from bisect_env.inspection.lookup import Lookup
from bisect_env.inspection.meanings import Class, Outside, Value
from bisect_env.inspection.mentions import Mention, State, accessors, mentions
from bisect_env.inspection.names import Located, locate
from bisect_env.inspection.parsed import Parsed, lines_of, undisturbed
from bisect_env.inspection.records import Held, Scope, Sources, Use, Uses
from bisect_env.inspection.wheels import fetch_ahead

_THREAD = {"threading.local", "_thread._local"}
_CONTEXT = {"contextvars.ContextVar"}


@undisturbed()
def uses(sources: Sources, dotted: str, distribution: str, within: Sequence[str] | None = None) -> Uses:
    """Stores and reads of a module-level name.

    A store is an assignment at the top level of its module or after ``global``, one through any other name of the
    module (``import a.b as m; m.name = 1``, ``setattr(m, "name", 1)``, ``mock.patch``), one to an attribute or item of
    what it holds (a ``threading.local()``, a dictionary), a call that changes that (``append``, a context variable's
    ``set``), and a call of a function of its module that does nothing but store it; reads likewise. What is stored
    through a copy (``from m import name``) is another name, and a local variable of the same name is as well.

    Args:
        sources: where the modules are read.
        dotted: the name; re-exports are followed to where it is defined.
        distribution: all modules of its package are looked through, or those of the name's own top-level package where
            there is none called like it.
        within: modules to look through instead, where reading all of them costs too much: those that import the
            defining module. The defining one is always looked through.

    Raises:
        BadInput: the name is a module, or an attribute of a class.
        InfrastructureError: a module is there and cannot be read.
    """
    lookup = Lookup(sources, dotted)
    place = locate(lookup, dotted)
    if not isinstance(place, Located):
        return Uses(sources.label, place, Scope.ABSENT)
    home, name = place.found.module, place.found.qualname
    tree = lookup.parsed(home)
    if tree is None or not name or "." in name:
        raise BadInput(
            "name", "", f"{dotted} is no module-level name", "a module's variable, such as package.module._flag"
        )
    scope = _scope(lookup, place, tree)
    # What changes an entry of a configuration are the ways to change its value, whoever shares that.
    state = State(home, name, _of_value(lookup, place))
    helpers = accessors(tree, state)
    words = (name, *helpers)
    modules = [
        home,
        *(one for one in (within if within is not None else _all(lookup, distribution, home)) if one != home),
    ]
    stores: list[Use] = []
    reads: list[Use] = []
    files = 0
    fetch_ahead(sources, modules)
    for module in modules:
        source = sources.module(module) if lookup.holds(module) is Held.SOURCE else None
        if source is None:
            continue
        files += 1
        # Parsing is slow: only where the text has the name at all.
        if any(word in source.text for word in words) and (of := lookup.parsed(module)):
            for mention in mentions(lookup, of, state, helpers):
                (stores if mention.store else reads).append(_use(of, mention))
    return Uses(sources.label, place.found, scope, _sorted(stores), _sorted(reads), files)


def _scope(lookup: Lookup, place: Located, tree: Parsed) -> Scope:
    """Who shares what the name holds: the process only where nothing stands between the name and its value."""
    if is_config(tree):
        return overrides(lookup.sources).scope or Scope.UNKNOWN
    if _replaced(tree):
        return Scope.UNKNOWN
    return _of_value(lookup, place)


def _of_value(lookup: Lookup, place: Located) -> Scope:
    """Who shares the value that a plain name of a module holds."""
    value = place.meanings[0] if place.meanings else None
    if not isinstance(value, Value) or not isinstance(value.node, ast.Call):
        return Scope.PROCESS
    makers = lookup.expanded(lookup.evaluate(value.node.func, value.scope))
    for one in makers:
        bases = lookup.classes.order(one) if isinstance(one, Class) else (one,)
        names = {base.name for base in bases if isinstance(base, Outside)}
        if names & _THREAD:
            return Scope.THREAD
        if names & _CONTEXT:
            return Scope.CONTEXT
    known = any(isinstance(one, Class | Outside) for one in makers)
    return Scope.PROCESS if known else Scope.UNKNOWN


def _replaced(tree: Parsed) -> bool:
    """Whether a module puts something else in its own place, or becomes of another class, while it is imported."""
    stored = (
        target
        for node in tree.tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Subscript | ast.Attribute)
    )
    return any(
        isinstance(part, ast.Subscript) and last_name(part.value) == "modules" and last_name(part.slice) == "__name__"
        for target in stored
        for part in ast.walk(target)
    )


def _all(lookup: Lookup, distribution: str, home: str) -> Iterator[str]:
    """All modules of a distribution's package."""
    root = distribution.replace("-", "_")
    waiting = [root if lookup.holds(root) is not Held.ABSENT else home.partition(".")[0]]
    while waiting:
        module = waiting.pop()
        yield module
        waiting.extend(f"{module}.{one}" for one in reversed(lookup.sources.submodules(module)))


def _use(tree: Parsed, mention: Mention) -> Use:
    function = f"{tree.name}:{mention.qualname}" if mention.qualname else tree.name
    text = lines_of(tree.source.text)[mention.line - 1].strip()
    return Use(function, tree.source.path, mention.line, text, mention.through)


def _sorted(found: Sequence[Use]) -> tuple[Use, ...]:
    return tuple(sorted(dict.fromkeys(found), key=lambda one: (one.path, one.line)))
