"""The tool's own wheel, packed again from an installation by the real uv: it installs, and has the same files."""

from __future__ import annotations

import importlib.metadata
import sys
import zipfile
from pathlib import Path

import pytest

from bisect_env.bundles import recorded
from bisect_env.bundles.having import record_of
from bisect_env.bundles.tool import repacked
from bisect_env.environments.uv import Uv
from bisect_env.errors import InfrastructureError
from tests.support.wheels import Wheels


def installed(wheel: Path, folder: Path, uv: Uv) -> importlib.metadata.Distribution:
    finished = uv.run(["venv", "--quiet", "--python", sys.executable, folder])
    assert finished.ok, finished.stderr
    args = ["pip", "install", "--no-deps", "--no-index", "--compile-bytecode", "--python", folder / "bin" / "python"]
    finished = uv.run([*args, wheel])
    assert finished.ok, finished.stderr
    site = next(folder.glob("lib/*/site-packages"))
    return next(iter(importlib.metadata.distributions(path=[str(site)], name="bisect-env")))


def test_a_wheel_of_what_is_installed(tmp_path: Path, wheels: Wheels, uv: Uv) -> None:
    files = {"bisect_env/__init__.py": "x = 1\n", "bisect_env/_matrices/gpu.yaml": "name: x\n"}
    wheel = wheels.wheel("bisect-env", "0.1", files=files, scripts={"bisect-env": "bisect_env:main"})
    (tmp_path / "again").mkdir()
    again = repacked(installed(wheel, tmp_path / "one", uv), tmp_path / "again")
    assert again.name == wheel.name
    with zipfile.ZipFile(wheel) as first, zipfile.ZipFile(again) as second:
        assert sorted(first.namelist()) == sorted(second.namelist())
    own = record_of(wheel)
    assert own is not None and recorded.digest(own) == recorded.digest(record_of(again) or "")
    other = installed(again, tmp_path / "two", uv)
    assert other.version == "0.1" and (tmp_path / "two" / "bin" / "bisect-env").exists()


def test_a_file_that_is_gone(tmp_path: Path, wheels: Wheels, uv: Uv) -> None:
    distribution = installed(wheels.wheel("bisect-env", "0.1"), tmp_path / "one", uv)
    next(tmp_path.glob("one/lib/*/site-packages/bisect_env/__init__.py")).unlink()
    with pytest.raises(InfrastructureError, match="Install it again"):
        repacked(distribution, tmp_path)
