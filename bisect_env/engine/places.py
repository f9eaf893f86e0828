"""Places for trials side by side: each with CPU cores of its own, GPUs given to the least loaded in turn. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bisect_env.errors import BadInput, InfrastructureError
from bisect_env.trials.records import Device
from bisect_env.verdicts.hardware import Hardware


@dataclass(frozen=True)
class Place:
    """Where one trial runs."""

    number: int
    cores: tuple[int, ...]
    devices: tuple[Device, ...] | None = None
    """GPUs of the run's lease; None: the trial leases its own."""


def split(cores: Sequence[int], at_once: int) -> tuple[tuple[int, ...], ...]:
    """Disjoint sets of cores, neighbours together. All have the same size; what is left over is nobody's.

    Raises:
        BadInput: there are fewer cores than trials at once.
    """
    if at_once > len(cores):
        found = f"{at_once} trials at once, and this process may use {len(cores)} CPU cores"
        raise BadInput("at_once", "", found, f"at most {len(cores)}; two cores a trial or more disturb it least")
    size = len(cores) // at_once
    return tuple(tuple(cores[number * size : (number + 1) * size]) for number in range(at_once))


def alike(devices: Sequence[Device], wanted: Hardware | None, count: int) -> tuple[Device, ...]:
    """Of several kinds of GPUs those on which a cell is measured; all, where they are fewer than ``count``.

    Args:
        devices: that there are.
        wanted: what the cell is measured on; None: anything.
        count: that one trial needs.
    """
    found = tuple(device for device in devices if wanted is None or (device.name, device.driver) in wanted.gpus)
    return found if len(found) >= count else tuple(devices)


class Places:
    """The places of a run, free or taken.

    Args:
        cores: cores to be split, as :func:`split` does.
        at_once: number of places.
        devices: GPUs that the run has leased for all of them; None: each trial leases its own.
    """

    def __init__(self, cores: Sequence[int], at_once: int, devices: Sequence[Device] | None = None) -> None:
        self._cores = dict(enumerate(split(cores, at_once)))
        self._devices = devices
        self._load = {device.uuid: 0 for device in devices or ()}
        self._last = dict.fromkeys(self._load, 0)
        self._given = 0

    @property
    def free(self) -> bool:
        """Whether a trial can begin."""
        return bool(self._cores)

    def take(self, gpus: int, wanted: Hardware | None = None) -> Place:
        """A free place with ``gpus`` GPUs: those with the fewest trials, of these the ones not given for longest.

        Args:
            gpus: how many.
            wanted: as for :func:`alike`.

        Raises:
            InfrastructureError: there are fewer GPUs.
        """
        devices = None if self._devices is None else self._least_loaded(alike(self._devices, wanted, gpus), gpus)
        number = min(self._cores)
        return Place(number, self._cores.pop(number), devices)

    def give_back(self, place: Place) -> None:
        """The trial has ended."""
        self._cores[place.number] = place.cores
        for device in place.devices or ():
            self._load[device.uuid] -= 1

    def _least_loaded(self, devices: Sequence[Device], count: int) -> tuple[Device, ...]:
        # A process can use a single MIG device.
        usable = [device for device in devices if count == 1 or not device.uuid.startswith("MIG-")]
        if len(usable) < count:
            raise InfrastructureError(f"a trial needs {count} GPUs at a time, and {len(usable)} can be used for it")
        chosen = sorted(usable, key=lambda device: (self._load[device.uuid], self._last[device.uuid]))[:count]
        for device in chosen:
            self._given += 1
            self._load[device.uuid] += 1
            self._last[device.uuid] = self._given
        return tuple(chosen)
