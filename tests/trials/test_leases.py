"""GPU leases among real processes, for devices that are pretended: what is leased is a name."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from bisect_env.errors import InfrastructureError
from bisect_env.trials import lease_folder, leases
from bisect_env.trials.records import Device

DEVICES = tuple(Device(f"GPU-{index:04d}", "pretended", index, 1 << 30, "1") for index in range(4))
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload([__name__])


def nobody(devices: Sequence[Device]) -> tuple[str, ...]:
    return ()


def equal(device: Device) -> int:
    return 0


def take(
    folder: Path, count: int, devices: Sequence[Device] = DEVICES, **more: object
) -> contextlib.AbstractContextManager[tuple[Device, ...]]:
    given: dict[str, object] = {"available": lambda: devices, "load": equal, "foreign": nobody, "timeout": 60.0}
    return leases.lease(count, folder=folder, **{**given, **more})  # type: ignore[arg-type]


def _compete(folder: Path, proof: Path, count: int, rounds: int) -> None:
    """Lease again and again; a device held twice at a time makes the exclusive creation of its file fail."""
    for _ in range(rounds):
        with take(folder, count) as devices:
            assert len({device.uuid for device in devices}) == count
            marks = [proof / device.uuid for device in devices]
            for mark in marks:
                os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
            time.sleep(0.01)
            for mark in marks:
                mark.unlink()


def test_many_processes_never_hold_a_device_twice_and_none_is_stuck(tmp_path: Path) -> None:
    proof = tmp_path / "proof"
    proof.mkdir()
    counts = [1, 2, 3, 4, 1, 2]
    workers = [PROCESSES.Process(target=_compete, args=(tmp_path / "leases", proof, count, 8)) for count in counts]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0] * len(counts)
    assert not list(proof.iterdir())
    assert not tickets(tmp_path / "leases")


def test_threads_of_one_process_exclude_each_other_too(tmp_path: Path) -> None:
    with take(tmp_path / "leases", 3), take(tmp_path / "leases", 1) as (last,):
        assert last == DEVICES[3]
        with pytest.raises(InfrastructureError, match="no GPU in time"), take(tmp_path / "leases", 1, timeout=0.1):
            pass
    with take(tmp_path / "leases", 4) as everything:
        assert set(everything) == set(DEVICES)


def _hold(folder: Path, ready: Path, count: int) -> None:
    with take(folder, count):
        ready.touch()
        time.sleep(60)


@contextlib.contextmanager
def holder(folder: Path, ready: Path, count: int) -> Iterator[int]:
    process = PROCESSES.Process(target=_hold, args=(folder, ready, count))
    process.start()
    try:
        wait_for(ready.exists)
        assert process.pid is not None
        yield process.pid
    finally:
        process.kill()
        process.join()


def wait_for(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not come to that in time"
        time.sleep(0.01)


def test_kill_9_gives_the_devices_back(tmp_path: Path) -> None:
    folder = tmp_path / "leases"
    with holder(folder, tmp_path / "ready", 4) as pid:
        said: list[str] = []
        message = f"waiting for 1 of 4 GPUs: GPU 0 is leased by .*pid {pid}"
        with pytest.raises(InfrastructureError, match=message), take(folder, 1, timeout=0.3, tell=said.append):
            pass
        assert len(said) == 1, "an unchanged message is not repeated"
        os.kill(pid, signal.SIGKILL)
        with take(folder, 4, timeout=5.0) as devices:
            assert len(devices) == 4


def test_a_killed_waiters_ticket_holds_nobody_up(tmp_path: Path) -> None:
    folder = tmp_path / "leases"
    with holder(folder, tmp_path / "ready", 4) as pid:
        waiter = PROCESSES.Process(target=_hold, args=(folder, tmp_path / "never", 4))
        waiter.start()
        wait_for(lambda: bool(tickets(folder)))
        waiter.kill()
        waiter.join()
        os.kill(pid, signal.SIGKILL)
        with take(folder, 1, timeout=5.0):
            assert not tickets(folder)


def test_a_stopped_waiter_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-Z in a terminal must not stop everybody else on the host."""
    monkeypatch.setattr(leases, "ASLEEP", 1.0)
    folder = tmp_path / "leases"
    with take(folder, 1):
        waiter = PROCESSES.Process(target=_hold, args=(folder, tmp_path / "never", 4))
        waiter.start()
        try:
            wait_for(lambda: bool(tickets(folder)) and tickets(folder)[0].stat().st_size > 0)
            assert waiter.pid is not None
            os.kill(waiter.pid, signal.SIGSTOP)
            began = time.monotonic()
            with take(folder, 1, timeout=20.0):
                assert time.monotonic() - began > 0.5, "a waiter that is awake goes first"
        finally:
            waiter.kill()
            waiter.join()


