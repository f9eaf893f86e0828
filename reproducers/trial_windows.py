"""Which threads are compiling right now, told as `window` events.

Part of the protocol module that the shipped reproducers share; nothing here is a reproducer.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from trial_events import Events


class Windows:
    """Which threads are compiling right now, from dynamo's own bracket round every compile."""

    def __init__(self, events: Events) -> None:
        self._events, self._lock = events, threading.Lock()
        self._open: dict[int, int] = {}

    def follow(self) -> None:
        """Start following; torch must be importable. Without the bracket (torch before 2.7) a `note` says so."""
        handler = importlib.import_module("torch._dynamo.callback").callback_handler
        bracket = getattr(handler, "install_callbacks", None)
        if bracket is None:
            self._events.emit("note", key="windows", value="this torch does not tell when a compile begins and ends")
            return

        # The handler's public callbacks only fire for the outermost compile of the whole process, whichever thread
        # it is in; the bracket itself is entered by every compiling thread, forward and lazy backward alike.
        @contextmanager
        def followed(*args: Any, **kwargs: Any) -> Iterator[None]:
            what = getattr(args[0], "name", "compile").lower() if args else "compile"
            self._change(1, "begin", what)
            try:
                with bracket(*args, **kwargs):
                    yield
            finally:
                self._change(-1, "end", what)

        handler.install_callbacks = followed

    def _change(self, by: int, phase: str, what: str) -> None:
        ident = threading.get_ident()
        with self._lock:
            depth = self._open.pop(ident, 0)
            if depth + by:
                self._open[ident] = depth + by
        if min(depth, depth + by) == 0:
            self._events.emit("window", thread=thread_name(), phase=phase, what=what)

    def open_elsewhere(self) -> bool:
        """Whether a thread other than the caller's is compiling."""
        with self._lock:
            return bool(self._open.keys() - {threading.get_ident()})


def thread_name() -> str:
    """Whose work this thread does: a worker's name, or ``autograd`` for a thread that Python did not start."""
    thread = threading.current_thread()
    return "autograd" if isinstance(thread, threading._DummyThread) else thread.name
