"""The parent of a trial's process: a program of its own, so that a trial never outlives the run that started it.

Run as ``python -I -S supervisor.py OUTPUT_FD``. It speaks lines with the runner: on standard input a job (JSON:
``command``, ``folder``, ``variables``, ``cores``), then ``end SECONDS``; on standard output ``{"pid": n}`` or
``{"error": text}``, ``{"exit": status}``, and last ``{"left": [names]}``.

Why a program and not a flag of the start: it makes itself the reaper of all its descendants, so that a daemon that
left its group and session is still found; and its standard input ends when the runner dies, however it died. Should
the supervisor itself be killed, the kernel kills the trial's main process.

Standard library only, and quick to start (hence no pathlib): it is part of every trial's overhead.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import sys
import time
from typing import Any

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


def main() -> int:
    """Start the job, report its end, and leave nothing of it running."""
    output = int(sys.argv[1])
    told = b""
    # The runner gives no order before it has heard of the start, so a line's end is the end of what there is to read.
    while not told.endswith(b"\n"):
        more = os.read(0, 1 << 16)
        if not more:
            return 1
        told += more
    job = json.loads(told)
    prctl = ctypes.CDLL(None).prctl
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    child = _start(job, output, prctl)
    os.close(output)
    _say(pid=child)
    poll = select.poll()
    poll.register(0, select.POLLIN | select.POLLHUP)
    poll.register(wake, select.POLLIN)
    while True:
        ready = {descriptor for descriptor, _ in poll.poll()}
        if wake in ready:
            os.read(wake, 512)
            _reap(child)
        if 0 in ready:
            order = os.read(0, 512).split()
            # No order means that the runner is gone.
            _say(left=_end(child, float(order[1]) if order else 0.0))
            return 0


def _start(job: dict[str, Any], output: int, prctl: Any) -> int:
    supervisor = os.getpid()
    status = os.dup(1)
    child = os.fork()
    if child:
        os.close(status)
        return child
    try:
        os.setsid()
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != supervisor:
            os._exit(1)
        # Neither what this process handles nor what its parents ignore or block is the trial's: `nohup`, a shell's
        # background job or a batch system may have set any of it, and a blocked SIGUSR1 would hide a hang's stacks.
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            if signal.getsignal(number) not in (signal.SIG_DFL, None):
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        if job["cores"]:
            os.sched_setaffinity(0, job["cores"])
        os.chdir(job["folder"])
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.execvpe(job["command"][0], job["command"], job["variables"])  # noqa: S606 - a shell would be one more process
    except Exception as error:  # noqa: BLE001 - this is a fork: nothing may return from here
        os.write(status, (json.dumps({"error": str(error)}) + "\n").encode())
    finally:
        os._exit(127)


def _say(**words: Any) -> None:
    with contextlib.suppress(BrokenPipeError):
        os.write(1, (json.dumps(words) + "\n").encode())


def _reap(child: int) -> bool:
    """Collect the ended; True when no child is left."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return True
        if pid == 0:
            return False
        if pid == child:
            _say(exit=os.waitstatus_to_exitcode(status))


def _end(child: int, grace: float) -> list[str]:
    """Terminate all descendants, kill them after ``grace`` seconds, and name those that were still there."""
    _reap(child)
    names = [_name(pid) for pid in _descendants()]
    if grace and names:
        for pid in _descendants():
            _signal(pid, signal.SIGTERM)
        deadline = time.monotonic() + grace
        while not _reap(child) and time.monotonic() < deadline:
            time.sleep(0.01)
    # Again and again, since what is killed may be forking; those in uninterruptible sleep end when the kernel lets go.
    deadline = time.monotonic() + 30
    while not _reap(child) and time.monotonic() < deadline:
        for pid in _descendants():
            _signal(pid, signal.SIGKILL)
        time.sleep(0.005)
    return names


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _descendants() -> list[int]:
    """Processes below this one that have not ended; orphans are its children, since it is their reaper."""
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as file:  # noqa: PTH123
                    # The command's name, in parentheses, may hold anything; after it come the state and the parent.
                    state, parent = file.read().rpartition(")")[2].split()[:2]
            except (OSError, ValueError):
                continue
            if state not in "ZX":
                parents[int(name)] = int(parent)
    below: set[int] = set()
    known = {os.getpid()}
    while known:
        known = {pid for pid, parent in parents.items() if parent in known and pid not in below}
        below |= known
    return sorted(below)


def _name(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm") as file:  # noqa: PTH123
            return file.read().strip()
    except OSError:
        return str(pid)


if __name__ == "__main__":
    sys.exit(main())
