"""GPU leases: whoever runs a trial holds its GPUs alone, over all users and projects of a host.

A lease is an ``flock`` on the GPU's file in one folder of the host (:mod:`bisect_env.trials.lease_folder`, which says
what holds for several users and for containers), so that the operating system gives it back when its holder dies,
however it dies. A waiting process has a ticket there, a locked file with its name in order of arrival, and looks every
``POLL`` seconds, under a mutex, whether the GPUs that earlier tickets leave over suffice.
"""

from __future__ import annotations

import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from bisect_env.errors import BisectEnvError, ExitCode, InfrastructureError
from bisect_env.trials import gpu, lease_folder
from bisect_env.trials.lease_folder import LeaseFolder
from bisect_env.trials.records import Device
from bisect_env.trials.visibility import label

POLL = 0.1
"""Seconds between two looks while waiting."""
BUSY_AGAIN = 10.0
"""Seconds until a GPU on which somebody else computes is looked at again."""
ASLEEP = 30.0
"""Seconds after which a ticket that its process has not renewed is passed over: the process was stopped with Ctrl-Z."""
REMIND = 60.0
"""Seconds after which a message that has not changed is given again."""


class LeaseStopped(BisectEnvError):
    """The wait for a GPU was ended by the stop event."""

    exit_code = ExitCode.INTERRUPTED


@contextmanager
def lease(
    count: int,
    allow_busy: bool = False,
    timeout: float | None = None,
    stop: threading.Event | None = None,
    *,
    apart: bool = False,
    selection: str | None = None,
    tell: Callable[[str], None] | None = None,
    available: Callable[[], Sequence[Device]] | None = None,
    load: Callable[[Device], Any] = gpu.load,
    foreign: Callable[[Sequence[Device]], Sequence[str]] = gpu.foreign_processes,
    folder: Path | None = None,
) -> Iterator[tuple[Device, ...]]:
    """Hold ``count`` GPUs, the least loaded ones, for as long as the context lasts.

    All are taken at once or none is, and a later process takes only what the earlier ones that may use the same GPUs
    leave over. So a request for several is not starved by requests for one, and nobody waits in a circle, as long as a
    process does not ask for a second lease while it holds one.

    Args:
        count: 0 gives () at once. More than one come from whole GPUs only: a process can use a single MIG device.
        apart: they are for several processes, each of which minds that itself: MIG devices serve too.
        allow_busy: take a GPU although somebody else computes on it.
        timeout: seconds to wait at most; None waits for as long as it takes.
        stop: ends the wait when set.
        selection: ``--gpus``, see :func:`bisect_env.trials.gpu.survey`.
        tell: gets a line about what is waited for, when that changes and once a minute.
        available: the devices to choose from, asked before every attempt; None asks the host.
        load: how busy a device is; the lowest is taken first.
        foreign: who else computes on devices.
        folder: where the leases lie; None for the host's common folder.

    Raises:
        InfrastructureError: there are fewer GPUs than asked for, the time is up, or the folder cannot be used.
        LeaseStopped: ``stop`` was set.
        BadInput: ``selection`` names a GPU that is not there.
    """
    if count <= 0:
        yield ()
        return
    waiting = _Waiting(timeout, stop, tell)
    with LeaseFolder(folder or lease_folder.shared_folder()) as place, _Ticket(place, waiting, count) as ticket:
        listed = available or partial(gpu.devices, selection)
        busy_on = (lambda _: ()) if allow_busy else foreign
        locks = _obtain(ticket, waiting, apart, listed, load, busy_on)
    try:
        yield tuple(locks)
    finally:
        _release(locks.values())


def _obtain(
    ticket: _Ticket,
    waiting: _Waiting,
    apart: bool,
    listed: Callable[[], Sequence[Device]],
    load: Callable[[Device], Any],
    foreign: Callable[[Sequence[Device]], Sequence[str]],
) -> dict[Device, int]:
    """The devices, each with the descriptor that holds its lock."""
    busy: dict[str, tuple[float, str]] = {}
    while True:
        devices = _enough(listed(), ticket.count, apart)
        busy = {uuid: seen for uuid, seen in busy.items() if seen[0] > time.monotonic()}
        locks, reasons = ticket.take([device for device in devices if device.uuid not in busy], load)
        try:
            # Asked outside the mutex, since the answer can take seconds; the lock is ours meanwhile.
            found = {device.uuid: "; ".join(foreign([device])) for device in locks}
        except BaseException:
            _release(locks.values())
            raise
        until = time.monotonic() + BUSY_AGAIN
        newly_busy = {uuid: (until, text) for uuid, text in found.items() if text}
        if locks and not newly_busy:
            return locks
        _release(locks.values())
        busy |= newly_busy
        if not newly_busy:
            used = [f"{text} (--allow-busy takes it nevertheless)" for _, text in busy.values()]
            why = "; ".join([*reasons, *used]) or "others came first"
            waiting.pause(f"waiting for {ticket.count} of {len(devices)} GPUs: {why}")


