"""The GPUs of trials, and who else is on them: alone under a lease of the trial's own, or in company under the run's.

Alone, the question is simple: before the trial and after it nothing of ours is on the GPU, so whatever is there is
somebody else's. In company our other trials are there at the time of most looks. Then a process counts as somebody
else's when it does not descend from this one, as far as NVML's process numbers can be compared with ours at all
(:func:`bisect_env.trials.gpu.foreign_processes`). Where they cannot, in most containers, only looks while no trial of
ours is on that GPU tell anything, at least before the first trial and after the last. Since when the other was there
cannot be told then, and the trial that has just ended is the one that is not counted.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from bisect_env.trials import gpu, leases
from bisect_env.trials.records import Device


@dataclass
class Stay:
    """A trial's time on its GPUs."""

    devices: tuple[Device, ...]
    others: list[str] = field(default_factory=list)
    """Who else was seen there meanwhile; complete once the trial has left."""


@contextmanager
def alone(
    count: int, allow_busy: bool, selection: str | None, stop: threading.Event, tell: Callable[[str], None]
) -> Iterator[Stay]:
    """Lease ``count`` GPUs for one trial; whoever is there when it has ended stands in ``others`` afterwards.

    Raises:
        InfrastructureError, LeaseStopped, BadInput: as :func:`bisect_env.trials.leases.lease`.
    """
    with leases.lease(count, allow_busy=allow_busy, stop=stop, selection=selection, tell=tell) as devices:
        stay = Stay(devices)
        yield stay
        if not allow_busy:
            stay.others += gpu.foreign_processes(devices, own=())


class Company:
    """Several trials on GPUs that this process has leased.

    Args:
        allow_busy: do not ask who else is there.
        stop: ends the wait for somebody else's work to end.
        tell: gets a line about who is waited for.
    """

    def __init__(self, allow_busy: bool, stop: threading.Event, tell: Callable[[str], None]) -> None:
        self._allow_busy, self._stop, self._tell = allow_busy, stop, tell
        self._guard = threading.Lock()
        self._here: list[Stay] = []

    @contextmanager
    def stay(self, devices: Sequence[Device]) -> Iterator[Stay]:
        """Be on ``devices`` for the time of a trial, once nobody else computes there.

        Raises:
            LeaseStopped: the stop event was set while somebody was waited for.
        """
        mine = Stay(tuple(devices))
        self._enter(mine)
        try:
            yield mine
        finally:
            with self._guard:
                self._here = [other for other in self._here if other is not mine]
                self._look(mine)

    def _enter(self, mine: Stay) -> None:
        while True:
            with self._guard:
                # No trial of ours begins between the look and the entry: an empty GPU is empty of ours.
                found = self._look(Stay(mine.devices))
                if not found:
                    self._here.append(mine)
                    return
            text = f"waiting for {'; '.join(found)} (--allow-busy measures beside it)"
            self._tell(text)
            if self._stop.wait(leases.BUSY_AGAIN):
                raise leases.LeaseStopped(f"stopped while {text}")

    def _look(self, mine: Stay) -> list[str]:
        """Who else is on the devices of ``mine``; all trials that are there remember it."""
        if self._allow_busy or self._stop.is_set():
            return []
        for device in mine.devices:
            beside = [stay for stay in self._here if device in stay.devices]
            found = gpu.foreign_processes([device], own=(os.getpid(),) if beside else ())
            for stay in (mine, *beside):
                stay.others += [text for text in found if text not in stay.others]
        return mine.others
