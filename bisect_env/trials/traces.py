"""Tracebacks found in a process's output: Python's own, and faulthandler's after a crash."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import PurePath

from bisect_env.trials.records import Failure, Signature
from bisect_env.trials.signature import LEFT_OUT, announces_frames, signature_of

MESSAGE_LIMIT, TRACEBACK_LIMIT = 4_000, 16_000

_RANK = re.compile(r"^\[rank\d+\]:\s?", re.MULTILINE)
_MARGIN = re.compile(r"( *)[|+] (?:Exception Group )?$")
"""Before the traceback of an exception group, or of one in it."""
_FRAME = re.compile(r'^\s*File "(?P<file>[^"]*)", line (?P<line>\d+),? in (?P<function>.+?)\s*$')
_RAISED = re.compile(r"^(?P<type>[A-Za-z_][\w.]*)(?::\s?(?P<message>.*))?$")
_LAST_LINES = 40
"""Lines of a message kept after the exception's own, but for tracebacks that it quotes; the rest is other output."""


@dataclass(frozen=True)
class Trace:
    """An exception as printed."""

    type: str
    message: str
    module: str
    where: str
    text: str

    def failure(self, thread: str, t: float) -> Failure:
        """The failure it stands for."""
        signature = signature_of(self.type, self.message, self.module)
        message, text = cut(self.message, MESSAGE_LIMIT), cut(self.text, TRACEBACK_LIMIT)
        return Failure(thread, signature, message, self.where, text, t)


def cut(text: str, limit: int) -> str:
    """``text``, its middle left out when it is longer than ``limit`` characters.

    Of lines whole ones are kept, but for very long ones: errors that quote tracebacks tell what they are behind them.
    """
    if len(text) <= limit:
        return text
    begin, end = text[: limit // 2], text[-limit // 2 :]
    head, tail = begin.rpartition("\n")[0], end.partition("\n")[2]
    return "\n".join((head if len(head) > limit // 4 else begin, LEFT_OUT, tail if len(tail) > limit // 4 else end))


def module_of(file: str) -> str:
    """The dotted name of an installed module's file; empty for the standard library and the user's own files."""
    parts = PurePath(file).with_suffix("").parts
    for place in range(len(parts) - 1, -1, -1):
        if parts[place] in ("site-packages", "dist-packages"):
            names = parts[place + 1 :]
            return ".".join(names[:-1] if names[-1:] == ("__init__",) else names)
    return ""


def last_traceback(output: str) -> Trace | None:
    """The last Python traceback in ``output``, None when there is none."""
    output = _RANK.sub("", output)
    start = output.rfind("Traceback (most recent call last):")
    if start < 0:
        return None
    lines = _without_margin(output[:start].rpartition("\n")[2], output[start:].splitlines())
    module = where = ""
    for number, line in enumerate(lines[1:], start=1):
        frame = _FRAME.match(line)
        if frame:
            found = module_of(frame["file"])
            if found or not module:
                module = found
                where = f"{frame['function']}:{frame['line']}"
        elif line and not line[0].isspace():
            raised = _RAISED.match(line)
            if raised is None:
                return None
            rest = _following(lines[number + 1 :])
            message = "\n".join([raised["message"] or "", *rest]).strip()
            return Trace(raised["type"], message, module, where, "\n".join([*lines[: number + 1], *rest]))
    return None


def _without_margin(before: str, lines: list[str]) -> list[str]:
    """The lines of a traceback, those of a group's without the bar that they stand behind.

    Args:
        before: what stands before it on its first line.
        lines: from it on.
    """
    margin = _MARGIN.match(before)
    if margin is None:
        return lines
    bar, end = f"{margin[1]}| ", f"{margin[1]}+-"
    # Of a message with several lines only the first one stands behind it.
    return [lines[0], *(line.removeprefix(bar) for line in takewhile(lambda line: not line.startswith(end), lines[1:]))]


def _following(lines: Sequence[str]) -> list[str]:
    """Of the lines behind an exception's own those that may be its message's."""
    kept: list[str] = []
    own, quoted = 1, False
    for line in lines:
        quoted = announces_frames(line) or (quoted and (not line or line[0].isspace()))
        own += not quoted
        if own > _LAST_LINES:
            break
        kept.append(line)
    return kept


def crash(number: int, output: str, t: float) -> Failure:
    """The failure of a process that died of signal ``number``: its name, and where faulthandler saw the thread."""
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    start = output.rfind("Fatal Python error:")
    module = where = said = ""
    if start >= 0:
        said, _, rest = output[start:].partition("\n")
        # Most recent call first; only the crashing thread is "current".
        _, _, stack = rest.partition("Current thread")
        for line in stack.splitlines()[1:]:
            frame = _FRAME.match(line)
            if frame is None:
                break
            where = where or f"{frame['function']}:{frame['line']}"
            module = module_of(frame["file"])
            if module:
                where = f"{frame['function']}:{frame['line']}"
                break
    text = output[start:] if start >= 0 else ""
    message = said or f"the process died of {name}"
    return Failure("main", Signature(name, "", module), message, where, cut(text, TRACEBACK_LIMIT), t)
