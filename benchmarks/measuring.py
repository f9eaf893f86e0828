"""What the benchmarks share: progress, a scratch folder, timing of processes, the machine in words, the table."""

from __future__ import annotations

import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from tabulate import tabulate

from bisect_env import __version__
from bisect_env.cli.common import ends_cleanly
from bisect_env.environments.uv import find_uv
from bisect_env.trials import machine

FOREIGN = ("NOX_", "TOX_", "PYTHON", "VIRTUAL_ENV", "BISECT_ENV_")
"""Beginnings of the parent's variables that would change what is measured."""


def say(text: str) -> None:
    """One line of progress on standard error."""
    print(f"{time.strftime('%H:%M:%S')}  {text}", file=sys.stderr, flush=True)


@contextmanager
def scratch(parent: Path | None) -> Iterator[Path]:
    """A folder of this run's own under ``parent`` (the system's temporary folder), removed at the end, also on a
    signal. Not being able to remove it is an error: it may hold gigabytes."""
    with ends_cleanly():
        folder = Path(tempfile.mkdtemp(prefix="bisect-env-benchmark-", dir=parent)).resolve()
        try:
            yield folder
        finally:
            shutil.rmtree(folder)


def parent_environment(**extra: str) -> dict[str, str]:
    """This process's variables without those that would change what is measured, and with ``extra``."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    return kept | extra


@dataclass(frozen=True)
class Cost:
    """What something took, in seconds."""

    wall: float = 0.0
    cpu: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.wall + other.wall, self.cpu + other.cpu)


class Clock:
    """Takes the time from its making: of the wall, and of this process with all children that it has waited for.

    On a busy machine wall time scatters, and the CPU time much less.
    """

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), self._spent()

    def read(self) -> Cost:
        """What has passed."""
        return Cost(time.perf_counter() - self._wall, self._spent() - self._cpu)

    @staticmethod
    def _spent() -> float:
        now = os.times()
        return now.user + now.system + now.children_user + now.children_system


def run(command: Sequence[str | Path], env: Mapping[str, str], cwd: Path | None = None) -> Cost:
    """What a process took, from its start to its end. Exits with its output when it fails."""
    clock = Clock()
    # A group of its own: a tool that is interrupted must not leave its uv or pip writing into what is being removed.
    with subprocess.Popen(
        command,
        env=env,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate()
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    cost = clock.read()
    if process.returncode:
        words = " ".join(str(word) for word in command)
        sys.exit(f"{words} ended with {process.returncode}:\n{output[-5000:]}")
    return cost


def show(rows: Sequence[Sequence[str]], headers: Sequence[str], notes: Sequence[str]) -> None:
    """The table on standard output, with the machine and the notes below it."""
    print(tabulate(rows, headers, tablefmt="github", disable_numparse=True))
    print()
    for line in (_machine(), *notes):
        print(line)


def uv_version() -> str:
    """Version of the uv that bisect-env runs."""
    said = subprocess.run([find_uv(), "--version"], capture_output=True, text=True, check=True).stdout
    return said.split()[1]


def _machine() -> str:
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    return (
        f"{date.today()}, {len(machine.cores())} cores (load {load}), {platform.system()} {platform.release()} "
        f"{platform.machine()}, Python {platform.python_version()}, uv {uv_version()}, bisect-env {__version__}"
    )
