"""Running processes, as a capture sees them: real ones, with interpreters and libraries of their own."""

from __future__ import annotations

import _ctypes
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from bisect_env.environments.uv import Uv
from bisect_env.errors import BadInput
from bisect_env.snapshots import hosts
from bisect_env.snapshots.reading import read_text
from bisect_env.snapshots.records import Library, Seen, Snapshot
from tests.support.environments import built
from tests.support.wheels import Wheels

READY = "print('ready', flush=True); input()"
SYSTEM = "/usr/bin/python3"
Start = Callable[..., int]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts commands that say when they are ready; gives their number."""
    running: list[subprocess.Popen[str]] = []

    def begin(*command: str, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> int:
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            [*command], env=env or {}, cwd=cwd, stdin=pipe, stdout=pipe, text=True, start_new_session=True
        )
        running.append(process)
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        return process.pid

    yield begin
    for process in running:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.fixture
def venv(wheels: Wheels, tmp_path: Path, uv: Uv) -> Path:
    return built([wheels.wheel("alpha", "1.0")], tmp_path / "environments", uv).folder / "venv"


def taken(pid: int, prefix: tuple[str, ...] = ()) -> Snapshot:
    return read_text(hosts.ask(hosts.through(prefix, "host", pid=pid), "host", 50.0), "host")


def names(found: Snapshot) -> list[str]:
    return [each.name for each in found.distributions]


def test_what_the_process_has_and_the_shell_has_not(start: Start, venv: Path, tmp_path: Path) -> None:
    cache = tmp_path / "tmp" / "torchinductor_trainer"
    cache.mkdir(parents=True)
    (cache / "entry").write_bytes(b"12345")
    given = {"TMPDIR": str(cache.parent), "USER": "trainer", "NCCL_DEBUG": "INFO", "HF_TOKEN": "geheim", "EDITOR": "ed"}
    library = tmp_path / "libcudart.so.12"
    shutil.copy(_ctypes.__file__, library)
    load = f"import ctypes; ctypes.CDLL({str(library)!r}); {READY}"
    found = taken(start(str(venv / "bin" / "python"), "-c", load, env=given), ("env", "-i", "PATH=" + os.defpath))
    assert names(found) == ["alpha"] and found.venv == str(venv)
    assert found.variables == (("HF_TOKEN", "***"), ("NCCL_DEBUG", "INFO"))
    assert found.cache is not None and (found.cache.path, found.cache.entries, found.cache.bytes) == (str(cache), 1, 5)
    assert found.libraries == (Library("libcudart.so.12", str(library)),)
    parts = ("python", "distributions", "torch", "variables", "cache", "venv", "libraries")
    assert {found.where(part) for part in parts} == {Seen.PROCESS}
    assert any("set for itself is not seen" in each for each in found.missing)


@pytest.mark.parametrize("way", ["absolute", "relative", "on PATH", "renamed", "another name and modules"])
def test_the_environment_among_several_of_one_interpreter(start: Start, venv: Path, way: str, tmp_path: Path) -> None:
    """The file that runs is the same for all of them."""
    python = venv / "bin" / "python"
    command, env, cwd = [str(python), "-c", READY], {}, None
    if way == "relative":
        command[0], cwd, env = "./bin/python", venv, {"PWD": str(venv)}
    elif way == "on PATH":
        command = ["env", f"PATH={venv}/bin:{os.defpath}", "python", "-c", READY]
    elif way == "renamed":
        command = ["bash", "-c", f'exec -a ray::worker {python} -c "{READY}"']
        env = {"VIRTUAL_ENV": str(venv), "PATH": os.defpath}
    elif way == "another name and modules":
        module = next(venv.glob("lib/python*/site-packages")) / "fast.so"
        shutil.copy(_ctypes.__file__, module)
        load = f"import ctypes; ctypes.CDLL('{module}'); {READY}"
        command = ["bash", "-c", f'exec -a ray::worker {python} -c "{load}"']
    found = taken(start(*command, env=env, cwd=cwd))
    assert names(found) == ["alpha"] and found.venv == str(venv) and found.where("distributions") is Seen.PROCESS


def test_packages_that_only_its_variables_name(start: Start, venv: Path, wheels: Wheels, tmp_path: Path) -> None:
    extra = tmp_path / "extra"
    (extra / "gamma-2.0.dist-info").mkdir(parents=True)
    (extra / "gamma-2.0.dist-info" / "METADATA").write_text("Name: gamma\nVersion: 2.0\n")
    env = {"PYTHONPATH": "extra", "LD_PRELOAD": ""}
    found = taken(start(str(venv / "bin" / "python"), "-c", READY, env=env, cwd=tmp_path))
    assert names(found) == ["alpha", "gamma"]


def test_another_environment_is_activated_than_runs(start: Start, venv: Path) -> None:
    found = taken(start(sys.executable, "-S", "-c", READY, env={"VIRTUAL_ENV": str(venv)}))
    assert "alpha" not in names(found)
    assert any(f"Activated is {venv}" in each for each in found.missing)


def test_what_was_replaced_on_disk_is_said(start: Start, venv: Path, tmp_path: Path) -> None:
    library = tmp_path / "libnccl.so.2"
    shutil.copy(_ctypes.__file__, library)
    pid = start(str(venv / "bin" / "python"), "-c", f"import ctypes; ctypes.CDLL({str(library)!r}); {READY}")
    library.unlink()
    found = taken(pid)
    assert found.libraries == (Library("libnccl.so.2", str(library)),)
    assert any(each.startswith("libnccl.so.2: replaced or removed on disk") for each in found.missing)


def test_a_title_over_the_variables(start: Start, venv: Path) -> None:
    """As setproctitle does it: the memory that /proc shows is overwritten."""
    wipe = (
        "import ctypes; at = [int(x) for x in open('/proc/self/stat').read().rpartition(') ')[2].split()[47:49]]; "
        f"ctypes.memset(at[0], 0, at[1] - at[0]); {READY}"
    )
    found = taken(start(str(venv / "bin" / "python"), "-c", wipe, env={"OMP_NUM_THREADS": "3"}))
    assert found.variables is None and found.cache is None and found.where("variables") is Seen.UNKNOWN
    assert names(found) == ["alpha"] and any("written its title over them" in each for each in found.missing)


NOBODY = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
as_root = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None, reason="only root can be another user"
)


@as_root
@pytest.mark.skipif(not Path(SYSTEM).is_file(), reason=f"there is no {SYSTEM}")
def test_another_users_process(start: Start) -> None:
    found = taken(start(SYSTEM, "-c", READY, env={"OMP_NUM_THREADS": "3"}), NOBODY)
    assert found.variables is None and found.libraries is None and found.cache is None
    assert found.python and {found.where(part) for part in ("python", "distributions", "variables")} == {Seen.UNKNOWN}
    told = " ".join(found.missing)
    for words in ("variables and the compile cache", "libraries that process", "unchecked"):
        assert words in told
    assert "it belongs to root, and nobody may not look into it (run this as root)" in told


@as_root
def test_another_users_process_that_names_no_interpreter(start: Start) -> None:
    pid = start("bash", "-c", f'exec -a trainer {sys.executable} -c "{READY}"', env={"PATH": os.defpath})
    with pytest.raises(BadInput, match=r"does not show which interpreter it runs: it belongs to root"):
        taken(pid, NOBODY)


@as_root
@pytest.mark.skipif(shutil.which("unshare") is None, reason="there is no unshare")
def test_a_process_in_a_container(start: Start, tmp_path: Path) -> None:
    """Its path exists here too, and is another file."""
    inner, outer = tmp_path / "inner", tmp_path / "outer"
    for folder in (inner, outer):
        folder.mkdir()
        shutil.copy(Path(SYSTEM).resolve(), folder / "python3")
    script = f'mount --bind {inner} {outer} && exec {outer}/python3 -c "{READY}"'
    pid = start("unshare", "-m", "sh", "-c", script, env={"PATH": f"{os.defpath}:/sbin:/usr/sbin"})
    with pytest.raises(BadInput, match=r"in a container\n  wanted: the same inside it.*docker exec -i"):
        taken(pid)


def test_no_python(start: Start) -> None:
    pid = start("bash", "-c", f'{sys.executable} -c "{READY}" <&0 & wait', env={"PATH": os.defpath})
    with pytest.raises(BadInput, match=rf"process {pid} is bash, no Python; below it \d+ is"):
        taken(pid)
    ended = subprocess.Popen(["true"])  # Nobody has asked for its end yet.
    while Path(f"/proc/{ended.pid}/stat").read_text().rpartition(") ")[2][0] != "Z":
        pass
    with pytest.raises(BadInput, match="has ended"):
        taken(ended.pid)
    ended.wait()
    with pytest.raises(BadInput, match="there is no process 99999999"):
        taken(99999999)


@pytest.mark.parametrize("python", ["no python at all", "python3"])
def test_the_shell_needs_no_python_of_its_own(start: Start, venv: Path, python: str, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("sh", "readlink"):
        (tools / name).symlink_to(str(shutil.which(name)))
    if python == "python3":
        (tools / python).write_text("#!/bin/sh\necho old >&2; exit 1\n")
        (tools / python).chmod(0o755)
    pid = start(str(venv / "bin" / "python"), "-c", READY)
    assert names(taken(pid, ("env", "-i", f"PATH={tools}"))) == ["alpha"]
