"""A process's output, kept in bounded memory: the beginning and the end, and what the patterns found in between."""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence

HEAD, TAIL = 64 * 1024, 192 * 1024
"""Characters kept of the beginning and of the end."""
_OVERLAP = 4096
"""Characters searched again with the next piece, so that a match is found across two pieces."""


class Capture:
    """Takes output piece by piece. Patterns are searched in all of it, not only in what is kept."""

    def __init__(self, patterns: Sequence[str | None] = ()) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._patterns = [re.compile(pattern, re.MULTILINE) if pattern else None for pattern in patterns]
        self._matches: list[str | None] = [None] * len(self._patterns)
        self._head = self._tail = self._searched = ""
        self.length = 0
        """Characters taken so far."""

    def take(self, piece: bytes) -> None:
        """Add a piece."""
        text = self._decoder.decode(piece)
        self.length += len(text)
        self._search(text)
        room = HEAD - len(self._head)
        if room > 0:
            self._head, text = self._head + text[:room], text[room:]
        self._tail += text
        # Cut only when twice too long: cutting at every piece would copy the tail each time.
        if len(self._tail) > 2 * TAIL:
            self._tail = self._tail[-TAIL:]

    def _search(self, text: str) -> None:
        window = self._searched + text
        for number, pattern in enumerate(self._patterns):
            found = pattern.search(window) if pattern and self._matches[number] is None else None
            if found:
                start = window.rfind("\n", 0, found.start()) + 1
                end = window.find("\n", found.end())
                self._matches[number] = window[start : end if end >= 0 else None].strip()
        self._searched = window[-_OVERLAP:] if any(self._patterns) else ""

    def match(self, number: int) -> str | None:
        """The first line in which the pattern of that number was found."""
        return self._matches[number]

    def text(self) -> str:
        """The output, with a line that says how much is missing where the middle was cut."""
        tail = self._tail[-TAIL:]
        missing = self.length - len(self._head) - len(tail)
        return f"{self._head}\n[... {missing} characters left out ...]\n{tail}" if missing else self._head + tail

    def since(self, length: int) -> str:
        """What came after the first ``length`` characters, as far as it is kept."""
        wanted = self.length - length
        return (self._head + self._tail)[-wanted:] if wanted > 0 else ""
