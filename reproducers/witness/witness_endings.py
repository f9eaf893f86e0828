"""Notes the exceptions that end a thread, and lets no process end by itself before what it did is written.

A program's own hooks stay in force: `threading.excepthook` is left to it, `sys.excepthook` is passed on to.
"""

from __future__ import annotations

import atexit
import builtins
import os
import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, NoReturn

from witness_lanes import Lanes, attributes_of
from witness_log import Log
from witness_targets import UNCAUGHT

LONGEST = 300
"""Characters of an exception's text that are kept."""
EARLIER = "Previous Traceback"
"""How the texts of dynamo's errors begin that quote one."""
TOLD = "__bisect_env_told__"
"""The attribute of an exception that has ended a thread."""
LINKS = 4
"""Exceptions behind it, its causes or what it was raised in the handling of, that are named."""
_GROUPS: Any = getattr(builtins, "BaseExceptionGroup", ())
"""Of Python 3.11 and later."""
_NO_FAILURE = (SystemExit, KeyboardInterrupt)


class Endings:
    """The process's exceptions that nobody caught, and its ways to end without running exit handlers."""

    def __init__(self, lanes: Lanes, log: Log) -> None:
        self._lanes, self._log = lanes, log
        self._noted: BaseException | None = None
        """Of the main thread."""

    def begin(self) -> None:
        """Watch from now on."""
        self._log.say(watched=UNCAUGHT, where="threading.py, sys.excepthook", how="exceptions that end a thread")
        self._watch_threads()
        passed_on = sys.excepthook

        def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
            self._main(error)
            passed_on(kind, error, trace)

        sys.excepthook = hook
        atexit.register(self._exits)
        os._exit = self._ending(os._exit)
        os.abort = self._ending(os.abort)

    def _watch_threads(self) -> None:
        """By what a thread calls when its work raised: a hook that is set now would give way to the program's own."""
        make: Callable[[], Callable[[Any], None]] = threading._make_invoke_excepthook  # type: ignore[attr-defined]

        def make_noting() -> Callable[[Any], None]:
            invoke = make()

            def invoke_noting(thread: Any) -> None:
                self._uncaught(sys.exc_info()[1])
                invoke(thread)

            return invoke_noting

        threading._make_invoke_excepthook = make_noting  # type: ignore[attr-defined]

    def _ending(self, end: Callable[..., NoReturn]) -> Callable[..., NoReturn]:
        """The same, behind the writing of the log."""

        def written_first(*given: Any) -> NoReturn:
            self._exits()
            self._log.end()
            end(*given)

        return written_first

    def _exits(self) -> None:
        """Where a hook of the program's own stood in for the one here, Python still has what ended the main thread."""
        self._main(getattr(sys, "last_exc", None) or getattr(sys, "last_value", None))

    def _main(self, error: BaseException | None) -> None:
        if error is not self._noted:
            self._noted = error
            self._uncaught(error)

    def _uncaught(self, error: BaseException | None) -> None:
        if error is None or isinstance(error, _NO_FAILURE) or not self._lanes.alive:
            return
        lane, chain = self._lanes.here(), _chain(error)
        first = chain[0]
        # Pools and joins raise again what has ended a thread, and more than one may ask.
        if TOLD in attributes_of(first):
            return
        attributes_of(first)[TOLD] = True
        name, t = lane.raiser(chain)
        stack = self._lanes.stack_of(first.__traceback__)
        self._lanes.keep(lane, (t, name, UNCAUGHT, "raised", _text(error), stack))
        self._lanes.written()


def _chain(error: BaseException) -> list[BaseException]:
    """The exception, behind the one that it was raised from, and so on: where the first one was raised, it began."""
    chain = [error]
    while len(chain) <= LINKS and (behind := _behind(chain[0])) is not None:
        chain.insert(0, behind)
    return chain


def _behind(error: BaseException) -> BaseException | None:
    """What it was raised from; of a group that was raised from nothing, its last: so it is printed."""
    if error.__cause__ is None and isinstance(error, _GROUPS):
        return error.exceptions[-1]
    return error.__cause__


def _text(error: BaseException) -> str:
    """``TrainingError: step 3 <- RuntimeError: nested``: type and first line, and those of what stands behind it.

    Of a text that begins with earlier tracebacks it is the first line behind them.
    """
    told: list[str] = []
    behind: BaseException | None = error
    while behind is not None and len(told) <= LINKS:
        try:
            lines = str(behind).strip().splitlines()
        except Exception:  # noqa: BLE001 - a text that cannot be made is no reason to lose the exception
            lines = []
        kind = type(behind).__name__
        if lines and lines[0].startswith(EARLIER):
            lines = [line for line in lines if line and not line[0].isspace() and not line.startswith(EARLIER)]
        lines = lines[:1]
        told.append(": ".join([kind, *(line.removeprefix(f"{kind}: ") for line in lines)])[:LONGEST])
        raised_from = _behind(behind)
        if raised_from is None and not behind.__suppress_context__:
            raised_from = behind.__context__
        behind = raised_from
    return " <- ".join(told)
