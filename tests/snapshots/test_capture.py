"""The program that captures a host, run by real interpreters in real environments."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bisect_env.environments.interpreters import under_pyenv
from bisect_env.environments.uv import Uv
from bisect_env.snapshots import capture, host_parts, host_shell
from tests.support.environments import built
from tests.support.wheels import Wheels

LIMIT = 60.0


def captured(python: Path, variables: Mapping[str, str] | None = None, cwd: Path | None = None) -> dict[str, Any]:
    told = subprocess.run(
        [python, "-"],
        input=capture.program(LIMIT),
        env={"PATH": os.defpath, **(variables or {})},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=True,
    )
    body = told.stdout.partition(capture.begin())[2].partition(capture.end())[0]
    return dict(json.loads(body))


def older() -> list[Path]:
    """Pythons besides this one that pyenv has here, Python 2 among them."""
    return list(under_pyenv(os.environ))


def version(python: Path) -> tuple[int, ...]:
    told = subprocess.run([python, "-c", "import sys; print(sys.version.split()[0])"], capture_output=True, text=True)
    return tuple(int(part) for part in re.findall(r"\d+", told.stdout)[:2])


@pytest.fixture
def python(wheels: Wheels, tmp_path: Path, uv: Uv) -> Path:
    """Of an environment that uv has built: a pretended torch with its variant, and another distribution."""
    torch = {
        "torch/__init__.py": "raise SystemExit('the capture imports nothing')\n",
        "torch/version.py": "__version__ = '2.11.0+cu130'\ncuda: str | None = '13.0'\nhip = None\n",
    }
    paths = [wheels.wheel("torch", "2.11.0", files=torch), wheels.wheel("Flash_Attn.x", "1.0+local1")]
    return built(paths, tmp_path / "environments", uv).python


def test_an_environment(python: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    (cache / "triton").mkdir(parents=True)
    (cache / "triton" / "one.so").write_bytes(b"x" * 1000)
    (cache / "two").write_bytes(b"y" * 24)
    os.mkfifo(cache / "pipe")
    variables = {"TORCHINDUCTOR_CACHE_DIR": str(cache), "OMP_NUM_THREADS": "4", "EDITOR": "ed"}
    found = captured(python, variables)
    assert [(each["name"], each["version"], each["manager"]) for each in found["distributions"]] == [
        ("flash-attn-x", "1.0+local1", "pip"),
        ("torch", "2.11.0", "pip"),
    ]
    assert found["torch"] == {"version": "2.11.0+cu130", "cuda": "13.0", "hip": None}
    assert found["cache"] == {"path": str(cache), "entries": 2, "bytes": 1024, "complete": True}
    assert found["variables"] == [["OMP_NUM_THREADS", "4"], ["TORCHINDUCTOR_CACHE_DIR", str(cache)]]
    assert found["python"] == ".".join(map(str, sys.version_info[:3])) and found["unread"] == []


def test_no_cache_is_an_answer(python: Path, tmp_path: Path) -> None:
    found = captured(python, {"TMPDIR": str(tmp_path), "LOGNAME": "a:b"})["cache"]
    assert found == {"path": str(tmp_path / "torchinductor_a_b"), "entries": 0, "bytes": 0, "complete": True}


def test_a_cache_is_counted_up_to_a_bound(tmp_path: Path) -> None:
    for folder in range(4):
        (tmp_path / str(folder)).mkdir()
        for entry in range(5):
            (tmp_path / str(folder) / str(entry)).write_bytes(b"12")
    assert host_parts._scan(str(tmp_path), "", 100, 10.0)["entries"] == 20
    bounded = host_parts._scan(str(tmp_path), "", 7, 10.0)
    assert bounded["complete"] is False and 7 <= bounded["entries"] < 20
    assert host_parts._scan(str(tmp_path), "", 100, -1.0)["complete"] is False
    assert host_parts._scan(str(tmp_path / "none"), "", 100, 10.0)["complete"] is True
    assert host_parts._scan(str(tmp_path / "0" / "0"), "", 100, 10.0)["complete"] is False  # A file, no folder.


def test_secrets_stay_where_they_are(python: Path) -> None:
    variables = {
        "HF_TOKEN": "hf_geheim1",
        "NCCL_SOMETHING": "prefix-hf_geheim1",
        "TORCH_LOGS_OUT": "https://me:geheim2@example.com/?token=geheim3&x=1",
        "WANDB_API_KEY": "geheim4",
    }
    found = captured(python, variables)
    assert found["variables"] == [
        ["HF_TOKEN", "***"],
        ["NCCL_SOMETHING", "prefix-***"],
        ["TORCH_LOGS_OUT", "https://***@example.com/?token=***&x=1"],
    ]
    assert "geheim" not in json.dumps(found)


def site(python: Path) -> Path:
    return next(python.parent.parent.glob("lib/python*/site-packages"))


def test_where_distributions_come_from(python: Path) -> None:
    commit = "0123456789" * 4
    direct = {
        "torch": {"url": "https://me:geheim@example.com/t.git", "vcs_info": {"vcs": "git", "commit_id": commit}},
        "flash_attn_x": {"url": "file:///srv/flash", "dir_info": {"editable": True}, "subdirectory": "python"},
    }
    for name, told in direct.items():
        (info,) = site(python).glob(f"{name}-*.dist-info")
        (info / "direct_url.json").write_text(json.dumps(told))
    found = {each["name"]: each for each in captured(python)["distributions"]}
    assert found["torch"]["source"] == f"git+https://example.com/t.git@{commit}"
    assert found["flash-attn-x"]["source"] == "file:///srv/flash#subdirectory=python"
    assert found["flash-attn-x"]["editable"] is True and found["torch"]["editable"] is False


def test_ssh_keeps_its_user(python: Path) -> None:
    (info,) = site(python).glob("torch-*.dist-info")
    told = {"url": "ssh://git@example.com/t.git", "vcs_info": {"vcs": "git", "commit_id": "c0ffee"}}
    (info / "direct_url.json").write_text(json.dumps(told))
    found = {each["name"]: each["source"] for each in captured(python)["distributions"]}
    assert found["torch"] == "git+ssh://git@example.com/t.git@c0ffee"


def test_a_broken_distribution_is_listed(python: Path) -> None:
    (site(python) / "broken-1.0.dist-info").mkdir()
    (info,) = site(python).glob("torch-*.dist-info")
    (info / "direct_url.json").write_text("{")
    found = captured(python)
    assert [each["name"] for each in found["distributions"]] == ["flash-attn-x"]
    assert sorted(Path(each["path"]).name for each in found["unread"]) == ["broken-1.0.dist-info", info.name]


def test_the_folder_it_happens_to_start_in_is_no_part_of_the_environment(python: Path, tmp_path: Path) -> None:
    (tmp_path / "stray-1.0.dist-info").mkdir()
    (tmp_path / "stray-1.0.dist-info" / "METADATA").write_text("Name: stray\nVersion: 1.0\n")
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "version.py").write_text("__version__ = '9.9'\n")
    (tmp_path / "json.py").write_text("raise SystemExit('not this one')\n")
    found = captured(python, cwd=tmp_path / "environments")
    assert found == captured(python, cwd=tmp_path / "wheels")
    assert captured(python, {"PYTHONSAFEPATH": "1"}, tmp_path)["torch"]["version"] == "2.11.0+cu130"


def test_conda_and_pip(python: Path) -> None:
    meta = python.parent.parent / "conda-meta"
    meta.mkdir()
    told = [
        {"name": "openssl", "version": "1.1.1w", "build": "h7f_0", "files": ["lib/libssl.so"]},
        {"name": "pytorch", "version": "2.11.0", "build": "cuda_0",
         "files": ["lib/python3.11/site-packages/torch-2.11.0.dist-info/METADATA"]},
        {"name": "flash", "version": "0.9", "build": "b_0",
         "files": ["lib/python3.11/site-packages/flash_attn_x-0.9-py3.11.egg-info/PKG-INFO"]},
    ]  # fmt: skip
    for each in told:
        (meta / f"{each['name']}.json").write_text(json.dumps(each))
    (meta / "history").write_text("")
    (meta / "damaged.json").write_text("{")
    found = [
        (each["name"], each["version"], each["manager"], each.get("build"))
        for each in captured(python)["distributions"]
    ]
    assert sorted(found, key=str) == [
        ("flash-attn-x", "0.9", "conda", "b_0"),
        ("flash-attn-x", "1.0+local1", "pip", None),
        ("openssl", "1.1.1w", "conda", "h7f_0"),
        ("torch", "2.11.0", "conda", "cuda_0"),
    ]


def test_what_nvidia_smi_says(python: Path, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    smi = tools / "nvidia-smi"
    smi.write_text("#!/bin/sh\ncat >/dev/null\necho '580.159.04, NVIDIA H200'\necho '580.159.04, NVIDIA H200'\n")
    smi.chmod(0o755)
    variables = {"PATH": f"{tools}:{os.defpath}"}
    found = captured(python, variables)
    assert (found["driver"], found["gpus"]) == ("580.159.04", ["NVIDIA H200"] * 2)
    smi.write_text("#!/bin/sh\necho 'No devices were found'\nexit 6\n")
    assert captured(python, variables)["gpus"] == captured(python)["gpus"]


@pytest.mark.parametrize("python", older() or [pytest.param(None, marks=pytest.mark.skip("pyenv has none"))], ids=str)
def test_any_python(python: Path) -> None:
    if version(python) >= (3, 8):
        assert captured(python)["python"].startswith(".".join(map(str, version(python))))
        return
    told = subprocess.run([python, "-"], input=capture.program(LIMIT), capture_output=True, text=True, timeout=LIMIT)
    assert told.returncode == 1 and told.stdout == ""
    assert "3.8 or later is needed" in told.stderr and "Traceback" not in told.stderr


def test_it_ends_by_itself(python: Path, tmp_path: Path) -> None:
    smi = tmp_path / "nvidia-smi"
    smi.write_text("#!/bin/sh\nexec sleep 15\n")
    smi.chmod(0o755)
    told = subprocess.run(
        [python, "-"], input=capture.program(1.0), env={"PATH": f"{tmp_path}:{os.defpath}"},
        capture_output=True, text=True, timeout=10, check=False,
    )  # fmt: skip
    assert told.returncode < 0 and capture.end() not in told.stdout


def test_no_line_is_too_long_for_a_terminal() -> None:
    lines = capture.program(LIMIT).split("\n")
    assert max(map(len, lines)) < 1000
    # Linux takes no argument above 128 KiB, and a shell gets it as one.
    assert len(host_shell.lines(capture.program(LIMIT, 4711), "/srv/venv")) < 100_000
    # Echoed, it must not look like its own output.
    assert capture.begin() not in lines and capture.end() not in lines
