"""Answers that are looked for once, also where looking for them runs in a circle."""

from __future__ import annotations

from collections.abc import Callable

from bisect_env.inspection import meanings as why
from bisect_env.inspection.meanings import Meaning, Unknown

DEEPEST = 40
"""Most lookups inside each other: longer chains are given up as unknown, before Python's own limit."""

PATIENCE = 300
"""Lookups for one question after which what a circle cut short is kept as it is. Functions that return each other's
results make circles in circles: exact answers would take time exponential in their number."""


class Answers:
    """What was found by the question; a question asked while it is being answered has no answer (a circle)."""

    def __init__(self) -> None:
        self._kept: dict[object, tuple[Meaning, ...]] = {}
        self._busy: set[object] = set()
        self._cut = False
        self._steps = 0

    def once(self, key: object, find: Callable[[], tuple[Meaning, ...]]) -> tuple[Meaning, ...]:
        """The kept answer, or the one that ``find`` comes to."""
        if key in self._kept:
            return self._kept[key]
        if key in self._busy:
            self._cut = True
            return ()
        if len(self._busy) > DEEPEST:
            self._cut = True
            return (Unknown(why.RESULT),)
        before, self._cut = self._cut, False
        self._steps = self._steps + 1 if self._busy else 0
        self._busy.add(key)
        try:
            found = find()
        finally:
            self._busy.discard(key)
        # What a circle cut short holds only for who asked in the middle of it.
        if not self._cut or not self._busy or self._steps > PATIENCE:
            self._kept[key] = found
        self._cut = bool(self._busy) and (self._cut or before)
        return found
