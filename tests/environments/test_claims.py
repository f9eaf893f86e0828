"""Claims: many real processes on one folder, killed, stopped and slow ones, and clocks that mean nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bisect_env.environments import claims as module
from bisect_env.environments import holding
from bisect_env.environments.claims import Claims, Watch, taken
from bisect_env.environments.places import LOCKS, environments_folder
from bisect_env.errors import InfrastructureError

QUICK = Claims(staleness=1.0)
HOLD = """
import sys, time
from pathlib import Path
from bisect_env.environments.claims import Claims, taken
folder, staleness, seconds = Path(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
with taken(folder, "name", Claims(staleness), timeout=60) as claim:
    # No other holder is here at the same time: its mark would be in the way.
    (folder / "inside").mkdir()
    print("held", flush=True)
    time.sleep(seconds)
    (folder / "inside").rmdir()
print("lost" if claim.lost else "released", flush=True)
"""


@contextmanager
def holder(folder: Path, seconds: float = 60.0, staleness: float = 1.0) -> Iterator[subprocess.Popen[str]]:
    """Another process that claims the name, waiting for it if need be."""
    command = [sys.executable, "-c", HOLD, folder, str(staleness), str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_one_at_a_time_of_many_processes(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen([sys.executable, "-c", HOLD, tmp_path, "5", "0.02"], stdout=subprocess.PIPE, text=True)
        for _ in range(12)
    ]
    for process in processes:
        assert process.communicate(timeout=60)[0] == "held\nreleased\n"
        assert process.returncode == 0
    assert list(tmp_path.iterdir()) == []


def test_a_name_is_asked_for_once_and_not_waited_for(tmp_path: Path) -> None:
    with taken(tmp_path, "name", QUICK) as first, taken(tmp_path, "name", QUICK) as second:
        assert first is not None and second is None
        with taken(tmp_path, "another", QUICK) as other:
            assert other is not None
    with taken(tmp_path, "name", QUICK) as again:
        assert again is not None


def test_a_killed_holder_is_followed_after_its_staleness(tmp_path: Path) -> None:
    with holder(tmp_path) as process:
        assert said(process) == "held"
        process.kill()
        process.wait()
        began = time.monotonic()
        with taken(tmp_path, "name", QUICK, timeout=0.5) as claim:
            assert claim is None
        with taken(tmp_path, "name", QUICK, timeout=20) as claim:
            assert claim is not None
        assert 1.0 <= time.monotonic() - began < 6
    assert [path.name for path in tmp_path.iterdir()] == ["inside"]


def test_a_slow_holder_that_lives_is_never_robbed(tmp_path: Path) -> None:
    with holder(tmp_path, seconds=5.0) as process:
        assert said(process) == "held"
        with taken(tmp_path, "name", QUICK, timeout=3.5) as claim:
            assert claim is None
        with taken(tmp_path, "name", QUICK, timeout=20) as claim:
            assert claim is not None and not (tmp_path / "inside").exists()
        assert said(process) == "released"


@pytest.mark.parametrize("shift", [-(10**6), 10**6])
def test_clocks_that_differ_mean_nothing(tmp_path: Path, shift: int) -> None:
    """The times of the files are another clock's, hours ahead or behind, whatever the holder does."""
    moved = threading.Event()

    def move() -> None:
        while not moved.wait(0.02):
            for path in (*tmp_path.glob("*.claim/*"), *tmp_path.glob("*.claim")):
                try:
                    os.utime(path, (time.time() + shift, time.time() + shift))
                except FileNotFoundError:
                    continue

    mover = threading.Thread(target=move)
    mover.start()
    try:
        with holder(tmp_path) as process:
            assert said(process) == "held"
            with taken(tmp_path, "name", QUICK, timeout=2.5) as claim:
                assert claim is None
            process.kill()
            process.wait()
            with taken(tmp_path, "name", QUICK, timeout=20) as claim:
                assert claim is not None
    finally:
        moved.set()
        mover.join()


def test_waiters_that_race_for_a_dead_claim(tmp_path: Path) -> None:
    with holder(tmp_path, staleness=2.0) as dead:
        assert said(dead) == "held"
        waiting = [
            subprocess.Popen([sys.executable, "-c", HOLD, tmp_path, "2", "0.05"], stdout=subprocess.PIPE, text=True)
            for _ in range(6)
        ]
        dead.kill()
        dead.wait()
        (tmp_path / "inside").rmdir()
        # Each one's mark would be in another's way, were two of them inside.
        for process in waiting:
            assert process.communicate(timeout=60)[0] == "held\nreleased\n"
    assert list(tmp_path.iterdir()) == []


def test_a_waiter_that_comes_too_late_cannot_take_from_the_new_holder(tmp_path: Path) -> None:
    """Two have seen the holder dead; one takes over, and only then does the other one act on what it saw."""
    with holder(tmp_path) as process:
        assert said(process) == "held"
        process.kill()
        process.wait()
    place = tmp_path / "name.claim"
    watches = [Watch(QUICK), Watch(QUICK)]
    dead = next(place.iterdir()).name
    with taken(tmp_path, "name", QUICK, timeout=20) as claim:
        assert claim is not None
        for watch in watches:
            assert not watch._remove(place, dead)
            assert not watch.free(place)
    assert not claim.lost


def test_a_holder_that_was_stopped_learns_that_it_lost(tmp_path: Path) -> None:
    with holder(tmp_path, seconds=0.5) as process:
        assert said(process) == "held"
        process.send_signal(signal.SIGSTOP)
        (tmp_path / "inside").rename(tmp_path / "stopped")
        with taken(tmp_path, "name", QUICK, timeout=20) as claim:
            assert claim is not None
            (tmp_path / "stopped").rename(tmp_path / "inside")
            process.send_signal(signal.SIGCONT)
            assert said(process) == "lost"
        assert not claim.lost


def test_a_waiter_that_was_stopped_itself_robs_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Holder and waiter were both stopped for long, as all jobs of a node may be; the waiter wakes first."""
    with holder(tmp_path) as process:
        assert said(process) == "held"
        process.send_signal(signal.SIGSTOP)
        watch, clock = Watch(QUICK), time.monotonic
        assert not watch.free(tmp_path / "name.claim")
        monkeypatch.setattr(module.time, "monotonic", lambda: clock() + 3600)
        assert not watch.free(tmp_path / "name.claim")
        process.send_signal(signal.SIGCONT)
        until = clock() + 1.5
        while clock() < until:
            assert not watch.free(tmp_path / "name.claim")
            time.sleep(QUICK.pause)


def test_an_empty_claim_is_free(tmp_path: Path) -> None:
    """Whoever removed a dead holder was killed before it could take its place."""
    (tmp_path / "name.claim").mkdir()
    with taken(tmp_path, "name", QUICK) as claim:
        assert claim is not None
    assert list(tmp_path.iterdir()) == []


def test_an_empty_claim_is_free_where_no_folder_replaces_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "name.claim").mkdir()
    rename = Path.rename

    def strict(self: Path, target: Path) -> Path:
        if Path(target).is_dir():
            raise FileExistsError(17, "File exists")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", strict)
    with taken(tmp_path, "name", QUICK, timeout=5) as claim:
        assert claim is not None


def test_an_answer_that_a_server_gives_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NFS: the rename was done, its answer lost, and the question asked again."""
    rename = Path.rename

    def twice(self: Path, target: Path) -> Path:
        rename(self, target)
        if self.name.startswith(".new-"):
            return rename(self, target)
        return target

    monkeypatch.setattr(Path, "rename", twice)
    with taken(tmp_path, "name", QUICK) as claim:
        assert claim is not None


def test_what_killed_tries_left_goes(tmp_path: Path) -> None:
    (tmp_path / ".new-name-0123").mkdir()
    (tmp_path / ".new-name-0123" / "beat-0123").write_text("0")
    (tmp_path / ".dead-name-4567").write_text("9")
    (tmp_path / ".new-other-0123").mkdir()
    with taken(tmp_path, "name", QUICK) as claim:
        assert claim is not None
    assert [path.name for path in tmp_path.iterdir()] == [".new-other-0123"]


def test_stop_ends_the_waiting(tmp_path: Path) -> None:
    stop = threading.Event()
    with taken(tmp_path, "name", Claims()):
        timer = threading.Timer(0.3, stop.set)
        timer.start()
        began = time.monotonic()
        with taken(tmp_path, "name", Claims(), timeout=60, stop=stop) as claim:
            assert claim is None
        assert time.monotonic() - began < 3
        timer.join()


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="may every host write there"), taken(tmp_path / "no", "name", QUICK):
        pass
    (tmp_path / "name.claim").write_text("")
    with pytest.raises(InfrastructureError, match="cannot be claimed"), taken(tmp_path, "name", QUICK):
        pass
    (tmp_path / "environments").write_text("")
    with (
        pytest.raises(InfrastructureError, match="no address can be claimed"),
        holding.held(tmp_path, "name", claims=QUICK),
    ):
        pass


