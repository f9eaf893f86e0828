"""The events of a trial: written one JSON object a line, and what a failure's event says of an exception.

Part of the protocol module that the shipped reproducers share; nothing here is a reproducer.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any

MESSAGE_LIMIT, TRACEBACK_LIMIT = 4_000, 16_000
"""Characters kept: the beginning and the end."""


class Events:
    """Writes events: a whole line in one write, so that threads and a kill never mix or split two events.

    By hand (no ``path``) the events are kept in ``seen`` for the summary instead.
    """

    def __init__(self, path: str | None = None) -> None:
        self.seen: list[dict[str, Any]] = []
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644) if path else None

    def emit(self, event: str, *, t: float | None = None, **fields: Any) -> None:
        """Write one event; ``t`` is now unless given (unix seconds)."""
        record = {"event": event, "t": time.time() if t is None else t, **fields}
        if self._descriptor is None:
            self.seen.append(record)
        else:
            os.write(self._descriptor, (json.dumps(record, default=str) + "\n").encode())


def describe(error: BaseException) -> dict[str, Any]:
    """The keys of a `failure` event but the thread: ``module`` is that of the innermost library frame."""
    module = where = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        name = frame.f_globals.get("__name__") or ""
        own = name == "__main__" or Path(frame.f_code.co_filename).parent == Path(__file__).parent
        if name and not own and name.partition(".")[0] not in sys.stdlib_module_names:
            module, where = name, f"{frame.f_code.co_name}:{line}"
    text = _cut("".join(traceback.format_exception(type(error), error, error.__traceback__)), TRACEBACK_LIMIT)
    message = _cut(str(error), MESSAGE_LIMIT)
    return {"type": type(error).__name__, "message": message, "module": module, "where": where, "traceback": text}


def _cut(text: str, limit: int) -> str:
    """Its middle left out where it is longer, by lines: errors that quote tracebacks tell the rest behind them."""
    if len(text) <= limit:
        return text
    begin, end = text[: limit // 2], text[-limit // 2 :]
    head, tail = begin.rpartition("\n")[0], end.partition("\n")[2]
    return "\n".join((head if len(head) > limit // 4 else begin, "[...]", tail if len(tail) > limit // 4 else end))
