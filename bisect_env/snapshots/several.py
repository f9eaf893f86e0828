"""Several reports in one text, as people post them: a good environment and a bad one. Which is meant is asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bisect_env.errors import BadInput

MOST_SHOWN = 9


def only(text: str, opening: re.Pattern[str], origin: str, marks: re.Pattern[str] | None = None) -> None:
    """Nothing, when a report of this form begins once at most.

    Args:
        text: all that was pasted.
        opening: what every report of the form begins with; its lines, not its columns.
        origin: for the message.
        marks: what tells one report from the next, for the message.

    Raises BadInput: several begin, and nothing says which one is meant.
    """
    starts = beginnings(text, opening)
    if len(starts) < 2:
        return
    ends = [*starts[1:], len(text.split("\n")) + 1]
    said = []
    for number, (start, end) in enumerate(zip(starts[:MOST_SHOWN], ends, strict=False), 1):
        part = "\n".join(text.split("\n")[start - 1 : end - 1])
        mark = marks.search(part) if marks is not None else None
        words = f" ({' '.join(mark[0].split())[:60]})" if mark is not None else ""
        said.append(f"{origin}#{number} for the one at line {start}{words}")
    raise BadInput(origin, f"line {starts[1]}", f"{len(starts)} reports in one text", "\n    ".join(said))


def beginnings(text: str, opening: re.Pattern[str]) -> list[int]:
    """The lines, from 1, that a report begins in."""
    return [number for number, line in enumerate(text.split("\n"), 1) if opening.match(line) is not None]


def pick(text: str, number: int, openings: Sequence[re.Pattern[str]], origin: str) -> str:
    """The report of this number, from 1, of the form that has the most; lines before and after it are blank then.

    Raises BadInput: there are not so many.
    """
    starts = max((beginnings(text, opening) for opening in openings), key=len)
    if not 1 <= number <= len(starts):
        wanted = (
            f"a number from 1 to {len(starts)}" if starts else "one of several reports (collect_env, transformers env)"
        )
        raise BadInput(origin, f"#{number}", f"{len(starts)} reports are recognised in it", wanted)
    lines = text.split("\n")
    # What stands before the first report belongs to it: a heading, or the line that says how it was made.
    start = 0 if number == 1 else starts[number - 1] - 1
    end = starts[number] - 1 if number < len(starts) else len(lines)
    return "\n".join([*[""] * start, *lines[start:end]])
