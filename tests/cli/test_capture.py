"""``bisect-env capture`` as a user runs it, without a network; through sshd: tests/ssh."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bisect_env.cli.main import main
from bisect_env.environments.uv import Uv
from tests.support.environments import built
from tests.support.wheels import Wheels


def run(*args: str, code: int = 0) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["capture", *args])
    assert ended.value.code == code


@pytest.fixture
def venv(wheels: Wheels, tmp_path: Path, uv: Uv) -> Path:
    return built([wheels.wheel("alpha", "1.0")], tmp_path / "environments", uv).folder / "venv"


def test_this_machine(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    run("--json")
    found = json.loads(capsys.readouterr().out)
    assert found["origin"] == "this machine" and ["OMP_NUM_THREADS", "3"] in found["variables"]
    assert "the environment that bisect-env itself runs in" in found["missing"][0]


def test_every_part_says_where_it_was_seen(venv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    process = subprocess.Popen(
        [venv / "bin" / "python", "-c", "print('ready', flush=True); input()"],
        env={"NCCL_DEBUG": "WARN", "TMPDIR": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        run("--pid", str(process.pid), "-o", str(tmp_path / "kept.json"))
    finally:
        process.kill()
        process.communicate()
    out = capsys.readouterr().out
    rows = {line.split("  ")[0]: line for line in out.splitlines()}
    for name in ("Python", "platform", "variables", "compile cache", "environment", "libraries", "distributions"):
        assert rows[name].endswith("(process)"), rows[name]
    assert "1 that matter are set" in rows["variables"] and "set for itself is not seen" in out
    kept = json.loads((tmp_path / "kept.json").read_text())
    assert kept["variables"] == [["NCCL_DEBUG", "WARN"]] and dict(kept["seen"])["variables"] == "process"
    with pytest.raises(SystemExit) as ended:
        main(["snapshot", str(tmp_path / "kept.json"), "--json"])
    assert ended.value.code == 0
    assert json.loads(capsys.readouterr().out) == kept | {"origin": str(tmp_path / "kept.json")}


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--pid", "1", "--python", "x"), "--pid and --python: each of them names an environment"),
        (("--python", "x", "--", "docker", "exec", "-i", "a", "python3"), "the command ends in a Python"),
        (("--activate", "/nowhere/venv"), "there is no /nowhere/venv to activate"),
        (("--python", "/nowhere/python"), "there is no /nowhere/python that can be started"),
        (("--pid", "99999999"), "there is no process 99999999"),
        (("-o", "/nowhere/x.json"), "there is no folder /nowhere"),
        (("--", "no-such-command"), "no-such-command cannot be started"),
        (("--pid", "0"), "--pid"),
    ],
)
def test_bad_input(args: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(*args, code=2)
    said = capsys.readouterr()
    assert words in said.err and "Traceback" not in said.err and said.out == ""
