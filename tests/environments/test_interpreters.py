"""Interpreters: real ones, and made-up installations of them."""

from __future__ import annotations

import json
import os
import platform
import sys
from pathlib import Path

import pytest

from bisect_env.environments import interpreters
from bisect_env.environments.interpreters import find, managed_by_uv, on_path, under_pyenv
from bisect_env.environments.records import Interpreter, Reason, Unavailable

OWN = ".".join(platform.python_version_tuple()[:2])


def fake(path: Path, version: str, implementation: str = "cpython") -> Path:
    """A program that answers as a Python of that version does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    answer = {"path": str(path), "version": version, "implementation": implementation, "platform": "linux-x86_64"}
    path.write_text(f"#!/bin/sh\necho '{json.dumps(answer)}'\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with no Python but the tool's own."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path / "uv"))
    return tmp_path


def test_no_request_is_the_interpreter_that_runs_the_tool() -> None:
    own = find(None)
    assert isinstance(own, Interpreter)
    assert own.version == platform.python_version() and own.implementation == sys.implementation.name
    # The interpreter beneath a virtual environment: the environment may be gone tomorrow.
    assert own.path.resolve() == own.path and own.path.is_relative_to(sys.base_prefix)
    assert find(OWN) == find(platform.python_version()) == find(f"python{OWN}") == own
    assert find(sys.executable) == own


@pytest.mark.parametrize(
    "place", ["bin/python3.99", "pyenv/versions/3.99.4/bin/python3", "uv/cpython-3.99.4/bin/python3"]
)
def test_it_is_found_in_each_place(machine: Path, place: str) -> None:
    path = fake(machine / place, "3.99.4")
    assert find("3.99") == Interpreter(path, "3.99.4", "cpython", "linux-x86_64")


def test_the_highest_of_pyenvs_versions_wins_and_path_before_it(machine: Path) -> None:
    for version in ("3.99.9", "3.99.10", "3.98.1"):
        fake(machine / "pyenv" / "versions" / version / "bin" / "python3", version)
    highest = find("3.99")
    assert isinstance(highest, Interpreter) and highest.version == "3.99.10"
    fake(machine / "bin" / "python3.99", "3.99.2")
    first = find("3.99")
    assert isinstance(first, Interpreter) and first.version == "3.99.2"
    exact = find("3.99.9")
    assert isinstance(exact, Interpreter) and exact.version == "3.99.9"


def test_a_shim_that_does_not_run_is_passed_over(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = machine / "bin" / "python3.99"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho 'pyenv: python3.99: command not found' >&2\nexit 127\n")
    broken.chmod(0o755)
    good = fake(machine / "pyenv" / "versions" / "3.99.1" / "bin" / "python3", "3.99.1")
    found = find("3.99")
    assert isinstance(found, Interpreter) and found.path == good


def test_3_9_is_not_3_99(machine: Path) -> None:
    fake(machine / "bin" / "python3", "3.99.1")
    fake(machine / "bin" / "python", "3.9.1", "pypy")
    result = find("3.9")
    assert isinstance(result, Unavailable)
    assert (result.stage, result.reason) == ("resolve", Reason.INTERPRETER)
    assert "3.99.1" in result.message and platform.python_version() in result.message


@pytest.mark.parametrize("request_", ["latest", "", "3.x", "/nowhere/python", ">=3.11"])
def test_a_request_that_is_none(request_: str) -> None:
    result = find(request_)
    assert isinstance(result, Unavailable) and result.reason is Reason.INTERPRETER


def test_a_python_that_hangs_is_passed_over(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreters, "PATIENCE", 0.3)
    path = machine / "bin" / "python3"
    path.parent.mkdir()
    path.write_text("#!/bin/sh\nexec /bin/sleep 5\n")
    path.chmod(0o755)
    assert isinstance(find("3.99"), Unavailable)


def test_where_is_looked(tmp_path: Path) -> None:
    for name in ("python3.12", "python3", "python3-config", "python3.12-config", "pythonw"):
        fake(tmp_path / "bin" / name, "3.12.0")
    fake(tmp_path / "shims" / "python3.12", "3.12.0")
    path = os.pathsep.join([str(tmp_path / "shims"), "", str(tmp_path / "gone"), str(tmp_path / "bin")])
    assert list(on_path({"PATH": path})) == [tmp_path / "bin" / "python3", tmp_path / "bin" / "python3.12"]
    assert list(under_pyenv({"PYENV_ROOT": str(tmp_path / "gone")})) == []
    fake(tmp_path / "data" / "uv" / "python" / "cpython-3.13.1-linux" / "bin" / "python3", "3.13.1")
    assert len(list(managed_by_uv({"XDG_DATA_HOME": str(tmp_path / "data")}))) == 1


def test_an_interpreter_that_greets_is_one(machine: Path) -> None:
    python = fake(machine / "bin" / "python3.9", "3.9.1")
    python.write_text(python.read_text().replace("echo", "echo Welcome.\necho", 1))
    found = find("3.9")
    assert isinstance(found, Interpreter) and found.version == "3.9.1"
