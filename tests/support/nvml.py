"""An NVML whose answers are given, in place of a driver."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from bisect_env.trials import gpu


class Pretended:
    """An NVML whose answers are given: stands in for cards this host lacks (MIG, lost, several)."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.processes: list[int] = []
        self.listed: Callable[[str], Sequence[int]] = lambda handle: self.processes
        """Numbers of the processes on a card."""
        self.used = 0
        self.cards = 2
        self.mig = ["card1"]
        self.throttle: Callable[[], int] = lambda: 0x4
        """NVML's bits; a power cap is what a card under load is always at."""
        self.refused: dict[str, int] = {}
        monkeypatch.setattr(gpu, "_opened_in", os.getpid())
        for name, answer in {
            "nvmlSystemGetDriverVersion": lambda: "580.1",
            "nvmlDeviceGetCount": lambda: self.cards,
            "nvmlDeviceGetHandleByIndex": lambda index: f"card{index}",
            "nvmlDeviceGetHandleByUUID": lambda uuid: uuid,
            "nvmlDeviceGetDeviceHandleFromMigDeviceHandle": lambda handle: "card0",
            "nvmlDeviceGetUUID": lambda handle: handle.replace("card", "GPU-").replace("slice", "MIG-"),
            "nvmlDeviceGetName": lambda handle: "NVIDIA H200",
            "nvmlDeviceGetMemoryInfo": lambda handle, version=None: SimpleNamespace(total=1 << 37, used=self.used),
            "nvmlDeviceGetMigMode": lambda handle: (1, 1) if handle in self.mig else (0, 0),
            "nvmlDeviceGetMaxMigDeviceCount": lambda handle: 7,
            "nvmlDeviceGetMigDeviceHandleByIndex": self.slice,
            "nvmlDeviceGetComputeRunningProcesses": lambda handle: [
                SimpleNamespace(pid=p) for p in self.listed(handle)
            ],
            "nvmlDeviceGetClockInfo": lambda handle, kind: 1980,
            "nvmlDeviceGetCurrentClocksThrottleReasons": lambda handle: self.throttle(),
            "nvmlDeviceGetTemperature": lambda handle, kind: 41,
            "nvmlDeviceGetPowerUsage": lambda handle: 123_400,
            "nvmlDeviceGetEnforcedPowerLimit": lambda handle: 700_000,
            "nvmlDeviceGetTotalEccErrors": lambda handle, kind, since: 0,
            "nvmlDeviceGetUtilizationRates": lambda handle: SimpleNamespace(gpu=17),
        }.items():
            monkeypatch.setattr(pynvml, name, self.refusing(name, answer))

    def refusing(self, name: str, answer: Any) -> Any:
        def asked(*given: Any, **named: Any) -> Any:
            if name in self.refused:
                raise pynvml.NVMLError(self.refused[name])
            return answer(*given, **named)

        return asked

    def slice(self, handle: str, place: int) -> str:
        if place not in (0, 3):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return f"slice{place}"
