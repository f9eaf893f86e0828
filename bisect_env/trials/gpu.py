"""The GPUs of this host, asked through NVML: which there are, how they are, and who else computes on them.

NVML is opened at the first question and stays open: on a host without persistence mode every opening wakes the cards,
which takes seconds. A process made by ``fork`` opens it anew.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pynvml

from bisect_env.errors import BadInput
from bisect_env.trials.records import Device
from bisect_env.trials.visibility import Card, Choice, choose, label

FOREIGN_BYTES = 256 << 20
"""More memory in use than this, while nobody of ours runs, is somebody's CUDA context (300 MiB and up on data-centre
cards); a display server or a monitoring agent stays below."""

THROTTLE_REASONS = {
    0x001: "idle",
    0x002: "application clocks",
    0x004: "power cap",
    0x008: "hardware slowdown",
    0x010: "sync boost",
    0x020: "software thermal slowdown",
    0x040: "hardware thermal slowdown",
    0x080: "power brake",
    0x100: "display clocks",
}
"""NVML's ``nvmlClocksEventReason*`` bits."""

SLOWING = frozenset({"hardware slowdown", "software thermal slowdown", "hardware thermal slowdown", "power brake"})
"""Reasons that make a throughput round worth repeating. The power cap is not among them: a card under full load is
always at it."""

_WHY = {
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: "no NVIDIA driver: libnvidia-ml.so.1 is not installed here",
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: "no NVIDIA driver: the library is there, the kernel module is not loaded",
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: "driver/library mismatch: the driver was updated while its old kernel "
    "module is still loaded; reboot, or reload the nvidia modules",
    pynvml.NVML_ERROR_NO_PERMISSION: "no permission to open the NVIDIA driver: see the mode of /dev/nvidia*",
}
_guard = threading.Lock()
_opened_in: int | None = None
"""Process that NVML is open in."""


def why_unusable() -> str:
    """Why NVML does not answer on this host; empty when it does."""
    global _opened_in
    with _guard:
        if _opened_in == os.getpid():
            return ""
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            return _WHY.get(error.value, f"the NVIDIA driver does not answer: {error}")
        _opened_in = os.getpid()
        return ""


def survey(wanted: str | None = None) -> Choice:
    """The devices this process may use, with the reasons why they are fewer than the host has.

    Args:
        wanted: ``--gpus``, see :func:`bisect_env.trials.visibility.choose`.

    Raises:
        BadInput: ``wanted`` names a GPU that is not there or not this process's.
    """
    why = why_unusable()
    if why:
        if wanted:
            raise BadInput("--gpus", "", f"{wanted!r} on a host without a usable GPU ({why})", "no --gpus")
        return Choice((), (why,))
    cards, notes = _cards()
    if not cards and not notes:
        notes = ["the NVIDIA driver is here and shows no GPU"]
    chosen = choose(cards, os.environ, wanted)
    return Choice(chosen.devices, (*notes, *chosen.notes))


def devices(wanted: str | None = None) -> tuple[Device, ...]:
    """The devices of :func:`survey`; empty without a driver."""
    return survey(wanted).devices


def _cards() -> tuple[list[Card], list[str]]:
    """Every GPU that answers, and a line about each that does not."""
    cards, notes = [], []
    driver = str(pynvml.nvmlSystemGetDriverVersion())
    for index in range(pynvml.nvmlDeviceGetCount()):
        try:
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            card = _device(handle, index, driver)
            cards.append(Card(card, _slices(handle, index, driver)))
        except pynvml.NVMLError as error:
            notes.append(f"GPU {index} does not answer and is left out: {error}")
    return cards, notes


def _device(handle: Any, index: int, driver: str) -> Device:
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    return Device(
        str(pynvml.nvmlDeviceGetUUID(handle)),
        str(pynvml.nvmlDeviceGetName(handle)),
        index,
        int(memory.total),
        driver,
    )