def tickets(folder: Path) -> list[Path]:
    return sorted(folder.glob("ticket-*"))


def _stream(folder: Path, until: Path) -> None:
    while not until.exists():
        with take(folder, 1):
            time.sleep(0.02)


def test_a_request_for_all_is_not_starved_by_a_stream_of_small_ones(tmp_path: Path) -> None:
    folder, until = tmp_path / "leases", tmp_path / "until"
    stream = [PROCESSES.Process(target=_stream, args=(folder, until)) for _ in range(5)]
    for process in stream:
        process.start()
    try:
        wait_for(lambda: len(list(folder.glob("*"))) > 4)
        with take(folder, 4, timeout=15.0) as devices:
            assert len(devices) == 4
    finally:
        until.touch()
        for process in stream:
            process.join(20)
    assert [process.exitcode for process in stream] == [0] * 5


def test_who_waits_for_other_gpus_holds_nobody_up(tmp_path: Path) -> None:
    folder = tmp_path / "leases"
    with take(folder, 1, DEVICES[:1]):
        stop = threading.Event()
        ended: list[str] = []

        def wait() -> None:
            try:
                with take(folder, 1, DEVICES[:1], stop=stop):
                    pass
            except leases.LeaseStopped as error:
                ended.append(str(error))

        waiter = threading.Thread(target=wait)
        waiter.start()
        wait_for(lambda: bool(tickets(folder)))
        with take(folder, 1, DEVICES[1:2], timeout=2.0) as (other,):
            assert other == DEVICES[1]
        stop.set()
        waiter.join(5)
    assert ended
    assert "waiting for 1 of 1 GPUs" in ended[0]


def test_the_least_loaded_come_first(tmp_path: Path) -> None:
    load = {"GPU-0000": 3, "GPU-0001": 1, "GPU-0002": 2, "GPU-0003": 0}
    with take(tmp_path / "leases", 2, load=lambda device: load[device.uuid]) as devices:
        assert [device.uuid for device in devices] == ["GPU-0003", "GPU-0001"]


def test_a_busy_gpu_is_left_out_unless_allowed(tmp_path: Path) -> None:
    folder = tmp_path / "leases"

    def somebody(devices: Sequence[Device]) -> tuple[str, ...]:
        return tuple(f"GPU {device.index}: train (pid 4711)" for device in devices if device.index != 2)

    with take(folder, 1, foreign=somebody) as (free,):
        assert free.index == 2
    said: list[str] = []
    message = r"GPU 0: train \(pid 4711\) \(--allow-busy takes it nevertheless\)"
    refused = take(folder, 2, foreign=somebody, timeout=0.3, tell=said.append)
    with pytest.raises(InfrastructureError, match=message), refused:
        pass
    assert any("GPU 3: train" in line for line in said)
    with take(folder, 4, foreign=somebody, allow_busy=True) as devices:
        assert len(devices) == 4
    with take(folder, 4) as devices:
        assert len(devices) == 4, "what was found busy was given back"


def test_what_cannot_go_on_anyway_keeps_nothing_from_others(tmp_path: Path) -> None:
    """Two of two are asked for, one of them is busy for long: the other must stay usable by those behind."""
    folder, stop = tmp_path / "leases", threading.Event()
    busy = lambda devices: tuple("train" for device in devices if device.index == 0)  # noqa: E731

    def wait() -> None:
        with contextlib.suppress(leases.LeaseStopped), take(folder, 2, DEVICES[:2], foreign=busy, stop=stop):
            pass

    waiter = threading.Thread(target=wait)
    waiter.start()
    wait_for(lambda: bool(tickets(folder)))
    with take(folder, 1, DEVICES[1:2], timeout=5.0) as (other,):
        assert other == DEVICES[1]
    stop.set()
    waiter.join(5)
    assert not waiter.is_alive()


