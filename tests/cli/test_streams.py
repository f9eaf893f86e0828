"""Where the answer goes: closed, full or broken streams, report files on full disks, and folders that are gone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.racing import World

BODY = "axes: {torch: 2.14.1, transformers: 5.8.1}\ntrials: 1\ncontrols: 1\n"


@pytest.fixture
def finished(world: World) -> World:
    """A matrix that is finished: commands answer at once."""
    world.torch("2.14.1")
    world.transformers("5.8.1")
    world.matrix(BODY)
    assert world.run("matrix", "matrix.yaml").returncode == 0
    return world


def shell(world: World, line: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a line of bash in which ``$B`` is the command."""
    variables = {**os.environ, "B": f"{sys.executable} -m bisect_env", "UV_CACHE_DIR": str(world.uv_cache)}
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line}"],
        cwd=cwd or world.folder,
        env=variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    "line",
    [
        "$B matrix matrix.yaml >&-",
        "$B matrix matrix.yaml 2>&-",
        "$B matrix matrix.yaml --fresh >&- 2>&- <&-",
        "$B matrix matrix.yaml --fresh 2>/dev/full",
        "$B matrix matrix.yaml | head -1",
        "$B matrix matrix.yaml --json - | true",
        "$B matrix matrix.yaml --fresh 2>&1 | head -1",
    ],
)
def test_nobody_listens(finished: World, line: str) -> None:
    done = shell(finished, line)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert all(outcome == "clean" for *_, outcome in finished.trials()) and len(finished.trials()) == 3


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("$B matrix matrix.yaml >/dev/full", "standard output cannot be written: No space left"),
        ("$B matrix matrix.yaml --json /dev/full", "--json: /dev/full cannot be written: No space left"),
        ("$B matrix matrix.yaml -o /dev/full", "--output: /dev/full cannot be written: No space left"),
        ("$B show torch >/dev/full", "standard output cannot be written"),
        ("$B --help >/dev/full", "No space left"),
    ],
)
def test_the_answer_cannot_be_written(finished: World, line: str, words: str) -> None:
    done = shell(finished, line)
    assert done.returncode == 5, done.stderr
    assert words in done.stderr and "Traceback" not in done.stderr


def test_a_file_is_written_although_standard_output_is_full(finished: World) -> None:
    assert shell(finished, "$B matrix matrix.yaml --json out.json >/dev/full").returncode == 5
    assert (finished.folder / "out.json").read_text().startswith("{")


@pytest.mark.parametrize("command", ["matrix MATRIX", "show abc", "clean"])
def test_the_working_folder_is_gone(finished: World, tmp_path: Path, command: str) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    command = command.replace("MATRIX", str(finished.folder / "matrix.yaml"))
    done = shell(finished, f"rmdir {gone}; $B {command}", cwd=gone)
    assert done.returncode == 2 and "a working folder that was deleted" in done.stderr


def test_a_folder_that_is_not_utf_8_is_refused_before_anything_is_built(finished: World, tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"\xff")
    odd.mkdir()
    done = shell(finished, f"$B matrix {finished.folder / 'matrix.yaml'}", cwd=odd)
    assert done.returncode == 2 and "is not UTF-8" in done.stderr
    assert list(odd.iterdir()) == []


@pytest.mark.parametrize(("name", "folder"), [("environments", False), ("turn.lock", True)])
def test_something_else_lies_in_the_store(finished: World, name: str, folder: bool) -> None:
    store = finished.folder / "other"
    store.mkdir()
    (store / name).mkdir() if folder else (store / name).write_text("")
    done = shell(finished, "$B matrix matrix.yaml --store other")
    assert done.returncode == 5 and f"other/{name}" in done.stderr and "Traceback" not in done.stderr


def test_no_credential_of_the_command_line_comes_back(finished: World) -> None:
    done = shell(finished, "$B matrix matrix.yaml --cell https://me:s3cret@host/x?token=s3cret")
    assert done.returncode == 2 and "no cell matches" in done.stderr and "s3cret" not in done.stderr
