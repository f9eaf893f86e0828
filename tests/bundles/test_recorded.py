"""A RECORD before and after an installation by the real uv and pip's additions: the same distribution, or not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bisect_env.bundles import recorded
from bisect_env.bundles.having import record_of
from bisect_env.environments.uv import Uv
from tests.support.wheels import Wheels

FILES = {"a/__init__.py": "x = 1\n", "a/odd name.txt": "text"}


def installed(wheel: Path, venv: Path, uv: Uv) -> str:
    finished = uv.run(["venv", "--python", sys.executable, venv])
    assert finished.ok, finished.stderr
    args = ["pip", "install", "--no-deps", "--no-index", "--compile-bytecode", "--python", venv / "bin" / "python"]
    finished = uv.run([*args, wheel])
    assert finished.ok, finished.stderr
    return next(venv.glob("lib/*/site-packages/*.dist-info/RECORD")).read_text()


def test_an_installation_is_recognised(tmp_path: Path, wheels: Wheels, uv: Uv) -> None:
    wheel = wheels.wheel("a", "1.0", files=FILES, scripts={"run-a": "a:main"})
    own, there = record_of(wheel), installed(wheel, tmp_path / "there", uv)
    assert own is not None and own != there and "INSTALLER" in there and "bin/run-a" in there
    assert recorded.digest(own) == recorded.digest(there)
    assert any("odd name" in row for row in recorded.rows(own))


def test_another_build_of_the_same_version_is_not(tmp_path: Path, wheels: Wheels, uv: Uv) -> None:
    other = Wheels(tmp_path / "other").wheel("a", "1.0", files={**FILES, "a/__init__.py": "x = 2\n"})
    own = record_of(wheels.wheel("a", "1.0", files=FILES))
    assert own is not None
    assert recorded.digest(own) != recorded.digest(installed(other, tmp_path / "there", uv))


@pytest.mark.parametrize(
    ("record", "count"),
    [
        ("a.py,sha256=x,1\na-1.dist-info/RECORD,,\n", 1),
        (
            "a.py,sha256=x,1\na-1.dist-info/INSTALLER,sha256=y,3\n../../bin/a,sha256=z,4\n__pycache__/a.pyc,sha256=p,\n",
            1,
        ),
        ("INSTALLER,sha256=x,1\n", 1),
        ("", 0),
    ],
)
def test_what_counts(record: str, count: int) -> None:
    assert len(recorded.rows(record)) == count


def test_a_wheel_with_a_data_folder_cannot_be_proved(wheels: Wheels) -> None:
    assert record_of(wheels.wheel("a", "1.0", files={"a-1.0.data/scripts/a": "#!python"})) is None
