"""Who else is on the GPUs of trials that run side by side, against a pretended NVML and real processes."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bisect_env.trials import gpu, leases
from bisect_env.trials.records import Device
from bisect_env.trials.sharing import Company, alone
from tests.support.nvml import Pretended

CARDS = tuple(Device(f"GPU-{index}", "NVIDIA H200", index, 1 << 37, "580.1") for index in range(2))


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "BUSY_AGAIN", 0.05)
    real = gpu.foreign_processes
    monkeypatch.setattr(gpu, "foreign_processes", lambda devices, own=(): real(devices, own, settle=0.1))


@pytest.fixture
def somebody() -> Iterator[int]:
    """A process that descends from another than this one: its parent has ended."""
    command = ["sh", "-c", "sleep 60 > /dev/null & echo $!"]
    pid = int(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
    yield pid
    os.kill(pid, 9)


@pytest.fixture
def ours() -> Iterator[int]:
    """A child of this process, as a trial is."""
    with subprocess.Popen(["sleep", "60"]) as child:
        yield child.pid
        child.kill()


def company(said: list[str], allow_busy: bool = False) -> tuple[Company, threading.Event]:
    stop = threading.Event()
    return Company(allow_busy, stop, said.append), stop


@pytest.mark.parametrize("on_the_host", [True, False])
def test_our_own_trials_are_nobody_else(
    nvml: Pretended, ours: int, monkeypatch: pytest.MonkeyPatch, on_the_host: bool
) -> None:
    monkeypatch.setattr(gpu, "_on_the_host", lambda: on_the_host)
    together, _ = company([])
    with together.stay(CARDS[:1]) as first:
        nvml.processes, nvml.used = [ours], 1 << 30
        with together.stay(CARDS[:1]) as second:
            pass
        nvml.processes, nvml.used = [], 0
    assert first.others == second.others == []


@pytest.mark.parametrize("on_the_host", [True, False])
def test_whoever_is_seen_spoils_all_that_are_there(
    nvml: Pretended, ours: int, somebody: int, monkeypatch: pytest.MonkeyPatch, on_the_host: bool
) -> None:
    monkeypatch.setattr(gpu, "_on_the_host", lambda: on_the_host)
    together, _ = company([])
    with together.stay(CARDS[:1]) as there, together.stay(CARDS[1:]) as elsewhere:
        with together.stay(CARDS[:1]) as ends:
            nvml.listed = lambda handle: [ours, somebody] if handle == "GPU-0" else []
        assert f"(pid {somebody})" in ends.others[0] and there.others == ends.others
        nvml.listed = lambda handle: []
    assert len(there.others) == 1 and elsewhere.others == []


def test_who_comes_waits_until_the_other_has_gone(nvml: Pretended, ours: int, somebody: int) -> None:
    said: list[str] = []
    together, _ = company(said)
    with together.stay(CARDS[:1]) as there:
        nvml.processes = [ours, somebody]
        threading.Timer(0.4, lambda: setattr(nvml, "processes", [ours])).start()
        began = time.monotonic()
        with together.stay(CARDS[:1]) as late:
            assert time.monotonic() - began > 0.3
        nvml.processes = []
    assert there.others and not late.others
    assert f"waiting for GPU 0: sleep (pid {somebody}) (--allow-busy" in said[0]


def test_numbers_that_cannot_be_compared_tell_nothing_while_ours_run(
    nvml: Pretended, somebody: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a container: what is listed by a number that is somebody's here may be one of ours by the host's count."""
    monkeypatch.setattr(gpu, "_on_the_host", lambda: False)
    together, _ = company([])
    with together.stay(CARDS[:1]) as first:
        nvml.processes = [somebody]
        with together.stay(CARDS[:1]) as second:
            pass
        assert second.others == []
    assert first.others, "none of ours is there any more, and somebody still is"


def test_memory_that_stays_when_all_of_ours_have_gone(nvml: Pretended) -> None:
    together, _ = company([])
    with together.stay(CARDS[:1]) as last:
        nvml.used = 1 << 30
    assert "1024 MiB in use by a process that cannot be seen" in last.others[0]


def test_allowed_to_be_busy_nobody_is_asked_for(nvml: Pretended, somebody: int) -> None:
    nvml.processes = [somebody]
    together, _ = company([], allow_busy=True)
    with together.stay(CARDS) as stay:
        assert stay.devices == CARDS
    assert stay.others == []


def test_a_wait_can_be_stopped(nvml: Pretended, somebody: int) -> None:
    nvml.processes = [somebody]
    together, stop = company([])
    threading.Timer(0.2, stop.set).start()
    with pytest.raises(leases.LeaseStopped, match="stopped while waiting for GPU 0"), together.stay(CARDS[:1]):
        pass


def test_alone_all_that_is_there_afterwards_is_somebody_elses(
    nvml: Pretended, ours: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BISECT_ENV_LEASES", str(tmp_path / "leases"))
    for allow_busy in (False, True):
        with alone(1, allow_busy, None, threading.Event(), print) as stay:
            assert len(stay.devices) == 1
            nvml.processes = [ours]
        assert bool(stay.others) is not allow_busy
        nvml.processes = []


def test_who_needs_a_gpu_for_itself_waits_for_the_others_and_they_for_it(nvml: Pretended) -> None:
    together, _ = company([])
    order: list[str] = []

    def be(name: str, seconds: float, by_itself: bool, device: int = 0) -> threading.Thread:
        def stay() -> None:
            with together.stay(CARDS[device : device + 1], by_itself) as mine:
                order.append(f"{name} in")
                time.sleep(seconds)
                order.append(f"{name} out")
            shared[name] = mine.shared

        thread = threading.Thread(target=stay)
        thread.start()
        time.sleep(0.1)
        return thread

    shared: dict[str, bool] = {}
    threads = [be("a", 0.5, False), be("b", 0.4, False), be("x", 0.3, True), be("c", 0.1, False), be("y", 0.1, True, 1)]
    for thread in threads:
        thread.join(10)
    assert order.index("x in") > max(order.index("a out"), order.index("b out"))
    assert order.index("c in") > order.index("x out") and order.index("y in") < order.index("x in")
    assert shared == {"a": True, "b": True, "x": False, "c": False, "y": False}


def test_a_wait_for_a_gpu_of_its_own_can_be_stopped(nvml: Pretended) -> None:
    together, stop = company([])
    with together.stay(CARDS[:1]):
        threading.Timer(0.2, stop.set).start()
        with pytest.raises(leases.LeaseStopped), together.stay(CARDS[:1], by_itself=True):
            pass
