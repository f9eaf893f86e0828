"""What several commands share: the project's folder, the terminal, and a clean end on a signal."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, TextIO, TypeVar

import click

from bisect_env.errors import BadInput, InfrastructureError
from bisect_env.store.database import Store

Command = TypeVar("Command", bound=Callable[..., object])

STORE_FILE = "store.sqlite"


def root_option(function: Command) -> Command:
    """Adds ``--store``: the folder of environments, caches and results."""
    option = click.option(
        "--store",
        "root",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path(".bisect-env"),
        show_default=True,
        envvar="BISECT_ENV_STORE",
        help="Folder of the environments, the prepared compile caches and the stored trials.",
    )
    return option(function)


def project_folder(root: Path) -> Path:
    """The folder that ``--store`` means.

    Raises:
        BadInput: it is relative to a folder that was deleted, or its name is not UTF-8, which uv needs.
    """
    try:
        absolute = root.absolute()
        str(absolute).encode()
    except FileNotFoundError:
        found = f"{root}, in a working folder that was deleted"
        raise BadInput("--store", "", found, "cd to a folder that exists, or an absolute path") from None
    except UnicodeEncodeError:
        raise BadInput("--store", "", f"{absolute!r} is not UTF-8", "a folder whose whole path is UTF-8") from None
    return absolute


def stored(root: Path) -> Store:
    """The store in the folder that ``--store`` means, as it is now; neither is written to.

    Raises:
        BadInput: there is none.
    """
    path = project_folder(root) / STORE_FILE
    if not path.is_file():
        wanted = f"the folder of an earlier run, with its {STORE_FILE}; or run a matrix first"
        raise BadInput("--store", "", f"{root}: there is no store", wanted)
    return Store(path, read_only=True)


def say(text: str) -> None:
    """Print the result. A reader that went away (``| head``) changes no exit code, and neither does a closed stdout.

    Raises:
        InfrastructureError: it cannot be written.
    """
    try:
        click.echo(text)
    except OSError as error:
        to_nowhere(sys.stdout)
        if not isinstance(error, BrokenPipeError):
            raise InfrastructureError(f"standard output cannot be written: {error.strerror}") from error


def to_nowhere(stream: TextIO) -> None:
    """Let a stream that cannot be written end in nothing, what it still buffers included.

    Python flushes it at exit, and a failure then changes the exit code to 120.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


class Progress:
    """Standard error for the progress of a run, which goes on when nobody listens any more (``2>&1 | head``)."""

    def __init__(self) -> None:
        self._stream = sys.stderr or open(os.devnull, "w")  # noqa: PTH123, SIM115

    def write(self, text: str) -> int:
        """As a text stream's."""
        self._try(self._stream.write, text)
        return len(text)

    def flush(self) -> None:
        """As a text stream's."""
        self._try(self._stream.flush)

    def _try(self, act: Callable[..., object], *args: str) -> None:
        try:
            act(*args)
        except OSError:
            to_nowhere(self._stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def complain(text: str) -> None:
    """Print to standard error, as far as anybody listens: the exit code says it too."""
    with suppress(OSError):
        click.echo(text, err=True)


@contextmanager
def ends_cleanly() -> Iterator[None]:
    """Let SIGTERM and SIGHUP unwind like Ctrl-C, so that no child is left running."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    previous = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
