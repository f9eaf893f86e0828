"""The same work on several things at once, in threads that wait for uv."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def side_by_side(
    one: Callable[[Item], Result], items: Iterable[Item], workers: int, stop: threading.Event
) -> tuple[Result, ...]:
    """``one`` of each item, in order. An error or Ctrl-C sets ``stop`` for the others before it is passed on."""
    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(one, item) for item in items]
        try:
            return tuple(future.result() for future in futures)
        except BaseException:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
