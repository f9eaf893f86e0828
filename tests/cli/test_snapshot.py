"""``bisect-env snapshot`` as a user runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bisect_env.cli.main import main
from bisect_env.environments.uv import Uv
from bisect_env.snapshots import capture
from bisect_env.store.database import Store
from tests.snapshots.posted import COLLECT_ENV
from tests.store.samples import cell, lock
from tests.support.environments import built
from tests.support.wheels import Wheels


def run(*args: str, code: int = 0) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["snapshot", *args])
    assert ended.value.code == code


def test_a_file_as_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "posted.txt"
    path.write_text(COLLECT_ENV + "[pip3] odd one\n")
    run(str(path))
    out = capsys.readouterr().out
    # A long path breaks the line wherever it comes to its end.
    joined = " ".join(out.split())
    assert (
        f"{path}: torch's collect_env, 8 distributions, of more that are not listed; 1 line could not be read" in joined
    )
    for words in ("cu126", "2.7.0+cu126", "conda", "1 x NVIDIA H200 (MIG 1g.18gb)", "570.124.06"):
        assert words in out
    assert f"line {COLLECT_ENV.count(chr(10)) + 1}: odd one: neither a version" in out
    assert "transformers and others are not in it" in out


def test_json_is_read_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "posted.txt").write_text(COLLECT_ENV)
    run(str(tmp_path / "posted.txt"), "--json")
    kept = capsys.readouterr().out
    assert json.loads(kept)["cuda"] == "cu126"
    (tmp_path / "kept.json").write_text(kept)
    run(str(tmp_path / "kept.json"), "--json")
    again = json.loads(capsys.readouterr().out)
    assert again | {"origin": ""} == json.loads(kept) | {"origin": ""}


def test_an_environment_and_a_host(wheels: Wheels, tmp_path: Path, uv: Uv, capsys: pytest.CaptureFixture[str]) -> None:
    venv = built([wheels.wheel("alpha", "1.0")], tmp_path / "root", uv).folder / "venv"
    run(f"env:{venv}", "--json")
    here = json.loads(capsys.readouterr().out)
    run(f"host:env -i sh -c @{venv}", "--json", "--timeout", "50")
    there = json.loads(capsys.readouterr().out)
    assert here["distributions"] == there["distributions"] and there["variables"] == []


def test_a_stored_cell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Store(tmp_path / "store.sqlite") as store:
        store.put_cells([cell()], "m")
        store.put_lock(cell().request.key, lock(), 0.1)
    run(f"cell:{cell().id}", "--store", str(tmp_path))
    assert "stored cell, 1 distribution" in capsys.readouterr().out
    run(f"cell:{cell().id}", "--store", str(tmp_path / "none"), code=2)
    assert "--store" in capsys.readouterr().err


def test_the_script_runs_anywhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("--script")
    told = subprocess.run(
        [sys.executable, "-I", "-"],
        input=capsys.readouterr().out,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    (tmp_path / "host.json").write_text(told.stdout)
    assert capture.begin() in told.stdout
    run(str(tmp_path / "host.json"))
    assert "bisect-env snapshot" in capsys.readouterr().out


@pytest.mark.parametrize("spec", ["none.txt", "cell:", "env:/nowhere", "host:", "host:false", "no:such"])
def test_bad_sources(
    spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run(spec, code=2)
    err = capsys.readouterr().err
    assert "wanted:" in err and "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def test_from_a_pipe(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bisect_env", "snapshot", "-"]
    told = subprocess.run(command, input="torch==2.11.0\n", capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert told.returncode == 0 and "pip freeze, 1 distribution" in told.stdout
    told = subprocess.run(command, input="", capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert told.returncode == 2 and "nothing" in told.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_host_that_does_not_answer(capsys: pytest.CaptureFixture[str]) -> None:
    run("host:sh -c 'sleep 30'", "--timeout", "1", code=5)
    assert "no answer within 1 s" in capsys.readouterr().err
