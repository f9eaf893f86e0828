"""Checks as GitHub Actions shows them: annotations, and a step's summary within its limit. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bisect_env.matrix.urls import without_credentials
from bisect_env.report.checks import Check, Level
from bisect_env.report.rows import cut

MOST = 10
"""Annotations of a level that GitHub shows of one step (docs.github.com, limits of annotations)."""
LONGEST = 1000
"""Characters of an annotation's message: more than a reader of a list takes in."""
LIMIT = 1024 * 1024
"""Bytes of a step's summary; more of them, and GitHub shows none of it."""
CUT = b"\n(Cut here: GitHub takes 1 MiB a step. The whole report is in the log.)\n"

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def commands(title: str, checks: Sequence[Check], file: str = "") -> list[str]:
    """Workflow commands, one a line, the most important first.

    Of a level with more than GitHub shows, the last one says how many are left out.

    Args:
        title: before each name, ``matrix laptop``.
        checks: in their order, which decides among equals.
        file: path of the matrix file within the repository; empty: none.
    """
    lines = []
    for level in Level:
        loud = sorted((check for check in checks if check.level is level), key=lambda check: check.weight)
        shown = loud if len(loud) <= MOST else loud[: MOST - 1]
        lines += [_command(level, f"{title}: {check.name}", check.message, file) for check in shown]
        if len(loud) > len(shown):
            others = ", ".join(f"{check.name} ({check.kind})" for check in loud[len(shown) :])
            lines.append(_command(level, f"{title}: {len(loud) - len(shown)} more", others, file))
    return lines


def summary(text: str, taken: int = 0) -> bytes:
    """Markdown for a step's summary that holds ``taken`` bytes already, cut at a line where it would not fit.

    Nothing where not even a line fits.
    """
    data = f"{without_credentials(text)}\n".encode(errors="backslashreplace")
    room = LIMIT - taken
    if len(data) <= room:
        return data
    end = data.rfind(b"\n", 0, max(0, room - len(CUT))) + 1
    return data[:end] + CUT if end else b""


def _command(level: Level, title: str, message: str, file: str) -> str:
    properties = [("file", file), ("title", title)]
    given = ",".join(f"{name}={_property(value)}" for name, value in properties if value)
    return f"::{level} {given}::{_data(cut(message, LONGEST))}"


def _data(text: str) -> str:
    """As a command's message: the runner splits at line ends and undoes these escapes (toolkit, ``command.ts``)."""
    clean = _CONTROL.sub("", without_credentials(text))
    return clean.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
