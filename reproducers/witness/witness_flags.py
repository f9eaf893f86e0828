"""Hooks of what holds state: flags, objects that are replaced, and the branches and look-ups that obey them.

The order of two threads' time stamps is that of their accesses: a store or load and the reading of the clock after it
are bytecode without a point at which CPython (up to 3.13, with its lock) changes to another thread.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from witness_lanes import Lane, Lanes, clock
from witness_targets import COMPILING, RAISED

Space = dict[str, Any]
"""A module's globals."""
Maker = Callable[[str, str, Space], Callable[..., Any]]
"""Makes a hook of a state and a name, for the module with these globals."""


class StateHooks:
    """Makes them."""

    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes
        self._writers: dict[str, Lane] = {}
        self._stores: dict[str, int] = {}

    def makers(self) -> dict[str, Maker]:
        """By the kind of hook."""
        return {
            "read": self._read,
            "store": self._store,
            "read attribute": self._read_attribute,
            "store attribute": self._store_attribute,
            "read own": self._read_own,
            "store own": self._store_own,
            "replace": self._replace,
            "obeyed": self._obeyed,
            "found": self._found,
        }

    def _read(self, state: str, name: str, space: Space) -> Callable[..., Any]:
        here, took = self._lanes.here, self._took

        def read() -> Any:
            try:
                value = space[name]
            except KeyError:
                raise NameError(f"name {name!r} is not defined") from None
            took(here(), clock(), state, value)
            return value

        return read

    def _store(self, state: str, name: str, space: Space) -> Callable[..., Any]:
        here, stored = self._lanes.here, self._stored

        def store(value: Any) -> None:
            before = space.get(name)
            space[name] = value
            stored(here(), clock(), state, value, before)

        return store

    def _read_attribute(self, state: str, name: str, space: Space) -> Callable[..., Any]:
        here, took = self._lanes.here, self._took

        def read_attribute(owner: Any) -> Any:
            value = getattr(owner, name)
            took(here(), clock(), state, value)
            return value

        return read_attribute

    def _store_attribute(self, state: str, name: str, space: Space) -> Callable[..., Any]:
        here, stored = self._lanes.here, self._stored

        def store_attribute(owner: Any, value: Any) -> None:
            before = getattr(owner, name, None)
            if isinstance(owner, types.ModuleType):
                owner.__dict__[name] = value
            else:
                setattr(owner, name, value)
            stored(here(), clock(), state, value, before)

        return store_attribute

    def _read_own(self, state: str, name: str, space: Space) -> Callable[..., Any]:
        here, took = self._lanes.here, self._took

        def read_own(value: Any) -> Any:
            took(here(), clock(), state, value)
            return value

        return read_own

    def _store_own(self, state: str, name: str, space: Space) -> Callable[..., Any]:
        here, stored = self._lanes.here, self._stored

        def store_own(value: Any) -> Any:
            lane = here()
            stored(lane, clock(), state, value, lane.mine.get(state, False))
            return value

        return store_own

    def _took(self, lane: Lane, t: float, state: str, value: Any) -> None:
        if lane.last.get(state, False) == value and (not value or (lane.mine.get(state) and lane.depth)):
            lane.count(state, "read")
            return
        lane.last[state] = value
        if not value:
            self._lanes.event(lane, t, state, "read", _said(value))
            return
        # A library asks many times in one call; the same place is told again only after another store.
        stack = self._lanes.stack()
        event = (t, lane.name, state, "read", _said(value), stack)
        place = (self._stores.get(state, 0), stack[0])
        if lane.met.get(state) == place:
            lane.held[state] = event
            lane.count(state, "read")
        else:
            lane.met[state] = place
            lane.held.pop(state, None)
            self._lanes.keep(lane, event)

    def _stored(self, lane: Lane, t: float, state: str, value: Any, before: Any) -> None:
        lane.mine[state] = bool(value)
        self._stores[state] = self._stores.get(state, 0) + 1
        if value or before:
            self._lanes.event(lane, t, state, "set" if value else "clear", f"{_said(value)}, was {_said(before)}")
        else:
            lane.count(state, "clear")

    def _replace(self, state: str, name: str, space: Space) -> Callable[..., Any]:
        lanes, writers = self._lanes, self._writers

        def replace(value: Any) -> None:
            before = space.get(name) or {}
            space[name] = value
            t = clock()
            lane = lanes.here()
            last = writers.get(name, lane)
            writers[name] = lane
            lost = " and its custom" if "custom" in before and "custom" not in value else ""
            under = [other for other in tuple(lanes.annotating) if other is not lane and other.lives]
            if under and (lost or lane.replaced != lanes.annotated):
                lane.replaced = lanes.annotated
                lanes.event(lane, t, state, "set", f"{name}, while {under[-1].name} annotated{lost}")
            elif last is not lane:
                lanes.event(lane, t, state, "set", f"{name}, over {last.name}'s{lost}")
            else:
                lane.count(state, "set")

        return replace

    def _obeyed(self, state: str, text: str, space: Space) -> Callable[..., Any]:
        lanes = self._lanes

        def obeyed() -> None:
            t = clock()
            lane = lanes.here()
            if state == COMPILING and lane.depth:
                lane.count(state, "obeyed")  # it compiles itself: nobody else's flag
            else:
                held = lane.held.pop(state, None)
                if held is not None:
                    lanes.keep(lane, held)
                lanes.event(lane, t, state, "obeyed", text)
                if text == RAISED:
                    lanes.written()

        return obeyed

    def _found(self, state: str, key: str, space: Space) -> Callable[..., Any]:
        lanes = self._lanes

        def found(value: Any, owner: Any) -> Any:
            if value:
                t = clock()
                lane = lanes.here()
                if lane.annotations.is_own(key):
                    lane.count(state, "obeyed")
                else:
                    lanes.event(lane, t, state, "obeyed", f"{key}: {getattr(owner, 'target', 'a node')}")
            return value

        return found


def _said(value: Any) -> str:
    return repr(value) if value is None or isinstance(value, (bool, int, str)) else type(value).__name__
