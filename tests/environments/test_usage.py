"""What is an environment's own on disk, and that a removed one is gone at once."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from bisect_env.environments import building, holding, usage
from bisect_env.environments.manifest import quarantine
from bisect_env.environments.places import environments_folder
from bisect_env.environments.uv import Uv
from tests.support.environments import built
from tests.support.wheels import Wheels

BIG = 3_000_000


def test_hard_links_are_not_an_environments_own(wheels: Wheels, tmp_path: Path, uv: Uv) -> None:
    one = built([wheels.wheel("sized", "1.0", files={"sized.bin": os.urandom(BIG)})], tmp_path, uv)
    (size,) = usage.sizes(tmp_path)
    assert size.name == one.lock.address
    assert size.apparent_bytes > BIG
    assert 0 < size.own_bytes < BIG / 4


def test_own_links_within_a_folder_are_counted_once(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a").write_bytes(os.urandom(BIG))
    os.link(folder / "a", folder / "b")
    size = usage.measure(folder)
    assert size.apparent_bytes == BIG
    assert BIG <= size.own_bytes < 1.1 * BIG
    os.link(folder / "a", tmp_path / "elsewhere")
    assert usage.measure(folder).own_bytes < BIG / 10


def test_remove(wheels: Wheels, tmp_path: Path, uv: Uv) -> None:
    one, two = (built([wheels.wheel(name, "1.0")], tmp_path, uv) for name in ("alpha", "beta"))
    freed = usage.remove(one.lock.address, tmp_path)
    assert freed > 0
    assert building.find(one.lock.address, one.lock, tmp_path) is None
    assert building.find(two.lock.address, two.lock, tmp_path) == replace(two, build_seconds=0.0)
    assert usage.remove(one.lock.address, tmp_path) == 0
    assert usage.remove("never-built", tmp_path) == 0


def test_remove_leaves_what_is_being_built(wheels: Wheels, tmp_path: Path, uv: Uv) -> None:
    one = built([wheels.wheel("alpha", "1.0")], tmp_path, uv)
    unfinished = environments_folder(tmp_path) / f".tmp-{one.lock.address}-1-x"
    unfinished.mkdir()
    with holding.held(tmp_path, one.lock.address):
        assert usage.remove(one.lock.address, tmp_path) == 0
        assert unfinished.exists()
    assert usage.remove(one.lock.address, tmp_path) > 0
    assert not unfinished.exists()


def test_what_was_set_aside_is_listed_and_removed(wheels: Wheels, tmp_path: Path, uv: Uv) -> None:
    one = built([wheels.wheel("alpha", "1.0")], tmp_path, uv)
    quarantine(one, tmp_path, uv)
    assert usage.sizes(tmp_path) == ()
    (size,) = usage.set_aside(tmp_path)
    assert size.name.startswith(one.lock.address)
    assert usage.remove(size.name, tmp_path) == size.own_bytes > 0
    assert usage.set_aside(tmp_path) == ()


def test_nothing_there(tmp_path: Path) -> None:
    assert (usage.sizes(tmp_path), usage.set_aside(tmp_path)) == ((), ())
    assert usage.remove("x", tmp_path) == 0


@pytest.mark.parametrize(
    ("downloaded", "measured"),
    [(2_758_073_986, 4_908_081_152), (2_763_249_106, 4_924_530_688), (3_059_474_890, 5_726_420_992)],
)
def test_estimate_covers_what_was_measured(downloaded: int, measured: int) -> None:
    assert measured < usage.estimate_bytes(downloaded) < 1.1 * measured


def test_estimate_covers_a_cpu_build_and_is_small_for_small_packages() -> None:
    assert 730_000_000 < usage.estimate_bytes(191_794_682) < 1.1 * 730_000_000
    assert usage.estimate_bytes(0) < usage.estimate_bytes(10_000_000) < 60_000_000
