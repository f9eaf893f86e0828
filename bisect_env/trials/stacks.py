"""What a hung process was doing: CPU time of its threads, their stacks, and from both the kind of hang."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from bisect_env.trials.process import Process

DEADLOCK, SPIN, SLOW_COMPILE = "deadlock", "spin", "slow compile"

SAMPLE_SECONDS = 0.7
BUSY_SHARE = 0.2
"""Share of the sample from which a thread counts as busy: pollers and heartbeats stay far below it."""

_COMPILERS = re.compile(
    r"^(?:cc1|cc1plus|collect2|ld(?:\.\w+)?|as|(?:[\w-]+-)?(?:gcc|g\+\+|cpp|c\+\+|cc|clang|clang\+\+)(?:-\d+)?"
    r"|ptxas|nvcc|cicc|nvlink|fatbinary)$"
)
_COMPILE_WORKER = "_inductor/compile_worker"
_PY_SPY_TIMEOUT = 15.0


@dataclass(frozen=True)
class ThreadSample:
    """A thread over the sample."""

    pid: int
    process: str
    tid: int
    name: str
    state: str
    """As in /proc: R runs or wants to, S sleeps, D waits for a device."""
    waits_in: str
    """The kernel function it sleeps in; empty when the kernel does not tell."""
    cpu: float
    """Seconds of CPU it used."""
    compiles: bool
    """Whether its process is a compiler or a compile worker."""


def kind_of(samples: Sequence[ThreadSample], seconds: float, compiling: Collection[str]) -> str:
    """A deadlock (no thread is busy), a spin, or a compile that is merely slow.

    Args:
        samples: all threads of all processes of the trial.
        seconds: length of the sample.
        compiling: threads with an open compile window.
    """
    # A thread that could not get a core on a crowded machine is busy all the same when it was found running.
    busy = [thread for thread in samples if thread.cpu >= BUSY_SHARE * seconds or (thread.cpu and thread.state == "R")]
    if not busy:
        return DEADLOCK
    return SLOW_COMPILE if compiling or any(thread.compiles for thread in busy) else SPIN


def sample(processes: Sequence[psutil.Process], seconds: float = SAMPLE_SECONDS) -> list[ThreadSample]:
    """Watch all threads of the processes for ``seconds``; those that ended meanwhile are left out."""
    before = {(process.pid, tid): used for process in processes for tid, (_, used) in _threads(process.pid).items()}
    time.sleep(seconds)
    samples = []
    for process in processes:
        try:
            name, arguments = process.name(), process.cmdline()
        except psutil.Error:
            continue
        compiles = bool(_COMPILERS.match(name)) or any(_COMPILE_WORKER in word for word in arguments)
        for tid, (state, used) in _threads(process.pid).items():
            task = Path(f"/proc/{process.pid}/task/{tid}")
            waits_in = _line(task / "wchan").removeprefix("0")
            cpu = used - before.get((process.pid, tid), used)
            samples.append(ThreadSample(process.pid, name, tid, _line(task / "comm"), state, waits_in, cpu, compiles))
    return samples


def describe(samples: Sequence[ThreadSample], seconds: float) -> str:
    """The samples as a table."""
    lines = [f"CPU time of the threads over {seconds:.1f} s:"]
    for thread in samples:
        waits = f"  in {thread.waits_in}" if thread.waits_in else ""
        lines.append(
            f"  {thread.process} {thread.pid}  thread {thread.tid} {thread.name}  "
            f"{thread.cpu:.2f} s  {thread.state}{waits}"
        )
    return "\n".join(lines)


def dump(process: Process, family: Sequence[psutil.Process], path: str, speaks: bool) -> str:
    """Python stacks of all threads: from a faulthandler on SIGUSR1 where one is registered, else from py-spy.

    Args:
        process: the trial; what its handlers write comes through its output.
        family: its processes.
        path: PATH to look for py-spy on. Without it, only the table of :func:`describe` tells what the threads do.
        speaks: the main process has spoken the protocol, whose module registers the handler before its first event.
    """
    length = process.capture.length
    # Not handled, the signal would kill. The kernel tells who handles it, but gVisor's does not.
    asked = [
        child.pid
        for child in family
        if _handles(child.pid, signal.SIGUSR1, otherwise=speaks and child.pid == process.pid)
    ]
    for pid in asked:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGUSR1)
    found = []
    if asked:
        process.collect(quiet=0.3, timeout=3.0)
        if process.capture.length == length:
            process.collect(quiet=1.5, timeout=1.5)
        found.append(process.capture.since(length).strip() or "\n".join(_silence(pid) for pid in asked))
    py_spy = shutil.which("py-spy", path=path)
    for child in family:
        if py_spy and child.pid not in asked and _is_python(child):
            found.append(_py_spy(py_spy, child.pid))
    return "\n\n".join(part for part in found if part)


def _threads(pid: int) -> dict[int, tuple[str, float]]:
    """State and CPU seconds of each thread."""
    tick = os.sysconf("SC_CLK_TCK")
    found = {}
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            fields = _line(task / "stat").rpartition(")")[2].split()
            if len(fields) > 12:
                found[int(task.name)] = (fields[0], (int(fields[11]) + int(fields[12])) / tick)
    return found


def _line(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def _handles(pid: int, number: signal.Signals, otherwise: bool) -> bool:
    caught = _masked(Path(f"/proc/{pid}/status"), "SigCgt", number)
    return otherwise if caught is None else caught


def _masked(status: Path, mask: str, number: signal.Signals) -> bool | None:
    """Whether a signal is in that mask of a process's or thread's status; None where the kernel does not tell it."""
    found = re.search(rf"^{mask}:\s*([0-9a-f]+)", _line(status), re.MULTILINE)
    return bool(int(found[1], 16) >> (number - 1) & 1) if found else None


def _silence(pid: int) -> str:
    """Why a process has not answered SIGUSR1, as far as the kernel tells."""
    process, number = Path(f"/proc/{pid}"), signal.SIGUSR1
    pending = any(_masked(process / "status", mask, number) for mask in ("ShdPnd", "SigPnd"))
    told = [_masked(task / "status", "SigBlk", number) for task in process.glob("task/*")]
    blocked = [each for each in told if each is not None]
    taken = "is still pending" if pending else "was taken"
    return f"no Python stacks of process {pid}: SIGUSR1 {taken}, {sum(blocked)} of {len(blocked)} threads block it"


def _is_python(process: psutil.Process) -> bool:
    try:
        return Path(process.exe()).name.startswith("python")
    except psutil.Error:
        return False


def _py_spy(program: str, pid: int) -> str:
    try:
        done = subprocess.run(
            [program, "dump", "--pid", str(pid)], capture_output=True, text=True, timeout=_PY_SPY_TIMEOUT, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"py-spy gave no stacks of process {pid}: {error}"
    return (done.stdout or done.stderr).strip()