def _slices(handle: Any, index: int, driver: str) -> tuple[Device, ...] | None:
    try:
        mode, _ = pynvml.nvmlDeviceGetMigMode(handle)
    except pynvml.NVMLError:  # A card without MIG refuses the question.
        return None
    if mode != pynvml.NVML_DEVICE_MIG_ENABLE:
        return None
    found = []
    for place in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        try:
            found.append(_device(pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, place), index, driver))
        except pynvml.NVMLError:  # An empty place, or one that this container was not given.
            continue
    return tuple(found)


def health(devices: Sequence[Device]) -> tuple[tuple[str, str], ...]:
    """Clocks, throttling, temperature, power, ECC errors, utilisation and memory of each device, as name and value.

    What a device does not support (MIG devices and some virtual machines refuse most) is left out; any other refusal,
    such as ``GPU is lost``, stands in the value's place.
    """
    if not devices:
        return ()
    if why := why_unusable():
        return (("gpu", f"error: {why}"),)
    found: list[tuple[str, str]] = []
    for device in devices:
        name = f"gpu{label(device)}"
        try:
            handle = pynvml.nvmlDeviceGetHandleByUUID(device.uuid)
            # Clocks and the like belong to the whole card, memory in use to the MIG device.
            mig = device.uuid.startswith("MIG-")
            card = pynvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle) if mig else handle
        except pynvml.NVMLError as error:
            found.append((name, f"error: {error}"))
            continue
        for what, ask in _QUESTIONS:
            try:
                found.append((f"{name} {what}", ask(handle if what == "memory used MiB" else card)))
            except pynvml.NVMLError as error:
                if error.value not in (pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_FUNCTION_NOT_FOUND):
                    found.append((f"{name} {what}", f"error: {error}"))
    return tuple(found)


def throttle_names(bits: int) -> tuple[str, ...]:
    """Names of NVML's throttle reasons; a bit not known here as a number."""
    known = [name for bit, name in THROTTLE_REASONS.items() if bits & bit]
    rest = bits & ~sum(THROTTLE_REASONS)
    return (*known, hex(rest)) if rest else tuple(known)


def slowed(health: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """The facts in ``health`` that make a throughput round worth repeating, as ``gpu0: power brake``."""
    found = (
        f"{name.split()[0]}: {reason}"
        for name, value in health
        if "throttle" in name.split()
        for reason in value.split(", ")
        if reason in SLOWING
    )
    return tuple(dict.fromkeys(found))


def _clock(kind: int) -> Callable[[Any], str]:
    return lambda card: str(pynvml.nvmlDeviceGetClockInfo(card, kind))


def _ecc(card: Any) -> str:
    kind, since = pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC
    return str(pynvml.nvmlDeviceGetTotalEccErrors(card, kind, since))


_QUESTIONS: tuple[tuple[str, Callable[[Any], str]], ...] = (
    ("sm clock MHz", _clock(pynvml.NVML_CLOCK_SM)),
    ("memory clock MHz", _clock(pynvml.NVML_CLOCK_MEM)),
    (
        "throttle",
        lambda card: ", ".join(throttle_names(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(card))) or "none",
    ),
    ("temperature C", lambda card: str(pynvml.nvmlDeviceGetTemperature(card, pynvml.NVML_TEMPERATURE_GPU))),
    ("power W", lambda card: f"{pynvml.nvmlDeviceGetPowerUsage(card) / 1000:.0f}"),
    ("power limit W", lambda card: f"{pynvml.nvmlDeviceGetEnforcedPowerLimit(card) / 1000:.0f}"),
    ("ecc uncorrected", _ecc),
    ("utilisation %", lambda card: str(pynvml.nvmlDeviceGetUtilizationRates(card).gpu)),
    ("memory used MiB", lambda handle: f"{_used_bytes(handle) >> 20}"),
    ("driver", lambda _: str(pynvml.nvmlSystemGetDriverVersion())),
)


def _used_bytes(handle: Any) -> int:
    """Memory in use without what the driver keeps for itself, where the driver tells the two apart (510 and newer)."""
    try:
        return int(pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2).used)
    except pynvml.NVMLError:
        return int(pynvml.nvmlDeviceGetMemoryInfo(handle).used)


