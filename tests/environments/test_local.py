"""The content of local trees: what counts and what does not."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from bisect_env.environments.local import content_hash


@pytest.fixture
def source(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "pkg").mkdir(parents=True)
    (root / "pkg" / "__init__.py").write_text("A = 1\n")
    (root / "pyproject.toml").write_text("")
    return root


def write(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x")


@pytest.mark.parametrize(
    "change",
    [
        lambda root: write(root / ".git" / "HEAD"),
        lambda root: write(root / "pkg" / "__pycache__" / "a.pyc"),
        lambda root: write(root / "build" / "lib" / "x.py"),
        lambda root: write(root / "dist" / "x.whl"),
        lambda root: write(root / "src" / "pkg.egg-info" / "PKG-INFO"),
        lambda root: write(root / ".venv" / "pyvenv.cfg"),
        lambda root: os.utime(root / "pyproject.toml", (1, 1)),
        lambda root: os.mkfifo(root / "pkg" / "pipe"),
    ],
)
def test_leavings_and_times_do_not_count(source: Path, change: Callable[[Path], None]) -> None:
    before = content_hash(source)
    change(source)
    assert content_hash(source) == before


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "pkg" / "__init__.py").write_text("A = 2\n"),
        lambda root: write(root / "pkg" / "new.py"),
        lambda root: write(root / "pkg" / "build" / "new.py"),
        lambda root: (root / "pkg" / "__init__.py").rename(root / "pkg" / "other.py"),
        lambda root: (root / "pkg" / "__init__.py").chmod(0o755),
        lambda root: (root / "pkg" / "__init__.py").unlink(),
    ],
)
def test_everything_else_does(source: Path, change: Callable[[Path], object]) -> None:
    before = content_hash(source)
    change(source)
    assert content_hash(source) != before


def test_a_copy_elsewhere_is_the_same(source: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    (copy / "pkg").mkdir(parents=True)
    for name in ("pkg/__init__.py", "pyproject.toml"):
        (copy / name).write_bytes((source / name).read_bytes())
    assert content_hash(copy) == content_hash(source)


def test_a_file_and_nothing(source: Path) -> None:
    assert len(content_hash(source / "pyproject.toml")) == 64
    with pytest.raises(OSError, match="gone"):
        content_hash(source / "gone")
