"""A disk that is full: exit 5, said in words, nothing half-written, and the run goes on when there is room."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.racing import World

GIB = 2**30


def mount(place: Path, options: str) -> str:
    """Mount a disk in memory; the reason when that is not possible."""
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    return finished.stderr.strip() if finished.returncode else ""


def fill(place: Path) -> None:
    """Leave no room: the disk becomes as small as what is on it, which may grow meanwhile."""
    for _ in range(50):
        if not mount(place, f"remount,size={shutil.disk_usage(place).used}"):
            return
    raise AssertionError("the disk cannot be made smaller")


@pytest.fixture
def disk(world: World) -> Iterator[World]:
    """A project whose store has a disk of its own."""
    world.torch("2.14.1")
    world.transformers("5.8.1")
    world.matrix("axes: {torch: 2.14.1, transformers: 5.8.1}\ntrials: 2\ncontrols: 2\n")
    world.store.mkdir()
    if trouble := mount(world.store, f"size={4 * GIB}"):
        pytest.skip(f"no disk can be mounted here: {trouble}")
    try:
        yield world
    finally:
        subprocess.run(["umount", "-l", str(world.store)], check=True)


def test_too_little_room_is_said_before_anything_is_built(disk: World) -> None:
    assert not mount(disk.store, f"remount,size={GIB}")
    finished = disk.run("matrix", "matrix.yaml")
    assert finished.returncode == 5 and "Traceback" not in finished.stderr
    assert "may take" in finished.stderr and "are free" in finished.stderr and "bisect-env clean" in finished.stderr
    assert "NOT RUN" in finished.stdout
    assert not (disk.store / "environments").exists()


def test_full_in_the_middle(disk: World) -> None:
    disk.torch("2.14.1", seconds=0.5)
    process = disk.start("matrix", "matrix.yaml")
    while len(disk.trials()) < 2:
        assert process.poll() is None
    fill(disk.store)
    _, stderr = process.communicate(timeout=60)
    print(stderr.splitlines()[-2:])
    assert process.returncode == 5 and "Traceback" not in stderr
    assert "No space left on device" in stderr or "the disk is full" in stderr
    assert not disk.processes()
    kept = disk.trials()
    assert kept
    # Still full: nothing can be stored, and it says so.
    again = disk.run("matrix", "matrix.yaml")
    assert again.returncode == 5 and "full" in again.stderr and "Traceback" not in again.stderr
    assert not mount(disk.store, f"remount,size={4 * GIB}")
    finished = disk.run("matrix", "matrix.yaml")
    assert finished.returncode == 0, finished.stderr
    assert "FULL" in finished.stdout
    trials = disk.trials()
    assert trials[: len(kept)] == kept and len(trials) == 6
    assert list((disk.store / "trials").iterdir()) == []