def _enough(devices: Sequence[Device], count: int, apart: bool) -> list[Device]:
    usable = [device for device in devices if apart or count == 1 or not device.uuid.startswith("MIG-")]
    if len(usable) < count:
        why = "; ".join(gpu.survey().notes) if not devices else "MIG devices serve one trial each"
        there = f"{len(usable)} can be used for it" + (f" ({why})" if len(usable) < len(devices) or not devices else "")
        raise InfrastructureError(f"a trial needs {count} GPU{'s' * (count > 1)} at a time, and {there}")
    return usable


def _release(locks: Iterable[int]) -> None:
    for fd in locks:
        with suppress(OSError):
            os.ftruncate(fd, 0)  # Nobody shall read our name there once the lock is gone.
        os.close(fd)


class _Waiting:
    """How long a wait may last, and what is said meanwhile."""

    def __init__(self, timeout: float | None, stop: threading.Event | None, tell: Callable[[str], None] | None) -> None:
        self.deadline = None if timeout is None else time.monotonic() + timeout
        self.stop, self.tell = stop or threading.Event(), tell
        self.said, self.said_at = "", 0.0

    def pause(self, reason: str, seconds: float = POLL, quiet: bool = False) -> None:
        """Wait a little. Raises LeaseStopped when stopped, InfrastructureError with ``reason`` when the time is up."""
        now = time.monotonic()
        if self.deadline is not None and now >= self.deadline:
            raise InfrastructureError(f"no GPU in time: {reason}")
        if self.tell is not None and not quiet and (reason != self.said or now - self.said_at > REMIND):
            self.said, self.said_at = reason, now
            self.tell(reason)
        if self.stop.wait(seconds):
            raise LeaseStopped(f"stopped while {reason}")


class _Ticket:
    """A place in the queue, given up when the context ends."""

    def __init__(self, place: LeaseFolder, waiting: _Waiting, count: int) -> None:
        self.place, self.waiting, self.count = place, waiting, count
        self.name = f"ticket-{time.time_ns():020d}-{os.getpid()}-{secrets.token_hex(4)}"

    def __enter__(self) -> _Ticket:
        # Under the mutex: a ticket that is not locked yet would be taken for a dead process's.
        with self._mutex():
            fd = self.place.try_lock(self.name)
        assert fd is not None, "the name is ours alone"
        self.fd = fd
        return self

    def __exit__(self, *_: object) -> None:
        self.place.remove(self.name)
        os.close(self.fd)

    @contextmanager
    def _mutex(self) -> Iterator[None]:
        while (fd := self.place.try_lock("mutex")) is None:
            self.waiting.pause(f"waiting for its turn to look at {self.place.path}", POLL / 10, quiet=True)
        try:
            yield
        finally:
            os.close(fd)

    def take(self, usable: Sequence[Device], load: Callable[[Device], Any]) -> tuple[dict[Device, int], list[str]]:
        """``count`` of ``usable`` with their locks, or none of them and who has the others."""
        # A process that could not go on anyway must not keep GPUs from those behind it.
        claim = [device.uuid for device in usable] if len(usable) >= self.count else []
        free: dict[Device, int] = {}
        chosen: dict[Device, int] = {}
        reasons = []
        with self._mutex():
            try:
                lease_folder.write(self.fd, {"count": self.count, "uuids": claim})
                for device in sorted(usable, key=lambda device: device.uuid):
                    lock = self.place.try_lock(_file(device))
                    if lock is None:
                        reasons.append(f"GPU {label(device)} is leased {self._holder(device)}")
                    else:
                        free[device] = lock
                left = list(free)
                for count, uuids in self._earlier():
                    for device in [device for device in left if device.uuid in uuids][:count]:
                        left.remove(device)
                if len(left) >= self.count:
                    chosen = {device: free.pop(device) for device in sorted(left, key=load)[: self.count]}
                    for lock in chosen.values():
                        with suppress(OSError):  # It serves messages only.
                            lease_folder.write(lock, {})
            except BaseException as error:
                _release(chosen.values())
                if isinstance(error, OSError):
                    raise InfrastructureError(f"{self.place.path}: GPU leases cannot be kept here: {error}") from error
                raise
            finally:
                _release(free.values())
        return chosen, reasons

    def _holder(self, device: Device) -> str:
        content, _ = self.place.read(_file(device))
        return f"by {content.get('user', '?')} (pid {content.get('pid', '?')}) since {content.get('at', '?')}"

    def _earlier(self) -> Iterator[tuple[int, list[str]]]:
        """Count and GPUs of the tickets before ours, the dead ones cleared away."""
        for name in self.place.names():
            if not name.startswith("ticket-") or name >= self.name:
                continue
            dead = self.place.try_lock(name)
            if dead is not None:
                self.place.remove(name)
                os.close(dead)
                continue
            content, written = self.place.read(name)
            if time.time() - written < ASLEEP:
                with suppress(KeyError, TypeError, ValueError):
                    yield int(content["count"]), list(content["uuids"])


def _file(device: Device) -> str:
    return "gpu-" + re.sub(r"[^\w.-]", "_", device.uuid)
