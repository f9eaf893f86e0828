"""What several commands share: the project's folder, the terminal, and a clean end on a signal."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TypeVar

import click

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


def say(text: str) -> None:
    """Print the result. A reader that went away (``| head``) changes no exit code."""
    try:
        click.echo(text)
    except BrokenPipeError:
        # Or the flush at exit would complain.
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115


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
