"""A file on a web server, read in pieces: the directory of a wheel of 500 MB is a hundredth of it."""

from __future__ import annotations

import io
import re
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import requests

from bisect_env.environments.index import PAUSE, what_happened

TAIL = 2**16
"""Bytes asked for first, from the end, and at least with each further question."""
MOST = 2**25
"""Bytes after which reading ends: this is for what lies beside the content."""
GAP = 2**13
"""Bytes between two wanted parts that are fetched along: less than what one more question costs."""
AT_ONCE = 4
"""Questions to one server at a time."""

Span = tuple[int, int]
"""Where a part begins, and where it ends."""


class NoRanges(OSError):
    """The server gives files whole only."""


class _Busy(OSError):
    """The server asks to come again."""


class Pieces:
    """What was read of a file, in memory. Threads may share one."""

    def __init__(self) -> None:
        self.size: int | None = None
        """Bytes of the whole; None as long as it is not known."""
        self._spans: list[Span] = []
        self._kept: dict[Span, bytes] = {}
        self._lock = threading.RLock()

    def missing(self, start: int, end: int) -> list[Span]:
        """What is not there between two places, in order."""
        with self._lock:
            holes, at = [], start
            for first, last in self._spans[max(0, bisect_right(self._spans, (start, start)) - 1) :]:
                if first >= end:
                    break
                if first > at:
                    holes.append((at, first))
                at = max(at, last)
            return [*holes, (at, end)] if at < end else holes

    def add(self, start: int, data: bytes) -> None:
        """Keep a part of the file; what is there already stays."""
        with self._lock:
            for first, last in self.missing(start, start + len(data)):
                self._keep((first, last), data[first - start : last - start])
                self._spans.insert(bisect_right(self._spans, (first, last)), (first, last))

    def read(self, start: int, end: int) -> bytes:
        """The bytes between two places, as far as there is no hole."""
        with self._lock:
            found, at = [], start
            for span in self._spans[max(0, bisect_right(self._spans, (start, start)) - 1) :]:
                if at >= end or span[0] > at:
                    break
                if span[1] > at:
                    data = self._get(span, at, min(end, span[1]))
                    if data is None:
                        self._spans.remove(span)
                        break
                    found.append(data)
                    at = span[1]
            return b"".join(found)

    def _keep(self, span: Span, data: bytes) -> None:
        self._kept[span] = data

    def _get(self, span: Span, start: int, end: int) -> bytes | None:
        """What lies between two places in a kept span; None when it is there no more."""
        return self._kept[span][start - span[0] : end - span[0]]


