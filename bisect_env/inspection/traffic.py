"""What reading over the network came to."""

from __future__ import annotations

import threading
import time

from bisect_env.words import counted


class Traffic:
    """Counts for one command; its parts may report from several threads."""

    def __init__(self) -> None:
        self.requests, self.bytes, self.versions = 0, 0, 0
        """Answers with content, the bytes of them, and wheels that were opened for it (kept ones too)."""
        self.notes: list[str] = []
        """Sentences that a reader must be told: which wheel was taken where none fits, what was fetched whole."""
        self._began = time.monotonic()
        self._last = self._began
        self._lock = threading.Lock()

    def heard(self, size: int) -> None:
        """An answer of so many bytes has come."""
        with self._lock:
            self.requests += 1
            self.bytes += size
            self._last = time.monotonic()

    def opened(self) -> None:
        """A version on an index was opened."""
        with self._lock:
            self.versions += 1
            self._last = time.monotonic()

    def note(self, sentence: str) -> None:
        """Something to be told."""
        with self._lock:
            self.notes.append(sentence)

    @property
    def seconds(self) -> float:
        """From the beginning to the last answer."""
        return self._last - self._began

    def __str__(self) -> str:
        """``8 versions, 14.2 MB in 61 requests, 6.0 s``."""
        versions = counted(self.versions, "version")
        if not self.requests:
            return f"{versions}, all from what was kept"
        requests = counted(self.requests, "request")
        return f"{versions}, {self.bytes / 1e6:.1f} MB in {requests}, {self.seconds:.1f} s"
