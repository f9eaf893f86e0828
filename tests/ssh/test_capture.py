"""``bisect-env capture`` through a real sshd: each way in which a host answers, and each in which it does not."""

from __future__ import annotations

import json
import os
import pty
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from bisect_env.environments.uv import Uv
from tests.ssh.server import Sshd, free_port, key
from tests.support.environments import built
from tests.support.wheels import Wheels

LIMIT = 60
QUICK = 20.0
"""Seconds within which what cannot work must be said, on a busy machine."""
MakeSshd = Callable[..., Sshd]


def run(*args: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bisect_env", "capture", *args]
    told = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=LIMIT)
    assert told.returncode == code, told.stdout + told.stderr
    assert "Traceback" not in told.stderr + told.stdout
    return told


def refused(words: Sequence[str], code: int = 2) -> str:
    """The message of a capture that cannot work, which has to come soon."""
    began = time.monotonic()
    told = run("--timeout", "50", "--", *words, code=code)
    assert time.monotonic() - began < QUICK
    assert told.stdout == ""
    return told.stderr


def taken(*args: str) -> dict[str, Any]:
    return dict(json.loads(run("--json", *args).stdout))


def names(document: dict[str, Any]) -> set[str]:
    return {each["name"] for each in document["distributions"]}


@pytest.fixture
def venv(wheels: Wheels, tmp_path: Path, uv: Uv) -> Path:
    environment = built([wheels.wheel("alpha", "1.0"), wheels.wheel("beta", "2.0")], tmp_path / "environments", uv)
    return environment.folder / "venv"


@pytest.mark.parametrize("end", [(), ("--",), ("exec", "env", "TORCH_LOGS=dynamo", "bash", "-c")])
def test_a_host(make_sshd: MakeSshd, venv: Path, end: tuple[str, ...]) -> None:
    found = taken("--activate", str(venv), "--", *make_sshd().words, *end)
    assert names(found) == {"alpha", "beta"} and found["venv"] == str(venv)
    assert dict(found["seen"])["distributions"] == dict(found["seen"])["variables"] == "shell"
    assert (["TORCH_LOGS", "dynamo"] in found["variables"]) is bool(end[1:])


def test_prefixes_that_need_quoting(make_sshd: MakeSshd, venv: Path, tmp_path: Path) -> None:
    words = make_sshd().words
    odd = tmp_path / 'it\'s a "venv" $HOME'
    odd.symlink_to(venv)
    for activate, inner in (
        (str(venv), ("bash", "-c")),
        (str(odd), ("bash", "-c")),
        (str(venv), ("bash", "-c", shlex.quote("exec env A='a b' bash -s"))),
        (str(venv), ("env", shlex.quote('TORCH_X=it\'s "so" $HOME'), "bash", "-c", shlex.quote('exec "$0"'))),
    ):
        found = taken("--activate", activate, "--", *words, *inner)
        assert names(found) == {"alpha", "beta"}, inner
    assert ["TORCH_X", 'it\'s "so" $HOME'] in found["variables"]
    assert names(taken("--python", f"{odd}/bin/python", "--", *words)) == {"alpha", "beta"}
    # One host behind another, each with a shell that takes the command apart.
    assert names(taken("--activate", str(odd), "--", *words, *words, "bash", "-c")) == {"alpha", "beta"}


def test_a_file_that_only_bash_can_source(make_sshd: MakeSshd, venv: Path, tmp_path: Path) -> None:
    setup = tmp_path / "setup.sh"
    setup.write_text(f"[[ $# -eq 0 ]] || exit 7\nsource {venv}/bin/activate\nexport -n HOME\nexport NCCL_DEBUG=INFO\n")
    found = taken("--activate", str(setup), "--", *make_sshd().words)
    assert names(found) == {"alpha", "beta"} and ["NCCL_DEBUG", "INFO"] in found["variables"]


def test_the_saved_file_is_a_source(make_sshd: MakeSshd, venv: Path, tmp_path: Path) -> None:
    path = tmp_path / "good.json"
    shown = run("--python", str(venv / "bin" / "python"), "-o", str(path), "--", *make_sshd().words)
    assert "2 distributions" in " ".join(shown.stdout.split()) and "(shell)" in shown.stdout
    assert json.loads(path.read_text())["origin"].startswith("host:ssh ")
    (tmp_path / "bad.txt").write_text("alpha==1.0\nbeta==3.0\n")
    command = [sys.executable, "-m", "bisect_env", "diff", "--offline", "good.json", "bad.txt"]
    told = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=LIMIT, check=True)
    assert "beta" in told.stdout and "alpha" not in told.stdout


def test_a_banner_and_a_loud_start_up_file(make_sshd: MakeSshd, venv: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".bashrc").write_text(
        "echo 'Welcome to {gpu3}'\nprintf '\\033]0;gpu3\\007 [1, 2]\\n'\necho 'quota: 99 %' >&2\n"
    )
    (tmp_path / "banner").write_text("AUTHORISED USE ONLY\n")
    forced = f'ForceCommand exec env -u SHLVL HOME={home} bash -c "$SSH_ORIGINAL_COMMAND"'
    sshd = make_sshd(forced, f"Banner {tmp_path}/banner")
    loud = subprocess.run([*sshd.words, "true"], capture_output=True, text=True, check=True, timeout=LIMIT)
    assert "Welcome" in loud.stdout and "AUTHORISED" in loud.stderr
    assert names(taken("--activate", str(venv), "--", *sshd.words)) == {"alpha", "beta"}
    (home / ".bashrc").write_text("exit 0\n")
    assert ".bashrc" in refused(sshd.words)


