"""Which jobs of a command are in Slurm's hands: a small file, by which the next command finds them, whatever ended it.

It is written before an array is submitted, and when its number is known. In between only its name tells it in the
queue.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import token_hex

from bisect_env.engine import left_over
from bisect_env.engine.left_over import FILE, FOLDER
from bisect_env.environments import trees
from bisect_env.errors import InfrastructureError
from bisect_env.store.codec import decode, encode


@dataclass(frozen=True)
class Array:
    """Jobs that were submitted together."""

    token: str
    """Names it in the queue, and its jobs' folders: ``TOKEN-0``, ``TOKEN-1``, ..."""
    open: tuple[int, ...]
    """Numbers of its jobs that have not been taken in."""
    number: str = ""
    """Slurm's; empty until sbatch has told it."""


@dataclass(frozen=True)
class _Written:
    arrays: tuple[Array, ...]


class Pending:
    """The arrays of one command. Used by one thread."""

    def __init__(self, folder: Path, arrays: Iterable[Array] = ()) -> None:
        self.folder = folder
        self._arrays = {array.token: array for array in arrays}

    @property
    def arrays(self) -> tuple[Array, ...]:
        """Those with open jobs."""
        return tuple(self._arrays.values())

    def add(self, array: Array) -> None:
        """It is about to be submitted."""
        self._arrays[array.token] = array
        self._write()

    def numbered(self, token: str, number: str) -> None:
        """Slurm has it under this number."""
        self._arrays[token] = replace(self._arrays[token], number=number)
        self._write()

    def ended(self, jobs: Iterable[tuple[str, int]]) -> None:
        """Nothing further is expected of these jobs: each an array's token and a number in it."""
        for token, index in jobs:
            array = self._arrays[token]
            left = tuple(number for number in array.open if number != index)
            if left:
                self._arrays[token] = replace(array, open=left)
            else:
                del self._arrays[token]
        self._write()

    def _write(self) -> None:
        path = self.folder / FILE
        try:
            if not self._arrays:
                path.unlink(missing_ok=True)
                return
            trees.replace(path, encode(_Written(self.arrays)).encode(), durably=True)
        except OSError as error:
            raise InfrastructureError(f"{path}: the jobs in flight cannot be noted: {error.strerror}") from error


def new(root: Path) -> Pending:
    """A folder for the jobs of a command that begins.

    Raises:
        InfrastructureError: it cannot be made.
    """
    folder = root / FOLDER / f"{time.strftime('%Y%m%d-%H%M%S')}-{token_hex(2)}"
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise InfrastructureError(f"{folder}: a folder for the jobs cannot be made: {error.strerror}") from error
    return Pending(folder)


def left(root: Path) -> tuple[Pending, ...]:
    """What earlier commands left in Slurm's hands, the oldest first.

    Raises:
        InfrastructureError: a file cannot be read.
    """
    found = []
    for folder in left_over.commands(root):
        try:
            written = decode(_Written, (folder / FILE).read_bytes())
        except (OSError, InfrastructureError) as error:
            text = f"{folder / FILE}: the jobs that an earlier command left cannot be read ({error})."
            wanted = f"`squeue --me` shows whether any run; then remove {folder}"
            raise InfrastructureError(f"{text}\n  {wanted}") from error
        found.append(Pending(folder, written.arrays))
    return tuple(found)
