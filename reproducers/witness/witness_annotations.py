"""FX annotations as a thread knows them: those of its own, and those that it took without having written them.

FX keeps what it notes of the nodes being traced in one dictionary for the whole process, and `annotate` writes into it.
Whatever thread traces meanwhile takes it for its own nodes. Which of them are a thread's own only that thread can tell:
what it wrote itself since its outermost trace or compile began.
"""

from __future__ import annotations

from collections.abc import Iterable


class Annotations:
    """One thread's. Only this thread calls."""

    def __init__(self) -> None:
        self._open: list[frozenset[str]] = []
        self._during: set[str] = set()
        """Written since the outermost trace or compile began: nodes carry them although they are closed again."""
        self._taken: dict[str, int] = {}

    def opened(self, keys: Iterable[str], tracing: bool) -> None:
        """The thread annotates; ``tracing``: inside of a trace or a compile of its own."""
        self._open.append(frozenset(keys))
        if tracing:
            self._during |= self._open[-1]

    def closed(self) -> bool:
        """Its innermost annotation ended. Whether another one is open."""
        if self._open:
            self._open.pop()
        return bool(self._open)

    def traced(self) -> None:
        """Its outermost trace or compile ended."""
        self._during.clear()
        self._taken.clear()

    def is_own(self, key: str) -> bool:
        """Whether the thread wrote it."""
        return key in self._during or any(key in keys for keys in self._open)

    def taken(self, keys: Iterable[str], number: int) -> list[str]:
        """Those of ``keys`` that are not its own: each once in a trace or compile, and again when ``number`` changed.

        It is that of the annotations that were written so far, by all threads.
        """
        new = [key for key in keys if self._taken.get(key) != number and not self.is_own(key)]
        self._taken.update(dict.fromkeys(new, number))
        return new
