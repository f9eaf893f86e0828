"""What Ctrl-C does while nothing has begun that would have to be ended, and when nothing is left to be ended.

Python makes an exception of it wherever it comes: in the middle of an import as well, where libraries turn it into
other errors or swallow it, and what is left is shown as a traceback. Until a command begins, and once it has ended, the
process ends instead, at once and without a word. This file imports next to nothing, so that it can be the first.
"""

import os

INTERRUPTED = 130
"""As shells report it."""

try:
    import signal
except KeyboardInterrupt:
    os._exit(INTERRUPTED)


def leaving() -> None:
    """From here on Ctrl-C ends the process at once. Whoever started it with Ctrl-C ignored meant that: it stays so."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def raising() -> None:
    """From here on Ctrl-C is a ``KeyboardInterrupt`` again."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(*_: object) -> None:
    os._exit(INTERRUPTED)
