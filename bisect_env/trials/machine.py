"""Facts about the host: a cheap part for every trial, a fuller one for every run."""

from __future__ import annotations

import os
import platform
import socket
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from bisect_env.errors import InfrastructureError

Facts = tuple[tuple[str, str], ...]
_PROC = Path("/proc")
_CGROUPS = Path("/sys/fs/cgroup")
_TOPOLOGY = Path("/sys/devices/system/cpu")


def cores() -> tuple[int, ...]:
    """The CPU cores that this process may run on, by number."""
    return tuple(sorted(os.sched_getaffinity(0)))


def neighbours(numbers: Sequence[int]) -> tuple[int, ...]:
    """The cores in an order in which those of one socket, and the hardware threads of one core, stand together."""

    def place(number: int) -> tuple[int, int, int]:
        topology = _TOPOLOGY / f"cpu{number}" / "topology"
        package, core = (_text(topology / name).strip() for name in ("physical_package_id", "core_id"))
        known = package.isdecimal() and core.isdecimal()
        return (int(package), int(core), number) if known else (0, number, number)

    return tuple(sorted(numbers, key=place))


def move(pid: int, numbers: Sequence[int]) -> None:
    """Let a process, all that descends from it, and every thread of them run on exactly these cores from now on.

    Linux binds threads, not processes; a thread begun meanwhile has its creator's cores. What has ended is left out.
    """
    with suppress(psutil.Error):
        main = psutil.Process(pid)
        for process in (main, *main.children(recursive=True)):
            with suppress(psutil.Error, OSError):
                for thread in process.threads():
                    os.sched_setaffinity(thread.id, numbers)


def free_bytes(path: Path) -> int:
    """Bytes that this user can still write at ``path``, or at its nearest folder that exists.

    Raises:
        InfrastructureError: the filesystem does not answer.
    """
    place = path.absolute()
    while True:
        try:
            status = os.statvfs(place)
        except (FileNotFoundError, NotADirectoryError):
            place = place.parent  # Ends at "/", which exists.
        except OSError as error:
            raise InfrastructureError(f"{place}: the filesystem does not say how much is free: {error}") from error
        else:
            return status.f_bavail * status.f_frsize


def facts() -> Facts:
    """What may change between two trials: load, memory, pressure, throttling by the cgroup, kills for lack of memory.

    Takes well under 5 ms; a fact that this host does not give is left out.
    """
    found = [("load 1m", f"{os.getloadavg()[0]:.2f}")]
    available = _fields(_PROC / "meminfo").get("MemAvailable:")
    if available is not None:
        found.append(("memory free MiB", str(int(available) >> 10)))
    for what in ("cpu", "memory", "io"):
        some = _text(_PROC / "pressure" / what).partition("avg10=")[2].split()
        if some:
            found.append((f"{what} pressure 10s %", some[0]))
    own = _cgroup()
    for name, file, key in (
        ("cgroup times throttled", "cpu.stat", "nr_throttled"),
        ("cgroup out-of-memory kills", "memory.events", "oom_kill"),
    ):
        value = _fields(own / file).get(key)
        if value is not None:
            found.append((name, value))
    kills = _fields(_PROC / "vmstat").get("oom_kill")
    if kills is not None:
        found.append(("host out-of-memory kills", kills))
    return tuple(found)


def description(folder: Path) -> Facts:
    """What stays the same during a run, with the disk that holds ``folder``, and the facts of the moment.

    Raises:
        InfrastructureError: the disk does not answer.
    """
    numbers = cores()
    found = [
        ("host", socket.gethostname()),
        ("system", f"{platform.system()} {platform.release()} {platform.machine()}"),
        ("cpu", _cpu_model()),
        ("cores available", f"{len(numbers)} of {os.cpu_count()}"),
        ("python", platform.python_version()),
        ("disk free GiB", f"{free_bytes(folder) / 2**30:.1f}"),
    ]
    memory = _fields(_PROC / "meminfo").get("MemTotal:")
    if memory is not None:
        found.append(("memory MiB", str(int(memory) >> 10)))
    limits = _limits(_cgroup())
    return (*found, *limits, *facts())


def _limits(group: Path) -> list[tuple[str, str]]:
    """The tightest limits on the way from ``group`` up to the root: every group above binds as well."""
    quotas, memories = [], []
    while True:
        quota, _, period = _text(group / "cpu.max").strip().partition(" ")
        if quota.isdecimal() and period.isdecimal() and int(period):
            quotas.append(int(quota) / int(period))
        memory = _text(group / "memory.max").strip()
        if memory.isdecimal():
            memories.append(int(memory))
        if group == _CGROUPS or group == group.parent:
            break
        group = group.parent
    found = []
    if quotas:
        found.append(("cgroup cpu limit cores", f"{min(quotas):.2f}"))
    if memories:
        found.append(("cgroup memory limit MiB", str(min(memories) >> 20)))
    return found


def _cgroup() -> Path:
    """This process's cgroup (version 2); in a container, where its path is another one's, the root of what is seen."""
    for line in _text(_PROC / "self" / "cgroup").splitlines():
        if line.startswith("0::"):
            own = _CGROUPS / line[3:].strip().lstrip("/")
            if own.is_dir():
                return own
    return _CGROUPS


def _cpu_model() -> str:
    for line in _text(_PROC / "cpuinfo").splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("model name", "Model", "cpu"):
            return value.strip()
    return platform.processor() or platform.machine()


def _fields(path: Path) -> dict[str, str]:
    """First and second word of every line."""
    pairs = (line.split() for line in _text(path).splitlines())
    return {words[0]: words[1] for words in pairs if len(words) > 1}


def _text(path: Path) -> str:
    with suppress(OSError):
        return path.read_text(errors="replace")
    return ""