DROPPED = 'ForceCommand sh -c "$SSH_ORIGINAL_COMMAND" | head -c 900; sleep 0.3; '


@pytest.mark.parametrize(
    ("forced", "words"),
    [
        (DROPPED + "kill -9 $PPID", "the answer ends in its middle"),
        (DROPPED + "exit 0", "the answer ends in its middle"),
        (DROPPED + "exit 3", "the answer ends in its middle"),
        ("ForceCommand kill -9 $PPID", "the connection was dropped"),
    ],
)
def test_a_host_that_drops_the_connection(make_sshd: MakeSshd, forced: str, words: str) -> None:
    said = refused(make_sshd(forced).words, code=5)
    assert words in said and "ame command again" in said


def test_a_host_that_asks_for_a_password(make_sshd: MakeSshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    window = tmp_path / "window"
    window.write_text(f"#!/bin/sh\ntouch {tmp_path}/asked\nsleep 60\n")
    window.chmod(0o755)
    monkeypatch.setenv("SSH_ASKPASS", str(window))
    monkeypatch.setenv("DISPLAY", ":0")
    sshd = make_sshd("PasswordAuthentication yes", "PubkeyAuthentication no")
    said = refused(sshd.words)
    assert "password" in said and "BatchMode" in said
    assert not (tmp_path / "asked").exists()


def test_nobody_is_asked_at_the_terminal(make_sshd: MakeSshd) -> None:
    sshd = make_sshd("PasswordAuthentication yes", "PubkeyAuthentication no")
    began = time.monotonic()
    process, terminal = pty.fork()
    if not process:
        os.execv(sys.executable, [sys.executable, "-m", "bisect_env", "capture", "--", *sshd.words])
    said = b""
    while chunk := read(terminal):
        said += chunk
        assert time.monotonic() - began < QUICK, said
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 2
    assert b"BatchMode" in said and b"'s password:" not in said


def read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # Of a terminal whose other end is closed.
        return b""


def test_a_host_without_python(make_sshd: MakeSshd, tmp_path: Path, venv: Path) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "sh").symlink_to("/bin/sh")
    forced = f'ForceCommand exec env -i PATH={bare} /bin/sh -c "$SSH_ORIGINAL_COMMAND"'
    words = make_sshd(forced).words
    assert "there is no python3 on PATH" in refused(words)
    assert f"there is no {tmp_path}/none that can be started" in refused_with(("--python", f"{tmp_path}/none"), words)
    assert names(taken("--python", str(venv / "bin" / "python"), "--", *words)) == {"alpha", "beta"}
    (bare / "sh").unlink()
    said = refused(words)
    assert "there is no shell" in said and "ends in the path of a Python" in said
    assert names(taken("--", *words, str(venv / "bin" / "python"))) == {"alpha", "beta"}


def refused_with(options: tuple[str, ...], words: Sequence[str]) -> str:
    return run(*options, "--", *words, code=2).stderr


def test_a_host_key_that_changed_or_is_not_known(make_sshd: MakeSshd, tmp_path: Path) -> None:
    sshd = make_sshd()
    sshd.known_hosts.write_text(f"[127.0.0.1]:{sshd.port} {key(tmp_path / 'other')}\n")
    said = refused(sshd.words)
    assert "not the one that ssh knows" in said and "ssh-keygen -R" in said
    sshd.known_hosts.write_text("")
    said = refused(sshd.words)
    assert "ssh does not know its host key" in said and "by hand" in said


def test_nobody_there(make_sshd: MakeSshd) -> None:
    sshd = make_sshd()
    nobody = (*sshd.words[:-1], "-p", str(free_port()), sshd.words[-1])
    assert "cannot be reached" in refused(nobody, code=5)
    assert "no host of that name" in refused(("ssh", "-F", "/dev/null", "no-such-host.invalid"))


def test_nothing_is_written_there(make_sshd: MakeSshd, venv: Path, tmp_path: Path) -> None:
    """Byte code that any of the interpreters would write goes into one folder, which stays empty."""
    home = tmp_path / "home"
    (home / "tmp").mkdir(parents=True)
    code = tmp_path / "byte-code"
    code.mkdir()
    variables = f"HOME={home} TMPDIR={home}/tmp PYTHONPYCACHEPREFIX={code}"
    sshd = make_sshd(f'ForceCommand exec env -u PYTHONDONTWRITEBYTECODE {variables} bash -c "$SSH_ORIGINAL_COMMAND"')
    before = tree(tmp_path)
    python = str(venv / "bin" / "python")
    for options in (("--activate", str(venv)), ("--python", python)):
        assert names(taken(*options, "--", *sshd.words)) == {"alpha", "beta"}
    environ = {"HOME": str(home), "TMPDIR": str(home / "tmp"), "PYTHONPYCACHEPREFIX": str(code)}
    ready = "import time; print('ready', flush=True); time.sleep(60)"
    process = subprocess.Popen([python, "-B", "-c", ready], env=environ, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        assert names(taken("--pid", str(process.pid), "--", *sshd.words)) == {"alpha", "beta"}
    finally:
        process.kill()
        process.communicate()
    assert tree(tmp_path) == before
    # What would have shown it does show it.
    subprocess.run([*sshd.words, python, "-c", "'import wave'"], check=True, timeout=LIMIT)
    assert tree(tmp_path) != before


def tree(folder: Path) -> dict[str, float]:
    """Every file below, with the time of its last change; the server's own log is none of them."""
    return {str(path): path.lstat().st_mtime for path in folder.rglob("*") if path.name != "log"}
