"""What the rewritten modules call. A hook answers as the code it stands for, and tells the thread's lane.

Dynamo must not trace hooks or compile them: each is marked as a constant, and its code is skipped.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

from witness_annotations import Annotations
from witness_flags import Space, StateHooks
from witness_functions import FunctionHooks
from witness_lanes import Lanes
from witness_lock import watched_lock
from witness_rewritten import Hook


class Hooks:
    """Makes the hooks of rewritten modules."""

    def __init__(self, lanes: Lanes) -> None:
        self._makers = {**StateHooks(lanes).makers(), **FunctionHooks(lanes).makers()}

    def make(self, hook: Hook, space: Space) -> Callable[..., Any]:
        """The function for one hook of the module with these globals."""
        function = self._makers[hook.kind](hook.state, hook.detail, space)
        if isinstance(function, types.FunctionType):
            function._dynamo_marked_constant = True  # type: ignore[attr-defined]
        return function


def own_codes() -> set[types.CodeType]:
    """The code of everything that a hook runs here: dynamo is to leave these frames alone."""
    found: set[types.CodeType] = set()
    ours = [part.__module__ for part in (Hooks, StateHooks, FunctionHooks, Lanes, Annotations, watched_lock)]
    waiting: list[Any] = [sys.modules[name] for name in ours]
    while waiting:
        thing = waiting.pop()
        if isinstance(thing, types.CodeType):
            found.add(thing)
            waiting += thing.co_consts
        elif isinstance(thing, types.FunctionType):
            waiting.append(thing.__code__)
        elif isinstance(thing, property):
            waiting.append(thing.fget)
        elif isinstance(thing, types.ModuleType):
            waiting += [value for value in vars(thing).values() if getattr(value, "__module__", "") == thing.__name__]
        elif isinstance(thing, type):
            waiting += vars(thing).values()
    return found
