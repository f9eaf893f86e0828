"""Threads in which trials wait for their processes. One thread takes what they find and say, and knows the rest.

So the state of a run needs no locks, and whoever watches is told from one thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Generic, Self, TypeVar

from bisect_env.trials.records import TrialRecord

Task = TypeVar("Task")


class Pool(Generic[Task]):
    """Use it as a context manager: an exception in its body sets ``stop``, and leaving it waits for every thread.

    Args:
        size: threads.
        stop: ends what they do within a second when it is set.
        tell: gets, in the thread that waits, what was said with :meth:`say`.
    """

    def __init__(self, size: int, stop: threading.Event, tell: Callable[[str], None]) -> None:
        self._threads = ThreadPoolExecutor(size, thread_name_prefix="trial")
        self._stop, self._tell = stop, tell
        self._inbox: SimpleQueue[str | tuple[Task, TrialRecord | BaseException]] = SimpleQueue()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is not None:
            self._stop.set()
        self._threads.shutdown(wait=True, cancel_futures=True)

    def start(self, task: Task, work: Callable[[], TrialRecord]) -> None:
        """Do ``work`` in a thread; :meth:`wait` gives its record with ``task``."""

        def do() -> None:
            try:
                self._inbox.put((task, work()))
            except BaseException as error:  # noqa: BLE001 - it is raised again by whoever waits
                self._inbox.put((task, error))

        self._threads.submit(do)

    def say(self, text: str) -> None:
        """A line for whoever watches, from any thread."""
        self._inbox.put(text)

    def wait(self) -> tuple[Task, TrialRecord]:
        """The next task that ended, with its record; its exception is raised here."""
        while True:
            said = self._inbox.get()
            if isinstance(said, str):
                self._tell(said)
                continue
            task, found = said
            if isinstance(found, BaseException):
                raise found
            return task, found

    def left(self) -> Iterator[tuple[Task, TrialRecord]]:
        """What ended and was not waited for, once all threads have ended."""
        while True:
            try:
                said = self._inbox.get_nowait()
            except Empty:
                return
            if isinstance(said, tuple) and isinstance(said[1], TrialRecord):
                yield said[0], said[1]
