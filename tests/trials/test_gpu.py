"""NVML: without a driver, with a refusing one, and on a real GPU where there is one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time

import pynvml
import pytest

from bisect_env.errors import BadInput
from bisect_env.trials import gpu
from bisect_env.trials.records import Device
from tests.support.nvml import Pretended

WHY_NONE = gpu.why_unusable()
REAL = gpu.devices() if not WHY_NONE else ()
needs_gpu = pytest.mark.skipif(not REAL, reason=f"no GPU here: {WHY_NONE or 'NVML shows none'}")
PRETENDED = Device("GPU-00000000-0000", "NVIDIA H200", 0, 1 << 37, "580.0")


def test_a_host_without_a_driver_has_no_devices_and_says_why() -> None:
    """In a process of its own whose loader cannot find the library, so that it holds on GPU hosts as well."""
    program = (
        "import ctypes, pynvml\n"
        "real = pynvml.CDLL\n"
        "def missing(name, *rest):\n    raise OSError(name)\n"
        "pynvml.CDLL = missing\n"
        "from bisect_env.trials import gpu\n"
        "assert gpu.devices() == () and gpu.foreign_processes(()) == () and gpu.health(()) == ()\n"
        "print(gpu.survey().notes[0])\n"
        "try:\n    gpu.devices('0')\nexcept Exception as error:\n    print(type(error).__name__, error)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True)
    assert ended.stdout.startswith("no NVIDIA driver")
    assert "BadInput --gpus: '0' on a host without a usable GPU (no NVIDIA driver" in ended.stdout


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH, "driver/library mismatch.*reboot"),
        (pynvml.NVML_ERROR_DRIVER_NOT_LOADED, "kernel module is not loaded"),
        (pynvml.NVML_ERROR_NO_PERMISSION, "no permission"),
        (pynvml.NVML_ERROR_UNKNOWN, "does not answer"),
    ],
)
def test_each_reason_has_its_own_words(code: int, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise pynvml.NVMLError(code)

    monkeypatch.setattr(gpu, "_opened_in", None)
    monkeypatch.setattr(pynvml, "nvmlInit", refuse)
    choice = gpu.survey()
    assert choice.devices == ()
    assert re.search(said, choice.notes[0])
    with pytest.raises(BadInput, match="without a usable GPU"):
        gpu.devices("0")


@pytest.mark.parametrize(
    ("bits", "names"),
    [
        (0, ()),
        (0x1, ("idle",)),
        (0x4 | 0x40, ("power cap", "hardware thermal slowdown")),
        (0x1000, ("0x1000",)),
        (0x80 | 0x2000, ("power brake", "0x2000")),
    ],
)
def test_throttle_reasons_have_names(bits: int, names: tuple[str, ...]) -> None:
    assert gpu.throttle_names(bits) == names


def test_every_reason_the_library_knows_has_a_name() -> None:
    known = {
        value
        for name, value in vars(pynvml).items()
        if name.startswith("nvmlClocksEventReason") and isinstance(value, int) and value.bit_count() == 1
    }
    assert known == gpu.THROTTLE_REASONS.keys()


def test_only_slowdowns_spoil_a_throughput_round() -> None:
    assert gpu.slowed((("gpu0 throttle", "idle"), ("gpu1 throttle", "power cap"), ("load 1m", "9"))) == ()
    health = (("gpu0 throttle", "power cap, power brake"), ("gpu3 throttle before", "hardware slowdown"))
    assert gpu.slowed(health) == ("gpu0: power brake", "gpu3: hardware slowdown")
    assert gpu.slowed((("gpu0 throttle before", "power brake"), health[0])) == ("gpu0: power brake",)


def test_a_card_with_mig_on_gives_its_slices(nvml: Pretended, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [(device.uuid, device.index) for device in gpu.devices()] == [("GPU-0", 0), ("MIG-0", 1), ("MIG-3", 1)]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-3")
    assert [device.uuid for device in gpu.devices()] == ["MIG-3"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert gpu.devices() == ()


def test_a_lost_card_is_left_out_and_named(nvml: Pretended) -> None:
    nvml.refused["nvmlDeviceGetUUID"] = pynvml.NVML_ERROR_GPU_IS_LOST
    choice = gpu.survey()
    assert choice.devices == ()
    assert choice.notes[0] == "GPU 0 does not answer and is left out: GPU is lost"


def test_each_question_of_health_fails_alone(nvml: Pretended) -> None:
    everything = dict(gpu.health([PRETENDED]))
    assert everything["gpu0 sm clock MHz"] == "1980"
    assert everything["gpu0 throttle"] == "power cap"
    assert everything["gpu0 power W"] == "123"
    nvml.refused["nvmlDeviceGetTotalEccErrors"] = pynvml.NVML_ERROR_NOT_SUPPORTED
    nvml.refused["nvmlDeviceGetPowerUsage"] = pynvml.NVML_ERROR_GPU_IS_LOST
    fewer = dict(gpu.health([PRETENDED]))
    assert everything.keys() - fewer.keys() == {"gpu0 ecc uncorrected"}
    assert fewer["gpu0 power W"] == "error: GPU is lost"
    nvml.refused["nvmlDeviceGetHandleByUUID"] = pynvml.NVML_ERROR_NOT_FOUND
    assert gpu.health([PRETENDED]) == (("gpu0", "error: Not Found"),)


def test_a_process_that_is_not_ours_is_named(nvml: Pretended) -> None:
    child = subprocess.Popen(["sleep", "60"])
    try:
        nvml.processes = [child.pid]
        assert gpu.foreign_processes([PRETENDED], settle=0) == (f"GPU 0: sleep (pid {child.pid})",)
        assert gpu.foreign_processes([PRETENDED], own=[child.pid], settle=0) == ()
        assert gpu.foreign_processes([PRETENDED], own=[os.getpid()], settle=0) == (), "a child of ours is ours"
    finally:
        child.kill()
        child.wait()


def test_a_process_that_is_just_ending_does_not_count(nvml: Pretended, monkeypatch: pytest.MonkeyPatch) -> None:
    nvml.used = 4 << 30
    until = time.monotonic() + 0.3
    real = gpu._used_bytes
    monkeypatch.setattr(gpu, "_used_bytes", lambda handle: real(handle) if time.monotonic() < until else 0)
    assert gpu.foreign_processes([PRETENDED], settle=5.0) == ()
    assert time.monotonic() >= until


def test_memory_in_use_without_a_process_is_somebody_elses_unless_ours_run(nvml: Pretended) -> None:
    nvml.used = 900 << 20
    (line,) = gpu.foreign_processes([PRETENDED], settle=0)
    assert "900 MiB in use by a process that cannot be seen" in line
    assert gpu.foreign_processes([PRETENDED], own=[os.getpid()], settle=0) == ()
    nvml.used = 4 << 20
    assert gpu.foreign_processes([PRETENDED], settle=0) == ()


def test_numbers_of_another_pid_namespace(nvml: Pretended, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    nvml.processes = [ended.pid]
    monkeypatch.setattr(gpu, "_on_the_host", lambda: True)
    assert gpu.foreign_processes([PRETENDED], settle=0) == (), "on the host it is one that has ended"
    monkeypatch.setattr(gpu, "_on_the_host", lambda: False)
    (line,) = gpu.foreign_processes([PRETENDED], settle=0)
    assert "another container or of the host" in line
    assert gpu.foreign_processes([PRETENDED], own=[os.getpid()], settle=0) == ()


def test_a_device_that_does_not_answer_cannot_be_called_free(nvml: Pretended) -> None:
    nvml.refused["nvmlDeviceGetComputeRunningProcesses"] = pynvml.NVML_ERROR_GPU_IS_LOST
    assert gpu.foreign_processes([PRETENDED], settle=0) == ("GPU 0 does not answer (GPU is lost)",)


def test_load_orders_by_memory_then_utilisation(nvml: Pretended) -> None:
    nvml.used = 1 << 30
    assert gpu.load(PRETENDED) == (16, 17)
    nvml.refused["nvmlDeviceGetUtilizationRates"] = pynvml.NVML_ERROR_NOT_SUPPORTED
    assert gpu.load(PRETENDED) == (16, 0), "a MIG device has no utilisation, and memory all the same"
    nvml.refused["nvmlDeviceGetHandleByUUID"] = pynvml.NVML_ERROR_GPU_IS_LOST
    assert gpu.load(PRETENDED) == (0, 0)


@needs_gpu
def test_real_devices_have_everything() -> None:
    for device in REAL:
        assert device.uuid.startswith(("GPU-", "MIG-"))
        assert device.memory_bytes > 1 << 30
        assert device.name
        assert device.driver[0].isdigit()


@needs_gpu
def test_real_health_and_selection(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {name.partition(" ")[2] for name, _ in gpu.health(REAL)}
    assert {"memory used MiB", "driver"} <= names
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", REAL[0].uuid)
    assert gpu.devices() == REAL[:1]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert gpu.devices() == ()
