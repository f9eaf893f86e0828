"""Modules whose names are entries of a configuration, as ``torch.utils._config_module`` makes them of a module.

Such a module ends with ``install_config_module(sys.modules[__name__])``: from then on its names are read and set
through entries, and who shares what is set is a matter of how those entries keep it, not of the names.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from bisect_env.inspection.bindings import Bound, last_name
from bisect_env.inspection.parsed import Parsed, tree_of
from bisect_env.inspection.records import Scope, Sources

CONFIG = ("torch.utils._config_module", "_ConfigEntry", "user_override")
"""Module, class and attribute that hold what somebody set a value of a configuration to."""
INSTALL = "install_config_module"
"""Function of that module that makes a configuration of another one."""
OWN_SCOPES = {"local": Scope.THREAD, "ContextVar": Scope.CONTEXT}
"""What a holder of values is made by, and who then shares them."""


@dataclass(frozen=True)
class Overrides:
    """Who shares what is set in a configuration."""

    scope: Scope | None
    """None: not known."""
    why: str
    """``torch.utils._config_module._ConfigEntry.user_override``; of what is not known, the reason."""


def overrides(sources: Sources) -> Overrides:
    """Who shares values set in a configuration of this torch.

    Raises:
        InfrastructureError: the module is there and cannot be read.
    """
    module, name, attribute = CONFIG
    tree = tree_of(sources, module)
    if isinstance(tree, str):
        return Overrides(None, tree)
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name]
    if not classes:
        return Overrides(None, f"{module} has no {name}")
    values = [value for node in ast.walk(classes[0]) for value in _values(node, attribute)]
    if not values:
        return Overrides(None, f"{module}.{name} has no {attribute}")
    made = {last_name(part.func) for value in values for part in ast.walk(value) if isinstance(part, ast.Call)}
    scopes = [scope for maker, scope in OWN_SCOPES.items() if maker in made]
    return Overrides(scopes[0] if scopes else Scope.PROCESS, f"{module}.{name}.{attribute}")


def is_config(tree: Parsed) -> bool:
    """Whether a module makes a configuration of itself, under whatever name it has imported the function for that."""
    for node in tree.tree.body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            called = last_name(node.value.func)
            imported = (one.attribute for one in tree.table.names.get(called, ()) if one.bound is Bound.IMPORT)
            if INSTALL in (called, *imported):
                return True
    return False


def _values(node: ast.AST, attribute: str) -> Iterator[ast.expr]:
    """What the attribute is set to here; of a field without a value, nothing."""
    if isinstance(node, ast.AnnAssign):
        targets: list[ast.expr] = [node.target]
        value = node.value
    elif isinstance(node, ast.Assign):
        targets, value = node.targets, node.value
    else:
        return
    if value is not None and attribute in map(last_name, targets):
        yield value
