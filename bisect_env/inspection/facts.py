"""Who shares a torch's compile state, read from its source before anything is built. Pure over the sources.

Nothing here goes by version numbers: a build of a branch, or a flag that moved with a patch release, is told by what
its own text does.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bisect_env.inspection.bindings import last_name
from bisect_env.inspection.configs import overrides
from bisect_env.inspection.parsed import tree_of
from bisect_env.inspection.records import NotFound, Scope, Sources, Use
from bisect_env.inspection.uses import uses

TORCH = "torch"
TRACING = ("torch.fx._symbolic_trace", "is_fx_tracing")
"""Module, and its function that tells whether FX is tracing."""
COMPILING = ("torch.compiler", "is_compiling")
COMPILER = "torch._dynamo.convert_frame"
"""Module that runs dynamo's compiles."""
MASKS = "torch.nn.attention.flex_attention"
"""Module that makes block masks."""
ANNOTATIONS = ("torch.fx.traceback", "annotate")
"""Module, and its function that writes annotations for whatever is traced meanwhile."""
LOWERING = "torch._inductor.graph"
"""Module that lowers what was traced."""


@dataclass(frozen=True)
class Fact:
    """One thing that is known of a torch, or why it is not."""

    scope: Scope | None
    """None: not known."""
    why: str
    """``torch/fx/_symbolic_trace.py: _is_fx_tracing_flag``; of what is not known, the reason."""
    held: bool | None = None
    """Of ``is_compiling``: whether it is true in all threads for as long as dynamo compiles in one. Of the masks'
    annotations: whether inductor obeys one."""


@dataclass(frozen=True)
class Facts:
    """What the things that threads of a process may share are in one torch."""

    tracing: Fact
    """The flag that FX is tracing."""
    compiling: Fact
    """What ``torch.compiler.is_compiling()`` tells."""
    config: Fact
    """Values set in dynamo's configuration."""
    masks: Fact
    """Annotations that making block masks writes."""


def facts(sources: Sources) -> Facts:
    """The facts of the torch that is read.

    Raises:
        InfrastructureError: a module that is there cannot be read.
    """
    return Facts(_flag(sources, *TRACING), _compiling(sources), _config(sources), _masks(sources))


def unknown(why: str) -> Facts:
    """Where there is no torch to be read."""
    return Facts(*[Fact(None, why)] * 4)


def _flag(sources: Sources, module: str, function: str) -> Fact:
    """Who shares what the function tells: the module-level name that it returns, itself or through its neighbours."""
    tree = tree_of(sources, module)
    if isinstance(tree, str):
        return Fact(None, tree)
    name = _told_by(tree, function)
    if name is None:
        return Fact(None, f"{module}.{function} returns no name of its module")
    found = uses(sources, f"{module}.{name}", TORCH, within=(module,))
    if isinstance(found.found, NotFound) or found.scope is Scope.ABSENT:
        return Fact(None, f"{module}.{name} is bound in a way that is not understood")
    if found.scope is Scope.UNKNOWN:
        return Fact(None, f"{module}.{name} holds what a call returns, of which it is not known who shares it")
    return Fact(found.scope, f"{module}.{name}")


def _compiling(sources: Sources) -> Fact:
    module = COMPILING[0]
    fact = _flag(sources, *COMPILING)
    if fact.scope is not Scope.PROCESS:
        return fact
    dynamo = tree_of(sources, COMPILER)
    if isinstance(dynamo, str):
        return Fact(None, dynamo)
    found = uses(sources, fact.why, TORCH, within=(module, COMPILER))
    setters = _setters(found.stores)
    named = {*_names(dynamo)} & setters
    if not named and not any(use.function.partition(":")[0] == COMPILER for use in found.stores):
        return Fact(Scope.PROCESS, f"{fact.why}, which {COMPILER} does not set", held=False)
    how = f", which {COMPILER} sets by {', '.join(sorted(named))}" if named else f", which {COMPILER} sets"
    return Fact(Scope.PROCESS, f"{fact.why}{how}", held=True)


def _setters(stores: Sequence[Use]) -> set[str]:
    """Last parts of the names of the functions that store it."""
    functions = (use.function.partition(":")[2] for use in stores)
    return {function.rpartition(".")[2] for function in functions if function}


def _config(sources: Sources) -> Fact:
    found = overrides(sources)
    return Fact(found.scope, found.why)


def _masks(sources: Sources) -> Fact:
    """Whether making a mask annotates, where the annotations are kept, and whether inductor looks for the key."""
    masks = tree_of(sources, MASKS)
    if isinstance(masks, str):
        return Fact(None, masks)
    module, function = ANNOTATIONS
    keys = {
        key.value
        for call in ast.walk(masks)
        if isinstance(call, ast.Call) and last_name(call.func) == function
        for given in call.args
        if isinstance(given, ast.Dict)
        for key in given.keys
        if isinstance(key, ast.Constant) and isinstance(key.value, str)
    }
    if not keys:
        return Fact(Scope.ABSENT, f"{MASKS} annotates nothing", held=False)
    trees = tree_of(sources, module), tree_of(sources, LOWERING)
    for tree in trees:
        if isinstance(tree, str):
            return Fact(None, tree)
    annotates, lowering = trees
    assert isinstance(annotates, ast.Module) and isinstance(lowering, ast.Module), "what is none was told"
    stored = [
        name
        for node in annotates.body
        if isinstance(node, ast.FunctionDef) and node.name == function
        for part in ast.walk(node)
        if isinstance(part, ast.Global)
        for name in part.names
    ]
    if not stored:
        return Fact(None, f"{module}.{function} stores in no name of its module")
    scope = uses(sources, f"{module}.{stored[0]}", TORCH, within=(module,)).scope
    obeyed = any(isinstance(node, ast.Constant) and node.value in keys for node in ast.walk(lowering))
    where = f"{module}.{stored[0]}, where {MASKS} writes {', '.join(sorted(keys))}"
    if scope in (Scope.UNKNOWN, Scope.ABSENT):
        return Fact(None, f"{where}: it is not known who shares it")
    return Fact(scope, f"{where}{f', which {LOWERING} obeys' if obeyed else ''}", held=obeyed)


def _told_by(tree: ast.Module, function: str) -> str | None:
    """The first module-level name that the function returns, or that functions of the module do which it returns."""
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    bound = {
        last_name(target)
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    }
    waiting, seen = [function], set()
    while waiting:
        name = waiting.pop(0)
        if name in seen or name not in functions:
            continue
        seen.add(name)
        returned = (node.value for node in ast.walk(functions[name]) if isinstance(node, ast.Return) and node.value)
        for read in (read for value in returned for read in _names(value)):
            if read in bound:
                return read
            waiting.append(read)
    return None


def _names(tree: ast.AST) -> Iterator[str]:
    """Names and attributes that are read, in no promised order but the same each time."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            yield last_name(node)
