"""Real uv on tiny wheels: built once, whole or not at all, whoever is killed when."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from bisect_env.environments import building, locks, manifest
from bisect_env.environments.places import MARKER, environments_folder
from bisect_env.environments.records import Environment, Lock, Reason, Unavailable
from bisect_env.environments.uv import Uv
from bisect_env.errors import InfrastructureError
from bisect_env.matrix.cells import EnvironmentRequest, IndexChoice
from tests.support.environments import TIMEOUT, built, lock_of, request_of
from tests.support.index import Index, refusing_url
from tests.support.wheels import Wheels, corrupt, tree


def leftovers(root: Path) -> list[Path]:
    return list(environments_folder(root).glob(".tmp-*"))


def test_what_is_built_lies_where_it_should_and_imports(wheels: Wheels, tmp_path: Path, uv: Uv) -> None:
    alpha = wheels.wheel("alpha", "1.0", requires=["beta"], scripts={"alpha-run": "alpha:run"})
    beta = wheels.wheel("beta", "2.0")
    environment = built([alpha, beta], tmp_path, uv)
    assert environment.folder == tmp_path / "environments" / environment.lock.address
    names = {path.name for path in environment.folder.iterdir()}
    assert names == {"venv", "lock.txt", "manifest.json", "pycache", "complete"}
    assert environment.freeze.split() == ["alpha==1.0", "beta==2.0"]
    assert environment.build_seconds > 0
    said = subprocess.run(
        [environment.python, "-I", "-B", "-c", "import alpha, beta; print(alpha.__version__, beta.__version__)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.split() == ["1.0", "2.0"]
    # Its scripts survived the rename.
    assert str(environment.folder) not in (environment.folder / "venv/bin/alpha-run").read_text()
    assert leftovers(tmp_path) == []
    assert list(environment.folder.rglob("*.pyc")) == []
    assert manifest.verify(environment) == ()


def test_second_build_finds_the_first(wheels: Wheels, tmp_path: Path, uv: Uv) -> None:
    wheel = wheels.wheel("alpha", "1.0")
    first = built([wheel], tmp_path, uv)
    inode = first.python.parent.stat().st_ino
    second = built([wheel], tmp_path, uv)
    assert second == replace(first, build_seconds=0.0)
    assert second.python.parent.stat().st_ino == inode
    assert building.find(first.lock.address, first.lock, tmp_path) == second


def test_two_environments_share_the_files_of_a_wheel(wheels: Wheels, tmp_path: Path, uv: Uv) -> None:
    alpha, beta = wheels.wheel("alpha", "1.0"), wheels.wheel("beta", "1.0")
    one, two = built([alpha], tmp_path, uv), built([alpha, beta], tmp_path, uv)
    files = [next(e.folder.glob("venv/lib/python*/site-packages/alpha/__init__.py")) for e in (one, two)]
    assert files[0].stat().st_ino == files[1].stat().st_ino


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="needs a second file system")
def test_cache_on_another_filesystem(wheels: Wheels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Path("/dev/shm") / f"bisect-env-test-{os.getpid()}"
    uv, said = Uv(other), []
    run = Uv.run

    def listening(self: Uv, *args: object, **options: object) -> object:
        finished = run(self, *args, **options)  # type: ignore[arg-type]
        said.append(finished.stderr)
        return finished

    monkeypatch.setattr(Uv, "run", listening)
    try:
        environment = built([wheels.wheel("alpha", "1.0")], tmp_path, uv)
        file = next(environment.folder.glob("venv/lib/python*/site-packages/alpha/__init__.py"))
        assert file.stat().st_nlink == 1
        assert manifest.verify(environment) == ()
        assert "warning" not in "".join(said)
    finally:
        shutil.rmtree(other)


def test_remains_without_a_marker_are_removed(wheels: Wheels, tmp_path: Path, uv: Uv) -> None:
    wheel = wheels.wheel("alpha", "1.0")
    environment = built([wheel], tmp_path, uv)
    (environment.folder / MARKER).unlink()
    next(environment.folder.glob("venv/lib/python*/site-packages/alpha/__init__.py")).unlink()
    assert building.find(environment.lock.address, environment.lock, tmp_path) is None
    assert not environment.folder.exists()
    assert manifest.verify(built([wheel], tmp_path, uv)) == ()


def test_marker_half_written_is_none(wheels: Wheels, tmp_path: Path, uv: Uv) -> None:
    environment = built([wheels.wheel("alpha", "1.0")], tmp_path, uv)
    (environment.folder / MARKER).write_text('{"freeze": "alp')
    assert building.find(environment.lock.address, environment.lock, tmp_path) is None


def test_wrong_hash_is_refused(wheels: Wheels, tmp_path: Path, uv: Uv) -> None:
    wheel = wheels.wheel("alpha", "1.0")
    lock = lock_of(wheel)
    lock = replace(lock, text=lock.text.replace(lock.text[-10:], "000000000\n"))
    result = building.build(lock, request_of(wheel), tmp_path, uv, TIMEOUT)
    assert isinstance(result, Unavailable)
    assert (result.stage, result.reason) == ("build", Reason.BUILD)
    assert "ash mismatch" in result.message
    assert [path.name for path in environments_folder(tmp_path).iterdir()] == [".locks"]


def test_broken_wheel_keeps_uvs_words(wheels: Wheels, tmp_path: Path, uv: Uv) -> None:
    wheel = corrupt(wheels.wheel("omega", "1.0"))
    result = building.build(lock_of(wheel), request_of(wheel), tmp_path, uv, TIMEOUT)
    assert isinstance(result, Unavailable)
    assert result.stage == "build"
    assert "omega" in result.message
    assert leftovers(tmp_path) == []


def test_lock_that_installs_something_else(wheels: Wheels, tmp_path: Path, uv: Uv) -> None:
    wheel = wheels.wheel("alpha", "1.0")
    lock = replace(lock_of(wheel), pins=(("alpha", "1.0"), ("beta", "3.0")))
    result = building.build(lock, request_of(wheel), tmp_path, uv, TIMEOUT)
    assert isinstance(result, Unavailable)
    assert "beta 3.0 is in the lock and not installed" in result.message


def test_time_that_is_up(wheels: Wheels, tmp_path: Path, uv: Uv) -> None:
    wheel = wheels.wheel("alpha", "1.0")
    result = building.build(lock_of(wheel), request_of(wheel), tmp_path, uv, timeout=0.0)
    assert isinstance(result, Unavailable)
    assert "limits: build" in result.message
    assert leftovers(tmp_path) == []


def test_full_disk_is_no_result_of_a_cell(wheels: Wheels, tmp_path: Path, uv: Uv, request) -> None:  # type: ignore[no-untyped-def]
    """A file system of 300 kB, when this user may mount one; the wheel needs 2 MB."""
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "none", small], capture_output=True).returncode:
        pytest.skip("may not mount a file system")
    request.addfinalizer(lambda: subprocess.run(["umount", small], check=True))
    wheel = wheels.wheel("alpha", "1.0", files={"alpha.py": "", "alpha.bin": os.urandom(2_000_000)})
    with pytest.raises(InfrastructureError, match="disk is full"):
        building.build(lock_of(wheel), request_of(wheel), small, uv, TIMEOUT)
    assert leftovers(small) == []


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_source_distribution_is_built_against_what_the_lock_pins(
    wheels: Wheels, tmp_path: Path, uv: Uv, version: str
) -> None:
    """As flash-attn: imports torch to be built and does not say so. Two torches, one cache: two results."""
    beta = wheels.wheel("beta", version)
    files = wheels.sdist("gamma", "1.0", requires=["beta"], build_imports=["beta"])
    lock, request = lock_of(beta, files), request_of(beta, files)
    without = building.build(lock, request, tmp_path, uv, TIMEOUT)
    assert isinstance(without, Unavailable)
    assert "No module named 'beta'" in without.message
    request = replace(request, build_requirements=(("gamma", ("beta",)),))
    result = building.build(lock, request, tmp_path, uv, TIMEOUT)
    assert isinstance(result, Environment), result
    assert manifest.verify(result) == ()
    told = next(result.folder.glob("venv/lib/python*/site-packages/gamma-1.0.dist-info/uv_build.json"))
    assert f"beta=={version}" in told.read_text() or version in told.read_text()


def test_local_tree(wheels: Wheels, tmp_path: Path, uv: Uv) -> None:
    source = tree(tmp_path / "source", "delta", "0.5")
    lock = replace(lock_of(), text=f"delta @ {source.as_uri()}\n", pins=(("delta", "0.5"),))
    result = building.build(lock, request_of(), tmp_path, uv, TIMEOUT)
    assert isinstance(result, Environment), result
    assert manifest.verify(result) == ()


def test_builders_in_two_processes_build_once(wheels: Wheels, tmp_path: Path, uv: Uv, uv_cache: Path) -> None:
    wheel = wheels.wheel("alpha", "1.0", files={f"alpha/m{number}.py": "" for number in range(300)})
    processes = [start_builder(wheel, tmp_path, uv_cache) for _ in range(3)]
    seconds = [float(process.communicate(timeout=60)[0]) for process in processes]
    assert sorted(value > 0 for value in seconds) == [False, False, True]
    assert manifest.verify(built([wheel], tmp_path, uv)) == ()


def test_threads_of_one_process_build_once(wheels: Wheels, tmp_path: Path, uv: Uv) -> None:
    wheel = wheels.wheel("alpha", "1.0")
    results: list[Environment] = []
    threads = [threading.Thread(target=lambda: results.append(built([wheel], tmp_path, uv))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(result.build_seconds > 0 for result in results) == [False, False, False, True]


def test_stop_ends_the_waiting_for_another_builder(wheels: Wheels, tmp_path: Path, uv: Uv) -> None:
    wheel = wheels.wheel("alpha", "1.0")
    stop = threading.Event()
    from bisect_env.environments import holding

    with holding.held(tmp_path, lock_of(wheel).address) as mine:
        assert mine
        threading.Timer(0.3, stop.set).start()
        began = time.monotonic()
        with pytest.raises(InfrastructureError, match="stopped"):
            building.build(lock_of(wheel), request_of(wheel), tmp_path, uv, TIMEOUT, stop)
    assert time.monotonic() - began < 5


BUILDER = """
import sys
from pathlib import Path
from bisect_env.environments.uv import Uv
from tests.support.environments import built
wheel, root, cache = map(Path, sys.argv[1:])
print(built([wheel], root, Uv(cache)).build_seconds, flush=True)
"""


def start_builder(wheel: Path, root: Path, cache: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", BUILDER, wheel, root, cache],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        start_new_session=True,
    )


def children(pid: int) -> list[int]:
    return [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def in_sync(root: Path) -> bool:
    """Whether uv has begun to link files into an unfinished environment."""
    return next(environments_folder(root).glob(".tmp-*/venv/lib/python*/site-packages/*"), None) is not None


def wait_for(what, process: subprocess.Popen[str]) -> bool:  # type: ignore[no-untyped-def]
    """False when the builder came to its end before ``what`` was seen."""
    while process.poll() is None:
        if what():
            return True
    return False


@pytest.mark.parametrize("victim", ["uv", "builder"])
def test_kill_in_mid_sync(victim: str, wheels: Wheels, tmp_path: Path, uv: Uv, uv_cache: Path) -> None:
    wheel = wheels.wheel("alpha", "1.0", files={f"alpha/m{number}.py": f"x = {number}" for number in range(2000)})
    built([wheel], tmp_path / "warm", uv)
    root = tmp_path / "cold"
    process = start_builder(wheel, root, uv_cache)
    assert wait_for(lambda: in_sync(root), process)
    for pid in children(process.pid) if victim == "uv" else [process.pid]:
        os.kill(pid, signal.SIGKILL)
    output, words = process.communicate(timeout=60)
    assert process.returncode != 0, output
    if victim == "uv":
        assert "uv was killed" in words
    assert building.find(lock_of(wheel).address, lock_of(wheel), root) is None
    environment = built([wheel], root, uv)
    assert manifest.verify(environment) == ()
    assert len(list(environment.folder.glob("venv/lib/python*/site-packages/alpha/m*.py"))) == 2000
    # An orphaned uv may still be ending; what it left is gone at the latest with the next build of anything.
    built([wheels.wheel("beta", "1.0")], root, uv)
    assert leftovers(root) == []


@pytest.mark.parametrize("step", ["before the rename", "after the rename", "in the marker"])
def test_kill_round_the_rename(step: str, wheels: Wheels, tmp_path: Path, uv: Uv, uv_cache: Path) -> None:
    wheel = wheels.wheel("alpha", "1.0")
    patch = {
        "before the rename": "Path.rename = lambda self, target: os.kill(os.getpid(), 9)",
        "after the rename": "trees.sync_folder = lambda folder: os.kill(os.getpid(), 9)",
        "in the marker": "os.fsync = lambda number: os.kill(os.getpid(), 9) if hasattr(trees, 'marking') else None\n"
        "write = trees.write_durably\n"
        "trees.write_durably = lambda *a: (setattr(trees, 'marking', 1), write(*a))",
    }[step]
    script = BUILDER.replace(
        "wheel, root", f"import os\nfrom bisect_env.environments import trees\n{patch}\nwheel, root", 1
    )
    killed = subprocess.run(
        [sys.executable, "-c", script, wheel, tmp_path, uv_cache], cwd=Path(__file__).parents[2], capture_output=True
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert (environments_folder(tmp_path) / lock_of(wheel).address).exists() == (step != "before the rename")
    environment = built([wheel], tmp_path, uv)
    assert manifest.verify(environment) == ()
    assert leftovers(tmp_path) == []


def test_index_is_asked_only_for_what_is_not_in_the_cache(wheels: Wheels, tmp_path: Path, uv: Uv, index: Index) -> None:
    wheel = wheels.wheel("indexed", "1.0+cu130")
    index.add(wheel)
    lock = lock_of(wheel)
    request = replace(request_of(), index=IndexChoice(urls=(index.url,)))
    one = building.build(lock, request, tmp_path / "one", uv, TIMEOUT)
    assert isinstance(one, Environment), one
    index.stop()
    two = building.build(lock, request, tmp_path / "two", uv, TIMEOUT)
    assert isinstance(two, Environment), two
    assert two.freeze == one.freeze == "indexed==1.0+cu130\n"


def test_index_that_does_not_answer_is_a_reason_of_its_own(wheels: Wheels, tmp_path: Path, uv: Uv) -> None:
    wheel = wheels.wheel("never-fetched", "1.0")
    request = replace(request_of(), index=IndexChoice(urls=(refusing_url(),)))
    result = building.build(lock_of(wheel), request, tmp_path, uv, TIMEOUT)
    assert isinstance(result, Unavailable)
    assert (result.stage, result.reason) == ("build", Reason.INDEX_UNREACHABLE)


def test_tree_that_changed_since_the_lock(wheels: Wheels, tmp_path: Path, uv: Uv) -> None:
    """uv's cache would give the old one; the lock's hash would be a lie for the new one."""
    source = tree(tmp_path / "source", "delta", "0.5", files={"delta.py": "x = 1"})
    request = EnvironmentRequest((f"delta @ {source.as_uri()}",), index=IndexChoice(offline=True))
    locks_ = []
    for content in ("x = 1", "x = 2"):
        tree(source, "delta", "0.5", files={"delta.py": content})
        lock = locks.resolve(request, uv)
        assert isinstance(lock, Lock), lock
        locks_.append(lock)
        environment = building.build(lock, request, tmp_path, uv, TIMEOUT)
        assert isinstance(environment, Environment), environment
        assert next(environment.folder.glob("venv/lib/python*/site-packages/delta.py")).read_text() == content
    assert locks_[0].address != locks_[1].address
    late = building.build(locks_[0], request, tmp_path / "late", uv, TIMEOUT)
    assert isinstance(late, Unavailable)
    assert "changed since the lock" in late.message


def test_offline_says_so(wheels: Wheels, tmp_path: Path, uv: Uv) -> None:
    wheel = wheels.wheel("unheard-of", "1.0")
    request = replace(request_of(wheel), index=IndexChoice(offline=True))
    result = building.build(lock_of(wheel), request, tmp_path, uv, TIMEOUT)
    assert isinstance(result, Unavailable)
    assert "unheard-of" in result.message
