"""Hooks of functions: that they are entered and left, called, and what they return; and of dynamo's lock."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from witness_flags import Maker, Space
from witness_lanes import Lane, Lanes, clock
from witness_lock import watched_lock
from witness_targets import (
    ANNOTATE,
    ANNOTATION,
    BACKWARD,
    COMPILE,
    CONFIG,
    CONFIG_MODULE,
    CONFIG_NAMES,
    KERNEL,
    METRICS,
    TRACE,
    UNFUSED,
    UNLOAD,
)

NESTED = (TRACE, COMPILE)
ONCE = (BACKWARD,)
"""Entered at every warm call: of each thread only the first is told, and any that raises."""
IN_GRAPH = ("<eval_with_key>", "torchinductor_")
"""Parts of the file names of compiled graphs' code."""
RAW = "nn/attention/flex_attention.py"
"""Where the flex_attention lies that compiles itself with the eager backend when nobody compiled it."""
DEEPEST = 80
"""Frames looked at to tell whether a compiled graph called."""


class FunctionHooks:
    """Makes them."""

    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes

    def makers(self) -> dict[str, Maker]:
        """By the kind of hook."""
        return {
            "lock": self._lock,
            "enter": self._enter,
            "leave": self._leave,
            "call": self._call,
            "after": self._after,
            "returns": self._returns,
        }

    def _enter(self, state: str, place: str, space: Space) -> Callable[..., Any]:
        lanes = self._lanes

        def enter(*given: Any) -> None:
            t = clock()
            lane = lanes.here()
            if state in NESTED:
                lane.depth += 1
            if state == COMPILE:
                self._configuration(lane)
            if state == ANNOTATION and _is_annotate(place):
                lanes.annotated += 1
                lanes.annotating.add(lane)
                lane.annotations.opened(_keys(given[0]) if given else (), bool(lane.depth))
            value = _span_value(state, place, given)
            told = state not in ONCE or not lane.counts.get((state, "enter"))
            lane.spans.append((place, value, sys.exc_info()[1], told))
            if state in ONCE:
                lane.count(state, "enter")
            if told:
                lanes.event(lane, t, state, "enter", value)

        return enter

    def _leave(self, state: str, place: str, space: Space) -> Callable[..., Any]:
        lanes = self._lanes

        def leave(*given: Any) -> None:
            lane = lanes.here()
            if state in NESTED and lane.depth:
                lane.depth -= 1
                if not lane.depth:
                    lane.annotations.traced()
            if state == ANNOTATION and _is_annotate(place) and not lane.annotations.closed():
                lanes.annotating.discard(lane)
            value, before, told = _span_value(state, place, given), None, True
            # A context manager may be left in another thread, or out of order.
            for index in range(len(lane.spans) - 1, -1, -1):
                if lane.spans[index][0] == place and (not given or lane.spans[index][1] == value):
                    _, value, before, told = lane.spans.pop(index)
                    break
            error = sys.exc_info()[1]
            raised = error is not None and error is not before and not isinstance(error, GeneratorExit)
            if told or raised:
                t = clock()
                text = f"{value}, raised {type(error).__name__}" if raised else value
                lanes.event(lane, t, state, "leave", text)
                # A forked child's may be sent back, to threads that have its own ones' names.
                if error is not None and raised and lanes.alive:
                    lane.saw(error, t)

        return leave

    def _call(self, state: str, place: str, space: Space) -> Callable[..., Any]:
        lanes = self._lanes

        def first_call() -> None:
            lane = lanes.here()
            if lane.config is None:
                self._configuration(lane)

        def unfused() -> None:
            t = clock()
            lane = lanes.here()
            why = "under tracing" if lane.depth else "in a compiled graph" if _in_graph() else "eager"
            lane.count(state, "call")
            if why == "eager":
                lanes.event(lane, t, state, "call", f"{place}, {why}")

        def launched(kernel: Any = None) -> None:
            # One for any device has a function for each, and loads what is missing here.
            if getattr(kernel, "function", kernel) is None and not getattr(kernel, "device_agnostic", False):
                lane = lanes.here()
                lanes.event(lane, clock(), state, "call", f"{_kernel(kernel)} launched and not loaded")

        def unloaded(kernel: Any = None) -> None:
            if getattr(kernel, "module", None) is not None or getattr(kernel, "modules", None):
                lanes.event(lanes.here(), clock(), state, "call", f"{_kernel(kernel)} unloaded")

        if state == KERNEL:
            return unloaded if place.rpartition(".")[2] == UNLOAD else launched
        return {CONFIG: first_call, UNFUSED: unfused}[state]

    def _returns(self, state: str, place: str, space: Space) -> Callable[..., Any]:
        lanes = self._lanes

        def noted(value: Any) -> Any:
            custom = value.get("custom") if isinstance(value, dict) else None
            if isinstance(custom, dict) and custom:
                t = clock()
                lane = lanes.here()
                # Nothing is traced outside of a trace or a compile: who looks there takes nothing.
                foreign = lane.annotations.taken(_keys(custom), lanes.annotated) if lane.depth else []
                if foreign:
                    lanes.event(lane, t, state, "read", ", ".join(foreign))
            return value

        def returns(value: Any) -> Any:
            if isinstance(value, tuple) and value and value[0]:
                t = clock()
                name = str(value[1])
                limit = getattr(sys.modules.get(CONFIG_MODULE), name, "")
                lanes.event(lanes.here(), t, state, "obeyed", f"{name}={limit} reached, runs eagerly")
            return value

        return noted if state == ANNOTATION else returns

    def _after(self, state: str, place: str, space: Space) -> Callable[..., Any]:
        def after(owner: Any = None, name: str = "", value: Any = None) -> None:
            if name in CONFIG_NAMES and getattr(owner, "__name__", "") == CONFIG_MODULE:
                lane = self._lanes.here()
                given = (name, repr(value))
                if given in lane.given:
                    lane.count(state, "set")  # patched for a while and put back, at every call
                else:
                    lane.given.add(given)
                    self._lanes.event(lane, clock(), state, "set", f"{name}={value!r}")
                if lane.config is not None:
                    lane.config[name] = value

        return after

    def _configuration(self, lane: Lane) -> None:
        """Tell what of dynamo's configuration this thread sees, where it differs from what it saw last."""
        module = sys.modules.get(CONFIG_MODULE)
        known, lane.config = lane.config or {}, dict(lane.config or {})
        known_names = getattr(module, "_config", {})
        for name in CONFIG_NAMES:
            if name in known_names and (name != "cache_size_limit" or "recompile_limit" not in known_names):
                value = getattr(module, name)
                if name not in known or known[name] != value:
                    lane.config[name] = value
                    self._lanes.event(lane, clock(), CONFIG, "read", f"{name}={value!r}")

    def _lock(self, state: str, name: str, space: Space) -> Callable[..., Any]:
        def lock(inner: Any) -> Any:
            return watched_lock(inner, self._lanes, state)

        return lock