def test_none_asked_for_touches_nothing(tmp_path: Path) -> None:
    with take(tmp_path / "leases", 0) as devices:
        assert devices == ()
    assert not (tmp_path / "leases").exists()


def test_more_than_there_are_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="needs 5 GPUs at a time, and 4 can be used"), take(tmp_path / "l", 5):
        pass
    slices = [Device(f"MIG-{index}", "H200 MIG 1g", 0, 1, "1") for index in range(3)]
    with pytest.raises(InfrastructureError, match="MIG devices serve one trial each"), take(tmp_path / "l", 2, slices):
        pass
    with take(tmp_path / "l", 1, slices) as (one,):
        assert one == slices[0]
    with (
        pytest.raises(InfrastructureError, match="needs 1 GPU at a time, and 0 can be used"),
        take(tmp_path / "l", 1, ()),
    ):
        pass


def test_files_are_open_to_all_users_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        with take(tmp_path / "leases", 1):
            pass
    finally:
        os.umask(before)
    folder = tmp_path / "leases"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o1777
    modes = {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert modes == {0o666}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can take another user's place")
def test_another_user_waits_for_roots_lease_and_gets_it_afterwards(tmp_path: Path) -> None:
    folder = Path(f"/tmp/bisect-env-test-{os.getpid()}")
    program = (
        "import os, sys\nfrom pathlib import Path\n"
        "from bisect_env.trials import leases\nfrom bisect_env.trials.records import Device\n"
        "os.setgid(65534); os.setuid(65534)\n"
        "device, folder = Device('GPU-0000', 'x', 0, 1, '1'), Path(sys.argv[1])\n"
        "given = dict(available=lambda: [device], foreign=lambda _: ())\n"
        "try:\n    with leases.lease(1, timeout=0.2, folder=folder, **given):\n        print('got it')\n"
        "except Exception as error:\n    print(error)\n"
    )

    def as_nobody() -> str:
        command = [sys.executable, "-c", program, str(folder)]
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout

    try:
        with take(folder, 1, DEVICES[:1]):
            assert "leased by root" in as_nobody()
        assert as_nobody() == "got it\n"
        with take(folder, 1, DEVICES[:1], timeout=5.0):
            pass
    finally:
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()


def test_links_and_odd_files_are_refused_and_left_alone(tmp_path: Path) -> None:
    folder, victim = tmp_path / "leases", tmp_path / "victim"
    victim.write_text("precious")
    folder.mkdir()
    gpu_file = folder / "gpu-GPU-0000"
    for plant in (
        lambda: gpu_file.symlink_to(victim),
        lambda: gpu_file.hardlink_to(victim),
        lambda: os.mkfifo(gpu_file),
    ):
        plant()
        with pytest.raises(InfrastructureError, match="BISECT_ENV_LEASES"), take(folder, 1, DEVICES[:1], timeout=5.0):
            pass
        gpu_file.unlink()
        assert victim.read_text() == "precious"
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(InfrastructureError, match="has to be a real one"), take(tmp_path / "link", 1):
        pass


def test_the_folder_is_the_same_for_every_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("BISECT_ENV_LEASES", raising=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    place = lease_folder.shared_folder()
    assert place.parent.stat().st_mode & 0o1777 == 0o1777
    assert not place.is_relative_to(tmp_path)
    monkeypatch.setenv("BISECT_ENV_LEASES", str(tmp_path / "own"))
    assert lease_folder.shared_folder() == tmp_path / "own"


def test_an_error_in_the_body_gives_the_lease_back(tmp_path: Path) -> None:
    with pytest.raises(KeyError), take(tmp_path / "leases", 4):
        raise KeyError
    with take(tmp_path / "leases", 4, timeout=1.0):
        pass
