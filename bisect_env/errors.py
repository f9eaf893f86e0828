"""Errors a user can cause or meet, and the exit code each of them ends a command with.

Everything the command line prints without a traceback derives from :class:`BisectEnvError`, but for errors of the
system that only the machine can cause (a path that may not be written). Any other exception is a defect of this
program and is shown as one.
"""

from __future__ import annotations

from enum import IntEnum
from pathlib import Path


class ExitCode(IntEnum):
    """What a command's exit status means; the same for every command."""

    PASSED = 0
    """Found, passed, or (matrix) completed."""
    REGRESSION = 1
    """The gate failed, no culprit was reproduced, or ``--fail-on`` matched."""
    USAGE = 2
    """Usage or bad input; nothing was built and nothing was written."""
    INCONCLUSIVE = 3
    """The budget ended before the question was decided; of a bundle (unbundle): not all of it has arrived."""
    NOTHING_TO_COMPARE = 4
    """The two sides do not differ."""
    INFRASTRUCTURE = 5
    """Disk, GPU, driver or index trouble that says nothing about the cells."""
    INTERRUPTED = 130
    """Ctrl-C, as shells report it."""


class BisectEnvError(Exception):
    """An error with a message meant for the user."""

    exit_code = ExitCode.USAGE


class BadInput(BisectEnvError):
    """Something a user handed over cannot be used.

    Attributes:
        source: the file (or command-line option) that holds it.
        place: where in the source, for example ``line 4, column 3 (axes.torch[1])``; empty when it is all of it.
        found: what stands there.
        wanted: what would be right, including the nearest known word for a typo.
    """

    def __init__(self, source: str | Path, place: str, found: str, wanted: str) -> None:
        self.source, self.place, self.found, self.wanted = str(source), place, found, wanted
        where = f"{source}: {place}" if place else str(source)
        super().__init__(f"{where}: {found}\n  wanted: {wanted}")


class InfrastructureError(BisectEnvError):
    """The machine failed, not the cell: a full disk, a lost GPU, a driver that does not answer."""

    exit_code = ExitCode.INFRASTRUCTURE
