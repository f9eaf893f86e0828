"""Deliveries of tiny wheels: in any order, in pieces, damaged, killed at every step, on a disk that is full."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from bisect_env.bundles import manifest
from bisect_env.bundles.absorb import Absorbed, absorb, standing_of
from bisect_env.bundles.destination import Destination
from bisect_env.bundles.standing import Standing
from bisect_env.errors import BadInput, InfrastructureError
from tests.bundles.build import delivery, noise, parts_in, sha256
from tests.support.wheels import Wheels


def take(folder: Path, *sources: Path) -> Absorbed:
    return absorb(sources, folder, (), lambda text: None)


def standing(found: Absorbed) -> Standing:
    assert found.standing is not None
    return found.standing


@pytest.fixture
def big(wheels: Wheels) -> Path:
    return wheels.wheel("big", "1.0", files={"big/data.bin": noise(1, 9000)})


@pytest.fixture
def small(wheels: Wheels) -> Path:
    return wheels.wheel("small", "1.0", files={"small/data.bin": noise(2, 300)})


@pytest.fixture
def bundle(tmp_path: Path, big: Path, small: Path) -> Path:
    """Two cells, big+small and small alone; seven parts or so."""
    folder = tmp_path / "bundle"
    delivery(folder, [[small], [big, small]])
    return folder


def same(folder: Path, *paths: Path) -> None:
    assert {path.name: path.read_bytes() for path in (folder / "wheels").iterdir()} == {
        path.name: path.read_bytes() for path in paths
    }


def test_a_whole_bundle(bundle: Path, big: Path, small: Path, tmp_path: Path) -> None:
    found = take(tmp_path / "dest", bundle)
    assert len(found.parts) == len(parts_in(bundle)) >= 5
    assert not standing(found).lacking() and standing(found).missing_parts() == ()
    same(tmp_path / "dest", big, small)
    assert not list((tmp_path / "dest" / "unfinished").iterdir())
    again = take(tmp_path / "dest", bundle)
    assert (again.parts, again.known, again.damaged) == ([], len(found.parts), [])


@pytest.mark.parametrize("order", [1, -1], ids=["in order", "backwards"])
@pytest.mark.parametrize("manifest_at", [0, 3, 99], ids=["manifest first", "in the middle", "last"])
def test_part_by_part_with_each_source_deleted(
    bundle: Path, big: Path, small: Path, tmp_path: Path, order: int, manifest_at: int
) -> None:
    dest, source = tmp_path / "dest", tmp_path / "one"
    parts = parts_in(bundle)[::order]
    manifest_at = min(manifest_at, len(parts) - 1)
    left = {part.stem for part in parts}
    for number, part in enumerate(parts):
        source.mkdir()
        shutil.copy(part, source)
        if number == manifest_at:
            shutil.copy(bundle / "manifest.json", source)
        found = take(dest, source)
        shutil.rmtree(source)
        left.remove(part.stem)
        if number < manifest_at:
            assert found.early == [part.stem] and found.standing is None
        else:
            assert set(standing(found).missing_parts()) == left
        assert not found.damaged
    same(dest, big, small)
    assert standing(found).cells == ("small-1.0", "big-1.0_small-1.0")
    assert not list((dest / "early").iterdir())


def test_a_cell_is_complete_before_the_others(bundle: Path, small: Path, tmp_path: Path) -> None:
    found = take(tmp_path / "dest", bundle / "manifest.json", parts_in(bundle)[0])
    assert standing(found).cells == ("small-1.0",)
    same(tmp_path / "dest", small)


def test_damaged_parts_are_named_and_harm_nothing(bundle: Path, big: Path, small: Path, tmp_path: Path) -> None:
    dest, parts = tmp_path / "dest", parts_in(bundle)
    good = parts[1].read_bytes()
    for bad in (good[:-1], good + b"x", good[:100] + b"\0" + good[101:], b""):
        parts[1].write_bytes(bad)
        found = take(dest, bundle)
        assert len(found.damaged) == 1 and parts[1].name in found.damaged[0]
        assert standing(found).missing_parts() == (parts[1].stem,)
    parts[1].write_bytes(good)
    found = take(dest, parts[1])
    assert found.parts == [parts[1].stem]
    same(dest, big, small)


def test_a_damaged_early_part_is_not_kept(bundle: Path, tmp_path: Path) -> None:
    part = parts_in(bundle)[0]
    part.write_bytes(b"something else")
    found = take(tmp_path / "dest", part)
    assert found.early == [] and part.name in found.damaged[0]
    assert not list((tmp_path / "dest" / "early").iterdir())


def test_a_renamed_part_is_named(bundle: Path, tmp_path: Path) -> None:
    parts_in(bundle)[0].rename(bundle / "parts" / "one.part")
    assert "one.part" in take(tmp_path / "dest", bundle).damaged[0]


def test_good_parts_of_a_wrong_manifest_show_no_wheel(bundle: Path, big: Path, tmp_path: Path) -> None:
    wrong = (bundle / "manifest.json").read_text().replace(sha256(big.read_bytes()), "0" * 64)
    (bundle / "manifest.json").write_text(wrong)
    found = take(tmp_path / "dest", bundle)
    assert big.name in found.damaged[0] and not (tmp_path / "dest" / "wheels" / big.name).exists()
    assert len(standing(found).missing_parts()) > 3


def test_a_second_delivery_adds_to_the_first(
    bundle: Path, big: Path, small: Path, wheels: Wheels, tmp_path: Path
) -> None:
    dest = tmp_path / "dest"
    take(dest, bundle)
    other = wheels.wheel("big", "2.0", files={"big/data.bin": noise(3, 5000)})
    delivery(tmp_path / "second", [[other, small]])
    first = take(dest, tmp_path / "second" / "manifest.json")
    assert standing(first).cells == ("small-1.0", "big-1.0_small-1.0")
    # What has been delivered already is not missing, however the second bundle cut it.
    assert {wheel.filename for wheel in standing(first).lacking()} == {other.name}
    found = take(dest, tmp_path / "second")
    assert standing(found).cells == ("big-2.0_small-1.0", "small-1.0", "big-1.0_small-1.0")
    same(dest, big, small, other)


def test_two_cuts_of_one_wheel_complete_each_other(big: Path, tmp_path: Path) -> None:
    dest = tmp_path / "dest"
    delivery(tmp_path / "coarse", [[big]], part_bytes=4000)
    delivery(tmp_path / "fine", [[big]], part_bytes=1400)
    coarse, fine = parts_in(tmp_path / "coarse"), parts_in(tmp_path / "fine")
    take(dest, tmp_path / "coarse" / "manifest.json", coarse[0])
    found = take(dest, tmp_path / "fine" / "manifest.json")
    # Of the new cut, those that reach beyond what is there.
    assert list(standing(found).missing_parts()) == [part.stem for part in fine[2:]]
    found = take(dest, coarse[2], *fine[2:5])
    assert len(standing(found).missing_parts()) < len(fine[5:])
    found = take(dest, coarse[1], *fine)
    assert not standing(found).lacking()
    same(dest, big)


def test_another_target_or_another_wheel_of_the_name_is_refused(bundle: Path, big: Path, tmp_path: Path) -> None:
    take(tmp_path / "dest", bundle)
    text = (bundle / "manifest.json").read_text()
    (bundle / "manifest.json").write_text(text.replace("manylinux_2_17", "manylinux_2_28"))
    with pytest.raises(BadInput, match="manylinux_2_28"):
        take(tmp_path / "dest", bundle)
    (bundle / "manifest.json").write_text(text.replace(sha256(big.read_bytes()), "0" * 64))
    with pytest.raises(BadInput, match=big.name):
        take(tmp_path / "dest", bundle)


def test_what_is_no_delivery_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="nowhere"):
        take(tmp_path / "dest", tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match="empty is nothing of a bundle"):
        take(tmp_path / "dest", tmp_path / "empty")
    assert not (tmp_path / "dest").exists()


def test_an_empty_delivery_shows_what_is_missing(bundle: Path, tmp_path: Path) -> None:
    take(tmp_path / "dest", bundle / "manifest.json")
    (tmp_path / "empty").mkdir()
    assert len(standing(take(tmp_path / "dest", tmp_path / "empty")).missing_parts()) == len(parts_in(bundle))


@pytest.mark.parametrize("damage", ["{}", '{"version": 1, "too', '{"version": 99}'])
def test_beside_a_damaged_manifest_the_parts_are_taken_in(
    damage: str, bundle: Path, big: Path, small: Path, tmp_path: Path
) -> None:
    good, count = (bundle / "manifest.json").read_text(), len(parts_in(bundle))
    (bundle / "manifest.json").write_text(damage)
    found = take(tmp_path / "dest", bundle)
    assert [line.startswith(f"{bundle}/manifest.json: ") for line in found.damaged] == [True]
    assert len(found.early) == count and found.standing is None
    shutil.rmtree(bundle / "parts")
    (bundle / "manifest.json").write_text(good)
    assert not standing(take(tmp_path / "dest", bundle)).lacking()
    same(tmp_path / "dest", big, small)


def test_the_way_out_of_a_damaged_manifest_of_the_folder_itself(bundle: Path, tmp_path: Path) -> None:
    dest = tmp_path / "dest"
    take(dest, bundle)
    (dest / "manifest.json").write_text("{")
    with pytest.raises(BadInput, match="remove this one, and give `bisect-env unbundle`"):
        take(dest, bundle)
    (dest / "manifest.json").unlink()
    assert not standing(take(dest, bundle / "manifest.json")).lacking()


@pytest.mark.parametrize("place", ["file/dest", "/proc/dest"])
def test_a_folder_that_cannot_be_made_is_said(place: str, bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InfrastructureError, match=r"--into: the folder .* cannot be made"):
        take(tmp_path / place, bundle)


def killed_at(step: int, act: Callable[[], object]) -> bool:
    """Runs ``act`` in a process that kills itself (SIGKILL) at its ``step``-th write, sync or renaming; False when
    it came to its end before."""
    pid = os.fork()
    if pid == 0:
        left = step

        def count(real: Callable[..., object]) -> Callable[..., object]:
            def counted(*args: object, **options: object) -> object:
                nonlocal left
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*args, **options)

            return counted

        os.fsync, os.pwrite = count(os.fsync), count(os.pwrite)  # type: ignore[assignment]
        Path.replace, Path.unlink = count(Path.replace), count(Path.unlink)  # type: ignore[method-assign, assignment]
        try:
            act()
        finally:
            os._exit(0)
    _, status = os.waitpid(pid, 0)
    return os.WIFSIGNALED(status)


def check(dest: Path, *wheels: Path) -> None:
    """What the folder says is there is there."""
    contents = {sha256(path.read_bytes()): path for path in wheels}
    folder = Destination(dest)
    for path in (dest / "wheels").iterdir():
        assert path.read_bytes() == next(wheel for wheel in wheels if wheel.name == path.name).read_bytes()
    for sha, wheel in contents.items():
        spans = folder.spans(sha)
        gathered = folder.unfinished(sha).read_bytes() if spans else b""
        assert all(gathered[start:end] == wheel.read_bytes()[start:end] for start, end in spans)


def test_killed_at_every_step_nothing_is_wrong_and_nothing_is_lost(
    bundle: Path, big: Path, small: Path, tmp_path: Path
) -> None:
    parts = parts_in(bundle)
    early, rest = parts[:1], parts[1:]
    for step in range(1, 1000):
        dest = tmp_path / f"dest{step}"
        take(dest, *early)
        if not killed_at(step, lambda dest=dest: take(dest, bundle / "manifest.json", *rest[:-1])):  # type: ignore[misc]
            break
        check(dest, big, small)
        before = Destination(dest).manifest()
        known = set() if before is None else set(standing_of(Destination(dest), before).missing_parts())
        found = take(dest, bundle)
        assert not found.damaged
        # What was there before the kill did not have to come again.
        assert before is None or set(found.parts) <= known
        same(dest, big, small)
        shutil.rmtree(dest)
    assert step > 40


def test_killed_in_a_part_that_is_damaged(bundle: Path, big: Path, small: Path, tmp_path: Path) -> None:
    dest, parts = tmp_path / "dest", parts_in(bundle)
    good = parts[2].read_bytes()
    parts[2].write_bytes(bytes(len(good)))
    take(dest, bundle / "manifest.json")
    assert killed_at(1, lambda: take(dest, parts[2]))
    check(dest, big, small)
    parts[2].write_bytes(good)
    assert not standing(take(dest, bundle)).lacking()
    same(dest, big, small)


def test_a_full_disk_loses_nothing(bundle: Path, big: Path, small: Path, tmp_path: Path) -> None:
    dest = tmp_path / "dest"
    take(dest, bundle / "manifest.json", parts_in(bundle)[0])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (6000, limits[1]))
    try:
        with pytest.raises(InfrastructureError, match=r"the disk is full.*give the same command again"):
            take(dest, *parts_in(bundle))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    check(dest, big, small)
    assert (dest / "wheels" / small.name).exists() and not (dest / "wheels" / big.name).exists()
    found = take(dest, bundle)
    assert found.known and not standing(found).lacking()
    same(dest, big, small)


def test_a_wheel_that_somebody_removed_is_missing_again(bundle: Path, big: Path, tmp_path: Path) -> None:
    dest = tmp_path / "dest"
    take(dest, bundle)
    (dest / "wheels" / big.name).unlink()
    assert len(standing(take(dest, bundle / "manifest.json")).missing_parts()) >= 5
    assert not standing(take(dest, bundle)).lacking()


def test_spans_without_their_bytes_say_nothing(bundle: Path, tmp_path: Path) -> None:
    dest = tmp_path / "dest"
    take(dest, bundle / "manifest.json", *parts_in(bundle)[:-1])
    for path in (dest / "unfinished").glob("*.whl"):
        path.unlink()
    assert not standing(take(dest, bundle)).lacking()


def test_the_merged_manifest_is_one_that_can_be_read(bundle: Path, tmp_path: Path) -> None:
    take(tmp_path / "dest", bundle)
    assert manifest.load(tmp_path / "dest") == manifest.load(bundle)
    held = [json.loads(path.read_text()) for path in (tmp_path / "dest" / "held").iterdir()]
    assert {entry["size"] for entry in held} == {path.stat().st_size for path in (tmp_path / "dest/wheels").iterdir()}