def load(device: Device) -> tuple[int, int]:
    """How busy a device is, to be compared: memory in use (in units of 64 MiB) first, then utilisation in percent."""
    if why_unusable():
        return (0, 0)
    used = utilisation = 0
    # A MIG device has no utilisation; a lost one is found out by whoever leases it.
    with suppress(pynvml.NVMLError):
        handle = pynvml.nvmlDeviceGetHandleByUUID(device.uuid)
        used = _used_bytes(handle) >> 26
        utilisation = int(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu)
    return (used, utilisation)


def foreign_processes(devices: Sequence[Device], own: Collection[int] = (), settle: float = 2.0) -> tuple[str, ...]:
    """Who computes on ``devices`` and is neither in ``own`` nor a descendant of one in it, as readable text.

    A process that has just ended keeps its place in NVML's list and its memory for a moment: what is seen counts once
    it has stayed for ``settle`` seconds. Inside a container NVML may list no process, or one without a usable number;
    memory in use beyond ``FOREIGN_BYTES`` while none of ``own`` lives is the sign then. While one of ``own`` lives, the
    numbers are believed there only on a device whose list names one of them. A device that does not answer is reported
    too: it cannot be said to be free.
    """
    if not devices or why_unusable():
        return ()
    until = time.monotonic() + settle
    while True:
        found = tuple(line for device in devices for line in _foreign(device, own))
        if not found or time.monotonic() >= until:
            return found
        time.sleep(0.1)


def _foreign(device: Device, own: Collection[int]) -> list[str]:
    name = f"GPU {label(device)}"
    try:
        handle = pynvml.nvmlDeviceGetHandleByUUID(device.uuid)
        running = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
        used = _used_bytes(handle)
    except pynvml.NVMLError as error:
        return [f"{name} does not answer ({error})"]
    ours_live = any(psutil.pid_exists(pid) for pid in own)
    if ours_live and not _on_the_host() and not any(_is_ours(entry.pid, own) for entry in running):
        # The numbers may be the host's: one that is somebody's here may be one of ours there.
        return []
    found = [f"{name}: {_process_name(entry.pid)}" for entry in running if _is_foreign(entry.pid, own)]
    if not found and used > FOREIGN_BYTES and not ours_live:
        found.append(f"{name}: {used >> 20} MiB in use by a process that cannot be seen from here")
    return found


def _is_foreign(pid: int, own: Collection[int]) -> bool:
    if not psutil.pid_exists(pid):
        # In the host's own pid namespace a number without a process is one that has ended. In a container it may be
        # the host's number of somebody else, or of one of ours: with ours alive there is no telling them apart.
        return not _on_the_host() and not any(psutil.pid_exists(mine) for mine in own)
    return not _is_ours(pid, own)


def _is_ours(pid: int, own: Collection[int]) -> bool:
    try:
        family = {pid, *(parent.pid for parent in psutil.Process(pid).parents())}
    except psutil.Error:
        family = {pid}
    return not family.isdisjoint(own)


def _on_the_host() -> bool:
    """Whether this is the first pid namespace, whose number Linux fixes (PROC_PID_INIT_INO, 0xEFFFFFFC)."""
    try:
        return Path("/proc/self/ns/pid").stat().st_ino == 0xEFFFFFFC
    except OSError:
        return False


def _process_name(pid: int) -> str:
    """Program name and number only: a command line could hold credentials."""
    try:
        return f"{psutil.Process(pid).name()} (pid {pid})"
    except psutil.Error:
        return f"a process of another container or of the host (pid {pid})" if pid else "a process without a number"
