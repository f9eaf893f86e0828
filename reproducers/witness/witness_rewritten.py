"""What rewriting a module gives: its tree, the hooks that it calls, and what was found and missed, in words."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from witness_targets import Found, Function, Guard, Key

PREFIX = "_witness_hook_"


@dataclass(frozen=True)
class Hook:
    """A function that the rewritten code calls."""

    name: str
    kind: str
    """``read``, ``store``: a flag of the module; ``read attribute``, ``store attribute``: one of another module;
    ``read own``, ``store own``: a thread's own; ``replace``: an object; ``lock``; ``enter``, ``leave``, ``call``,
    ``after``, ``returns``: of a function; ``obeyed``: a branch; ``found``: a look-up of a key."""
    state: str
    detail: str = ""
    """Name of the flag, the object, the function or the key; of ``obeyed`` what the branch does."""


@dataclass(frozen=True)
class Rewritten:
    """A module's new tree. Without hooks there was nothing to rewrite."""

    tree: ast.Module
    hooks: tuple[Hook, ...]
    found: tuple[Found, ...]
    missing: tuple[tuple[str, str], ...]
    """State and name of what the module should have and does not."""
    flags: Mapping[str, str]
    """Process-global flags that the module defines, with their states."""


KINDS = {"flag": "stores and loads, process-global", "thread-local": "stores and loads, thread-local"}
"""How a flag of a kind is watched."""
HOW = {
    "span": "enter and leave",
    "opens": "entered",
    "closes": "left",
    "call": "calls",
    "after": "calls",
    "returns": "what it returns",
}
"""How a function is followed."""


def words(item: Function | Guard | Key) -> str:
    """What could be missing, for whoever reads it."""
    if isinstance(item, Guard):
        return f"a branch on {' or '.join(item.asks)} in {item.name}"
    return f"look-up of {item.key} in {item.name}" if isinstance(item, Key) else item.name
