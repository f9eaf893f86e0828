"""A file on a web server, read in pieces: the directory of a wheel of 500 MB is a hundredth of it."""

from __future__ import annotations

import io
import re

import requests

TAIL = 2**16
"""Bytes asked for first, from the end, and at least with each further question."""
MOST = 2**25
"""Bytes after which reading ends: this is for what lies beside the content."""


class Ranged(io.RawIOBase):
    """Seekable and read-only. Raises OSError where the server serves no ranges, or after ``MOST`` bytes."""

    def __init__(
        self, session: requests.Session, url: str, auth: tuple[str, str] | None = None, timeout: float | None = None
    ) -> None:
        self._session, self._url, self._auth, self._timeout = session, url, auth, timeout
        self._position, self._asked = 0, 0
        self._start, self._piece, self._size = self._ask(f"bytes=-{TAIL}")

    def readable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """Yes."""
        return True

    def tell(self) -> int:
        """Bytes from the beginning."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """As for any file."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, start + offset)
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        """As for any file."""
        left = max(0, self._size - self._position)
        wanted = left if size is None or size < 0 else min(size, left)
        if not wanted:
            return b""
        end = self._position + wanted
        if not self._start <= self._position <= end <= self._start + len(self._piece):
            last = min(self._size, max(end, self._position + TAIL)) - 1
            self._start, self._piece, _ = self._ask(f"bytes={self._position}-{last}")
        at = self._position - self._start
        data = self._piece[at : at + wanted]
        self._position += len(data)
        return data

    def _ask(self, span: str) -> tuple[int, bytes, int]:
        """Where the piece begins, the piece, and the size of the whole."""
        headers = {"Range": span, "Accept-Encoding": "identity"}
        try:
            with self._session.get(
                self._url, headers=headers, auth=self._auth, timeout=self._timeout, stream=True
            ) as answer:
                told = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", answer.headers.get("Content-Range", ""))
                if answer.status_code != requests.codes.partial_content or told is None:
                    raise OSError("the server serves no parts of files")
                start, last, size = (int(number) for number in told.groups())
                self._asked += last - start + 1
                if self._asked > MOST:
                    raise OSError(f"more than {MOST} bytes were needed")
                data = answer.content
        except requests.RequestException as error:
            raise OSError(str(type(error).__name__)) from error
        if len(data) != last - start + 1:
            raise OSError("a part of the file came cut off")
        return start, data, size