def test_a_local_builder_waits_for_a_claim_and_follows_a_dead_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = environments_folder(tmp_path) / LOCKS
    folder.mkdir(parents=True)
    monkeypatch.setattr(holding, "Claims", lambda: QUICK)
    with holder(folder) as process:
        assert said(process) == "held"
        with holding.held(tmp_path, "name") as mine:
            assert not mine
        with holding.held(tmp_path, "name", timeout=2.5) as mine:
            assert not mine
        process.kill()
        process.wait()
        with holding.held(tmp_path, "name", timeout=20) as mine:
            assert mine


def test_a_claim_lost_in_a_build_is_told(tmp_path: Path) -> None:
    script = textwrap.dedent(f"""
        import sys, time
        from pathlib import Path
        from bisect_env.environments.claims import Claims
        from bisect_env.environments.holding import held
        from bisect_env.errors import InfrastructureError
        try:
            with held(Path({str(tmp_path)!r}), "name", claims=Claims(1.0)):
                print("held", flush=True)
                time.sleep(0.5)
                raise FileNotFoundError("what it built was swept away")
        except InfrastructureError as error:
            print(error)
    """)
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert said(process) == "held"
            process.send_signal(signal.SIGSTOP)
            with holding.held(tmp_path, "name", timeout=20, claims=QUICK) as mine:
                assert mine
                process.send_signal(signal.SIGCONT)
                assert "did not run for 1 s or more while it built it" in said(process)
        finally:
            process.kill()
