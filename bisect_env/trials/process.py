"""A trial's process under its supervisor: start, wait, output, end. Nothing of it is left running afterwards."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

import psutil

from bisect_env.trials import supervisor
from bisect_env.trials.capture import Capture
from bisect_env.trials.isolation import MARKER

_END_TIMEOUT = 40.0
"""Longest the supervisor may take to end a trial: its own bound of 30 s and some."""
_PIPE_BYTES = 1 << 20


class CannotStart(Exception):
    """The command could not be started; the message says why."""


class SupervisorLost(Exception):
    """The supervisor is gone and has not said how the trial ended, which says nothing about the cell."""


class Process:
    """A running trial. Use it as a context manager: leaving it kills whatever is left."""

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        variables: Mapping[str, str],
        capture: Capture,
        cores: Sequence[int] = (),
    ) -> None:
        """Start ``command`` in ``folder`` with exactly these variables, bound to ``cores`` (all when empty).

        Raises:
            CannotStart: the command cannot be executed, and that is known already.
            SupervisorLost: the supervisor did not start.
        """
        self.capture = capture
        self.status: int | None = None
        """Exit status, negative for a signal; None while it runs."""
        self.left: tuple[str, ...] = ()
        """Names of the processes that were still there when it was ended."""
        self._marker = variables.get(MARKER, "")
        self._words = b""
        self._deaf = False
        self._output, inherited = os.pipe()
        with contextlib.suppress(OSError):  # Only fewer waits for a process that prints much.
            fcntl.fcntl(self._output, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        os.set_blocking(self._output, False)
        try:
            self._supervisor = subprocess.Popen(
                [sys.executable, "-I", "-S", supervisor.__file__, str(inherited)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=inherited,
                # What is preloaded there would write into the trial's output, were it only that it cannot be loaded.
                env={name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "LD_AUDIT")},
                pass_fds=(inherited,),
                start_new_session=True,
            )
        except BaseException:
            os.close(self._output)
            raise
        finally:
            os.close(inherited)
        assert self._supervisor.stdin is not None and self._supervisor.stdout is not None
        self._orders, self._answers = self._supervisor.stdin.fileno(), self._supervisor.stdout.fileno()
        os.set_blocking(self._answers, False)
        self._poll = select.poll()
        self._poll.register(self._output, select.POLLIN)
        self._poll.register(self._answers, select.POLLIN)
        job = {"command": list(command), "folder": str(folder), "variables": dict(variables), "cores": list(cores)}
        try:
            self.pid = self._start(job)
        except BaseException:
            self._close()
            raise

    def _start(self, job: Mapping[str, object]) -> int:
        _write(self._orders, json.dumps(job).encode() + b"\n")
        pid: int | None = None
        while True:
            # All that came at once is heard: on a busy machine it is the whole life of a short process.
            for words in self._pump(None):
                if isinstance(found := words.get("pid"), int):
                    pid = found
                self._hear(words)
            if pid is not None:
                return pid
            if self._deaf:
                raise SupervisorLost(f"the trial's supervisor did not start:\n{self.capture.text()}")

    def __enter__(self) -> Process:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            self.end()
        finally:
            self._close()

    def wait(self, timeout: float) -> bool:
        """Take output for at most ``timeout`` seconds; True as soon as the main process has ended.

        Raises:
            CannotStart: it turned out that the command cannot be executed.
            SupervisorLost: the supervisor was killed.
        """
        deadline = time.monotonic() + timeout
        while self.status is None:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return False
            for words in self._pump(remaining):
                self._hear(words)
            if self._deaf and self.status is None:
                raise SupervisorLost(f"the trial's supervisor was killed\n{self.capture.text()[-2000:]}")
        return True

    def family(self) -> list[psutil.Process]:
        """The main process and all that descend from it, whatever session they moved to."""
        try:
            return psutil.Process(self._supervisor.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []

    def collect(self, quiet: float, timeout: float) -> None:
        """Take output until there was none for ``quiet`` seconds, or for ``timeout`` seconds in all."""
        deadline = time.monotonic() + timeout
        last, length = time.monotonic(), self.capture.length
        while time.monotonic() < min(deadline, last + quiet):
            for words in self._pump(min(quiet, 0.05)):
                self._hear(words)
            if self.capture.length != length:
                last, length = time.monotonic(), self.capture.length

    def end(self, grace: float = 0.0) -> None:
        """End all that is left: SIGTERM, and SIGKILL after ``grace`` seconds (at once when 0). Fills ``left``."""
        if self._supervisor.poll() is None:
            with contextlib.suppress(BrokenPipeError):
                _write(self._orders, f"end {grace}\n".encode())
            deadline = time.monotonic() + grace + _END_TIMEOUT
            while not self._deaf and time.monotonic() < deadline:
                for words in self._pump(0.5):
                    self._hear(words)
            if self._supervisor.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._supervisor.wait(1.0)
            if self._supervisor.poll() is None:
                self._supervisor.kill()
                self._supervisor.wait()
        if self._supervisor.returncode != 0:
            self.left += sweep(self._marker)
        while piece := _read(self._output):
            self.capture.take(piece)

    def _hear(self, words: Mapping[str, object]) -> None:
        if "error" in words:
            raise CannotStart(str(words["error"]))
        if isinstance(status := words.get("exit"), int):
            self.status = status
        if isinstance(left := words.get("left"), list):
            self.left = tuple(left)

    def _pump(self, timeout: float | None) -> list[dict[str, object]]:
        """Wait for output or for words of the supervisor, take them, and give the words."""
        for descriptor, _ in self._poll.poll(None if timeout is None else timeout * 1000 + 1):
            piece = _read(descriptor)
            if piece is None:
                continue
            if not piece:
                # All writers have closed it; it would wake the poll for ever.
                self._poll.unregister(descriptor)
                self._deaf = self._deaf or descriptor == self._answers
            elif descriptor == self._output:
                self.capture.take(piece)
            else:
                self._words += piece
        *lines, self._words = self._words.split(b"\n")
        return [json.loads(line) for line in lines]

    def _close(self) -> None:
        # Closing its input alone makes the supervisor end everything, should an exception have come between.
        assert self._supervisor.stdin is not None and self._supervisor.stdout is not None
        with contextlib.suppress(OSError):
            self._supervisor.stdin.close()
        try:
            self._supervisor.wait(_END_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._supervisor.kill()
            self._supervisor.wait()
        self._supervisor.stdout.close()
        os.close(self._output)


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _read(descriptor: int) -> bytes | None:
    """A piece of what can be read now: None when there is nothing, empty when nothing will come any more."""
    try:
        return os.read(descriptor, _PIPE_BYTES)
    except BlockingIOError:
        return None


def sweep(marker: str) -> tuple[str, ...]:
    """Kill every process whose environment carries the marker (a trial's id), and name those that were killed.

    For what a killed supervisor left behind: its descendants then belong to another process.
    """
    killed: list[str] = []
    # Once more after each find, since what is killed may just have forked.
    while names := _kill_marked(f"{MARKER}={marker}".encode()):
        killed += names
    return tuple(killed)


def _kill_marked(wanted: bytes) -> list[str]:
    names = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and wanted in (process / "environ").read_bytes().split(b"\0"):
                name = (process / "comm").read_text().strip()
                os.kill(int(process.name), signal.SIGKILL)
                names.append(name)
        except OSError:
            continue  # It ended meanwhile, or is another user's.
    return names
