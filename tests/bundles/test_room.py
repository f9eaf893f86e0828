"""A disk without room: said before, and where it fills up meanwhile."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bisect_env.bundles import parts
from bisect_env.bundles.layout import Run
from bisect_env.bundles.room import enough_room, room_errors
from bisect_env.bundles.stamps import Stamps
from bisect_env.errors import InfrastructureError


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of 64 KiB."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64K", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no disk can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_what_fits_is_let_be(tmp_path: Path) -> None:
    enough_room({tmp_path / "a" / "b": 1000, tmp_path: 0})


def test_what_one_disk_gets_from_several_counts_together(tmp_path: Path) -> None:
    half = int(shutil.disk_usage(tmp_path).free * 0.6)
    enough_room({tmp_path: half // 2})
    with pytest.raises(InfrastructureError, match="must stay free") as caught:
        enough_room({tmp_path / "one": half, tmp_path / "other": half})
    assert "one" in str(caught.value) and "other" in str(caught.value)


def test_a_part_that_does_not_fit(tiny: Path, tmp_path: Path) -> None:
    wheel = tmp_path / "w.whl"
    wheel.write_bytes(bytes(range(256)) * 512)
    with pytest.raises(InfrastructureError, match="2 GB of parts do not fit"), room_errors(tiny, "2 GB of parts"):
        parts.write((Run("w", 0, 131072),), {"w": wheel}, tiny, Stamps(tmp_path / "stamps"), lambda _: None)
    assert list(tiny.iterdir()) == []
    part, size = parts.write((Run("w", 5, 100),), {"w": wheel}, tiny, Stamps(tmp_path / "stamps"), lambda _: None)
    assert size == 100 and parts.path_of(part, tiny).read_bytes() == wheel.read_bytes()[5:105]


def test_other_troubles_are_not_called_a_full_disk(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), room_errors(tmp_path, "nothing"):
        (tmp_path / "none").read_bytes()