def _span_value(state: str, place: str, given: tuple[Any, ...]) -> str:
    if state == COMPILE:
        trigger = str(getattr(given[0], "name", given[0])).lower().replace("_", " ") if given else "compile"
        trigger = {"dynamo": "forward"}.get(trigger, trigger)
        return f"{trigger} {given[1]}" if len(given) > 1 else trigger
    if state == ANNOTATION and _is_annotate(place):
        return " ".join((ANNOTATE, ", ".join(_keys(*given)))).strip() if given else ANNOTATE
    if state == KERNEL:
        return f"{place.rpartition('.')[2]} {_kernel(given[0]) if given else ''}".strip()
    if state == METRICS and given:
        return f"{place} {_number(given[0])}"
    return ".".join(place.split(".")[-2:])


def _is_annotate(place: str) -> bool:
    return place.rpartition(".")[2] == ANNOTATE


def _keys(annotations: Any) -> list[str]:
    """Of a dictionary of annotations. Another thread may change it meanwhile: it is copied in one step."""
    if not isinstance(annotations, dict):
        return []
    return [str(key) if isinstance(key, (str, int)) else type(key).__name__ for key in list(annotations)]


def _kernel(kernel: Any) -> str:
    """The name of a file of kernels; of a kernel or what tunes it with a number, which is the same for the same object.

    Equal names are no more than equal source.
    """
    if isinstance(kernel, str):
        return kernel.rpartition("/")[2]
    name = getattr(kernel, "name", None) or getattr(getattr(kernel, "fn", None), "__name__", "a kernel")
    return f"{name} {_number(kernel)}"


def _number(thing: Any) -> str:
    """Of an object, the same for the same one."""
    return f"#{id(thing) >> 4 & 0xFFFFFF:x}"


def _in_graph() -> bool:
    """Whether a compiled graph of the caller's called: not one that flex_attention made because it was not compiled."""
    frame: Any = sys._getframe(2)
    graph = wrapper = False
    for _ in range(DEEPEST):
        if frame is None:
            break
        code = frame.f_code
        if wrapper:
            return not (code.co_name == "flex_attention" and code.co_filename.endswith(RAW))
        graph = graph or any(part in code.co_filename for part in IN_GRAPH)
        wrapper = graph and code.co_name == "compile_wrapper"
        frame = frame.f_back
    return graph
