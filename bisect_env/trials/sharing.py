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
    by_itself: bool = False
    """No other trial of ours is to be there."""
    shared: bool = False
    """Whether another trial of ours was there meanwhile."""
    others: list[str] = field(default_factory=list)
    """Who else was seen there meanwhile; complete once the trial has left."""

    def meets(self, other: Stay) -> bool:
        """Whether both are on one GPU."""
        return not set(self.devices).isdisjoint(other.devices)


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
        self._guard = threading.Condition()
        self._here: list[Stay] = []
        self._reserved: list[Stay] = []
        """Trials that have their GPUs for themselves, or wait for that: nobody else enters there."""

    @contextmanager
    def stay(self, devices: Sequence[Device], by_itself: bool = False) -> Iterator[Stay]:
        """Be on ``devices`` for the time of a trial, once nobody else computes there.

        Args:
            by_itself: wait also until no other trial of ours is there, and let none in.

        Raises:
            LeaseStopped: the stop event was set while somebody was waited for.
        """
        mine = Stay(tuple(devices), by_itself)
        try:
            self._enter(mine)
            yield mine
        finally:
            with self._guard:
                self._reserved = [other for other in self._reserved if other is not mine]
                if any(other is mine for other in self._here):
                    self._here = [other for other in self._here if other is not mine]
                    self._look(mine)
                self._guard.notify_all()

    def _enter(self, mine: Stay) -> None:
        with self._guard:
            if mine.by_itself:
                self._reserved.append(mine)
        while True:
            with self._guard:
                while self._is_kept_out(mine):
                    if self._stop.is_set():
                        raise leases.LeaseStopped("stopped while waiting for a GPU of its own")
                    self._guard.wait(leases.POLL)
                # No trial of ours begins between the look and the entry: an empty GPU is empty of ours.
                found = self._look(Stay(mine.devices))
                if not found:
                    for other in self._here:
                        if other.meets(mine):
                            other.shared = mine.shared = True
                    self._here.append(mine)
                    return
            text = f"waiting for {'; '.join(found)} (--allow-busy measures beside it)"
            self._tell(text)
            if self._stop.wait(leases.BUSY_AGAIN):
                raise leases.LeaseStopped(f"stopped while {text}")

    def _is_kept_out(self, mine: Stay) -> bool:
        """Whether others have to go first: who wants a GPU for itself waits for those there, and the others for it."""
        if not mine.by_itself:
            return any(other.meets(mine) for other in self._reserved)
        before = self._reserved[: next(at for at, other in enumerate(self._reserved) if other is mine)]
        return any(other.meets(mine) for other in (*self._here, *before))

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
