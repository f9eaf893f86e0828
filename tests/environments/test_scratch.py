"""Scratch folders: whose are removed, and whose are let be."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from bisect_env.environments.scratch import scratch

HOLDER = "from bisect_env.environments.scratch import scratch\nwith scratch() as f: print(f, flush=True); input()"


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def grown_old(folder: Path) -> None:
    os.utime(folder, (time.time() - 3600, time.time() - 3600))


def test_it_is_gone_afterwards(temporary: Path) -> None:
    with scratch() as folder:
        (folder / "file").write_text("x")
    assert list(temporary.iterdir()) == []


def test_what_a_killed_process_left_goes_and_what_a_living_one_has_stays(temporary: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        folder = Path(other.stdout.readline().strip())
        assert folder.parent == temporary
        grown_old(folder)
        with scratch():
            assert folder.is_dir()
        other.kill()
    with scratch():
        assert not folder.exists()


def test_one_that_is_just_being_made_and_one_of_the_users_stay(temporary: Path) -> None:
    for name in ("bisect-env-scratch-new", "bisect-env-scratch-mine", "bisect-env-mine"):
        (temporary / name).mkdir()
    (temporary / "bisect-env-scratch-new" / ".in-use").touch()
    grown_old(temporary / "bisect-env-scratch-mine")
    before = set(temporary.iterdir())
    with scratch():
        pass
    assert set(temporary.iterdir()) == before