class Ranged(io.RawIOBase):
    """Seekable and read-only. Every error is an OSError: :class:`NoRanges` where the server serves no parts of files.

    Args:
        session: asks; None: nothing may be asked, and what is not among the pieces cannot be read.
        url: of the file.
        auth: user and password.
        timeout: seconds for the connection, and for each read.
        size: bytes of the whole, where an index tells them: not all servers understand a question for the end of a
            file. Another size is an error.
        pieces: what was read before, and where to keep what is read.
        most: bytes after which reading ends.
        heard: told the bytes of each answer.
    """

    def __init__(
        self,
        session: requests.Session | None,
        url: str,
        auth: tuple[str, str] | None = None,
        timeout: float | None = None,
        *,
        size: int | None = None,
        pieces: Pieces | None = None,
        most: int = MOST,
        heard: Callable[[int], None] | None = None,
    ) -> None:
        self._session, self._url, self._auth, self._timeout = session, url, auth, timeout
        self._pieces, self._most, self._heard = pieces or Pieces(), most, heard or (lambda _: None)
        self._position, self._asked = 0, 0
        if self._pieces.size is None:
            self._told = size
            self._size = self._fetch(None if size is None else (max(0, size - TAIL), size))
        else:
            self._size = self._pieces.size
        self._told = self._size

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
        start, end = self._position, self._position + wanted
        data = self._pieces.read(start, end)
        while len(data) < wanted:
            # Whoever reads on finds it there.
            hole, last = self._pieces.missing(start + len(data), end)[0]
            self._fetch(self._pieces.missing(hole, min(self._size, max(last, hole + TAIL)))[0])
            data = self._pieces.read(start, end)
        self._position = end
        return data

    def lacks(self, start: int, end: int) -> bool:
        """Whether anything between two places would have to be fetched."""
        return bool(self._pieces.missing(start, end))

    def load(self, spans: Sequence[Span]) -> None:
        """Fetch parts that will be read, several at a time, neighbours together."""
        holes: list[Span] = []
        for hole in sorted(hole for span in spans for hole in self._pieces.missing(*span)):
            if holes and hole[0] - holes[-1][1] <= GAP:
                holes[-1] = (holes[-1][0], max(hole[1], holes[-1][1]))
            else:
                holes.append(hole)
        if len(holes) == 1:
            self._fetch(holes[0])
        elif holes:
            with ThreadPoolExecutor(AT_ONCE) as pool:
                list(pool.map(self._fetch, holes))

    def _fetch(self, span: Span | None) -> int:
        """Fetch a part, the file's end for None; gives the size of the whole. A torn answer is asked for once more."""
        for last in (False, True):
            try:
                start, data, size = self._ask(span)
                break
            except _Busy:
                if last:
                    raise
                time.sleep(PAUSE)
            except requests.ConnectionError as error:  # A timeout of the connection among them.
                if last or isinstance(error, requests.Timeout):
                    raise OSError(f"the server {what_happened(error)}") from error
            except (requests.exceptions.ChunkedEncodingError, EOFError) as error:
                if last:
                    raise OSError("a part of the file came cut off") from error
            except requests.RequestException as error:
                raise OSError(f"the server {what_happened(error)}") from error
        self._pieces.size = size
        self._pieces.add(start, data)
        return size

    def _ask(self, span: Span | None) -> tuple[int, bytes, int]:
        """Where the piece begins, the piece, and the size of the whole."""
        if self._session is None:
            raise OSError("offline, and this part of it was not read before")
        wanted = f"bytes=-{TAIL}" if span is None else f"bytes={span[0]}-{span[1] - 1}"
        headers = {"Range": wanted, "Accept-Encoding": "identity"}
        with self._session.get(
            self._url, headers=headers, auth=self._auth, timeout=self._timeout, stream=True
        ) as answer:
            self._check(answer)
            told = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", answer.headers.get("Content-Range", ""))
            if answer.status_code != requests.codes.partial_content or told is None:
                raise NoRanges("the server serves no parts of files")
            start, last, size = (int(number) for number in told.groups())
            if self._told is not None and size != self._told:
                raise OSError(f"it has {size} bytes and not {self._told}")
            self._asked += last - start + 1
            if self._asked > self._most:
                raise OSError(f"more than {self._most} bytes were needed")
            data = answer.content
        self._heard(len(data))
        if len(data) != last - start + 1 or (span is not None and (start, last + 1) != span):
            raise EOFError
        return start, data, size

    def _check(self, answer: requests.Response) -> None:
        """Raises OSError for an answer that is no part and not the whole either."""
        if answer.status_code == requests.codes.requested_range_not_satisfiable:
            if self._told is None:
                raise NoRanges("the server knows no questions for the end of a file")
            raise OSError(f"it does not have the {self._told} bytes that the index tells of")
        if answer.status_code in (requests.codes.unauthorized, requests.codes.forbidden):
            raise PermissionError(f"the credentials were refused (HTTP {answer.status_code})")
        if answer.status_code in (429, 502, 503, 504):
            raise _Busy(f"HTTP {answer.status_code}")
        if answer.status_code >= 400:
            raise OSError(f"HTTP {answer.status_code}")
