"""Which of a host's GPUs this process may use: pure, from what NVML lists and what the variables say.

Indices are those of ``nvidia-smi`` (PCI order). The trials get UUIDs, so that no other numbering enters.

Sources: CUDA C++ Programming Guide, "CUDA Environment Variables" (``CUDA_VISIBLE_DEVICES``); NVIDIA Container Toolkit,
"Specialized Configurations" (``NVIDIA_VISIBLE_DEVICES``); Slurm, "Generic Resource (GRES) Scheduling".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bisect_env.errors import BadInput
from bisect_env.trials.records import Device


@dataclass(frozen=True)
class Card:
    """A physical GPU as NVML lists it."""

    device: Device
    slices: tuple[Device, ...] | None = None
    """Its MIG devices; None when MIG is off."""

    @property
    def usable(self) -> tuple[Device, ...]:
        """What can compute: the card itself, or its MIG devices once MIG is on."""
        return (self.device,) if self.slices is None else self.slices


@dataclass(frozen=True)
class Choice:
    """The GPUs to use, and why they are fewer than the host has."""

    devices: tuple[Device, ...]
    notes: tuple[str, ...] = ()


def choose(cards: Sequence[Card], variables: Mapping[str, str], wanted: str | None = None) -> Choice:
    """The devices that ``variables`` leave to this process, and of these the ones in ``wanted``.

    ``NVIDIA_VISIBLE_DEVICES=void`` is no restriction of its own: the container toolkit sets it in every container that
    gets its GPUs through CDI, and one without GPUs has none that NVML could list.

    Args:
        cards: all that NVML lists, in its order.
        variables: this process's environment.
        wanted: ``--gpus``: indices of ``nvidia-smi``, or UUIDs, or beginnings of UUIDs, separated by commas.

    Raises:
        BadInput: ``wanted`` names a GPU that is not there or not this process's.
    """
    devices = [device for card in cards for device in card.usable]
    notes: list[str] = []
    if variables.get("NVIDIA_VISIBLE_DEVICES") == "none" and devices:
        devices, notes = [], ["NVIDIA_VISIBLE_DEVICES=none: this container asked for no GPU"]
    allocated = _slurm(cards, variables)
    if allocated is not None:
        devices = [device for device in devices if device in allocated]
        notes.append(f"Slurm allocated {_names(devices)} to this job")
    visible = variables.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and cards:
        shown, remarks = _cuda_visible(cards, visible)
        devices = [device for device in shown if device in devices]
        notes += [f"CUDA_VISIBLE_DEVICES={visible!r} leaves {_names(devices)}", *remarks]
        mixed = len({card.device.name for card in cards}) > 1
        if mixed and re.match(r"\s*\+?\d", visible) and variables.get("CUDA_DEVICE_ORDER") != "PCI_BUS_ID":
            notes.append(
                "the GPUs are of several models and CUDA_DEVICE_ORDER is not PCI_BUS_ID: the numbers in "
                "CUDA_VISIBLE_DEVICES were read as nvidia-smi's; name UUIDs to be sure"
            )
    for card in cards:
        if card.slices == ():
            notes.append(f"GPU {card.device.index} has MIG on and no MIG device: create one or turn MIG off")
    if wanted is not None:
        devices = _wanted(devices, wanted)
        notes.append(f"--gpus {wanted} leaves {_names(devices)}")
    return Choice(tuple(devices), tuple(notes))


def _names(devices: Sequence[Device]) -> str:
    return ", ".join(f"GPU {label(device)}" for device in devices) or "no GPU"


def label(device: Device) -> str:
    """Short and unique on a host: the index, for a MIG device with the beginning of its UUID."""
    return f"{device.index}:{device.uuid[4:12]}" if device.uuid.startswith("MIG-") else str(device.index)


def _cuda_visible(cards: Sequence[Card], text: str) -> tuple[list[Device], list[str]]:
    """What CUDA makes of the variable: the first entry that names nothing ends the list, a repeated one empties it."""
    found: list[Device] = []
    entries = [entry.strip() for entry in text.split(",")] if text.strip() else []
    kinds = [entry[:4] if entry[:4] in ("GPU-", "MIG-") else "" for entry in entries]
    for entry, kind in zip(entries, kinds, strict=True):
        named = _named(cards, entry, kind) if kind == kinds[0] else ()
        if not named:
            return found, [f"{entry!r} names no GPU of this host; CUDA ignores it and what follows"]
        if named[0] in found:
            return [], [f"{entry!r} names a GPU for the second time, which makes CUDA see none"]
        found.extend(named)
    return found, []


def _named(cards: Sequence[Card], entry: str, kind: str) -> tuple[Device, ...]:
    if kind == "GPU-":
        matching = [card.usable for card in cards if card.device.uuid.startswith(entry)]
        return matching[0] if len(matching) == 1 else ()
    if kind == "MIG-":
        slices = [device for card in cards for device in card.slices or () if device.uuid.startswith(entry)]
        return (slices[0],) if len(slices) == 1 else ()
    # CUDA reads a number as C's atoi does: "1gpu" is 1.
    number = re.match(r"\+?\d+", entry)
    if number is None:
        return ()
    return next((card.usable for card in cards if card.device.index == int(number[0])), ())


def _slurm(cards: Sequence[Card], variables: Mapping[str, str]) -> list[Device] | None:
    """The allocation's devices, or None when it does not restrict what NVML lists.

    The numbers of ``SLURM_JOB_GPUS`` are the node's. Where Slurm confines jobs by cgroup, NVML lists just the
    allocated GPUs, counted from 0, and the numbers mean nothing: recognised by there being no more GPUs than were
    allocated. A job without the variables is on a site that does not manage its GPUs.
    """
    text = variables.get("SLURM_STEP_GPUS") or variables.get("SLURM_JOB_GPUS")
    if "SLURM_JOB_ID" not in variables or not text or any(card.slices is not None for card in cards):
        return None
    numbers: set[int] = set()
    for entry in text.split(","):
        bounds = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", entry)
        if bounds is None:
            return None
        numbers |= set(range(int(bounds[1]), int(bounds[2] or bounds[1]) + 1))
    if len(cards) <= len(numbers):
        return None
    return [card.device for card in cards if card.device.index in numbers]


def _wanted(devices: Sequence[Device], text: str) -> list[Device]:
    """Unlike CUDA's variable, which may be meant for another host, an entry that names nothing is an error here."""
    found: list[Device] = []
    for place, entry in enumerate((part.strip() for part in text.split(",") if part.strip()), start=1):
        if entry.isdecimal():
            named = [device for device in devices if device.index == int(entry)]
        else:
            named = [device for device in devices if device.uuid.startswith(entry)]
            if len(named) > 1:
                uuids = ", ".join(device.uuid for device in named)
                raise BadInput("--gpus", f"entry {place}", f"{entry!r} fits several GPUs", f"one of {uuids}")
        if not named:
            wanted = (
                f"one of {_names(devices)}, or a UUID as nvidia-smi -L prints it" if devices else "no --gpus at all"
            )
            raise BadInput("--gpus", f"entry {place}", f"{entry!r} is no GPU that this process may use", wanted)
        found += [device for device in named if device not in found]
    return found
