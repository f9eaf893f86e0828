"""`bisect-env bundle` as a user runs it: what lies in the folder, what a further one adds, what is left out."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bisect_env.bundles import manifest
from bisect_env.bundles.records import Manifest, Wheel
from bisect_env.environments.uv import Uv
from tests.cli.test_full_disk import mount
from tests.support import tooling
from tests.support.racing import World

PART = 8192
PYTHON = f"3.{sys.version_info[1]}"
OPTIONS = ("-o", "bundle", "--part-size", "8K", "--python", PYTHON)


def noise(seed: int, size: int) -> str:
    return random.Random(seed).randbytes(size).hex()


@pytest.fixture
def project(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """Two versions of each, torch several parts large; and all that the tool needs."""
    for version in ("2.13.0", "2.14.1"):
        world.torch(version, files={"torch/large.txt": noise(int(version[2:4]), 15_000)})
    for version in ("5.6.0", "5.8.1"):
        world.transformers(version)
    tooling.offer(world.index, world.wheels)
    monkeypatch.setenv("UV_DEFAULT_INDEX", world.index.url)
    world.matrix("axes: {torch: 2.14.1, transformers: [5.6.0, 5.8.1]}\nrequirements: [click]\n")
    return world


def made(project: World, *args: str, file: str = "matrix.yaml") -> tuple[Manifest, str]:
    finished = project.run("bundle", file, *OPTIONS, *args)
    assert finished.returncode == 0, finished.stderr
    return manifest.load(project.folder / "bundle"), finished.stdout


def parts(project: World) -> dict[str, bytes]:
    return {path.stem: path.read_bytes() for path in (project.folder / "bundle" / "parts").iterdir()}


def joined(project: World, wheel: Wheel) -> bytes:
    files = parts(project)
    return b"".join(files[p.part][p.part_offset : p.part_offset + p.length] for p in wheel.pieces)


def test_everything_a_target_needs(project: World, uv: Uv) -> None:
    bundle, said = made(project)
    files = parts(project)
    assert all(hashlib.sha256(data).hexdigest() == part for part, data in files.items())
    assert {part: len(data) for part, data in files.items()} == dict(bundle.part_bytes)
    assert max(map(len, files.values())) <= PART and len(files) > 1
    for wheel in bundle.wheels:
        assert hashlib.sha256(joined(project, wheel)).hexdigest() == wheel.sha256
    assert [locked.cells for locked in bundle.locked] == [
        ("torch-2.14.1_transformers-5.6.0",),
        ("torch-2.14.1_transformers-5.8.1",),
    ]
    shas = {wheel.sha256: (wheel.name, wheel.version) for wheel in bundle.wheels}
    for locked in bundle.locked:
        assert locked.lock is not None and tuple(shas[sha] for sha in locked.wheels) == locked.lock.pins
    assert "2 of 2 cells" in said
    # Needed by the matrix and by the tool.
    assert sum("/click-" in path and path.endswith(".whl") for _, path in project.index.requests) == 1
    folder = project.folder / "bundle"
    subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=folder, check=True)
    assert (folder / "project" / bundle.matrix).read_text() == (project.folder / "matrix.yaml").read_text()
    assert (folder / "project" / "matrices" / "race.py").exists() and (folder / "project" / "noxfile.py").exists()
    # What README.txt says of the tool, without any index.
    there = ["pip", "install", "--no-index", "--find-links", folder / "tool", "--target", project.folder / "venv"]
    finished = uv.run([*there, "--python", sys.executable, "bisect-env[nox]"])
    assert finished.ok, finished.stderr
    assert (project.folder / "venv" / "bisect_env").is_dir() and (project.folder / "venv" / "uv").is_dir()


def test_a_further_bundle_adds_its_own_parts_alone(project: World) -> None:
    first, _ = made(project)
    stats = {path.name: path.stat().st_mtime_ns for path in (project.folder / "bundle" / "parts").iterdir()}
    again, said = made(project)
    assert (again, "new of them 0" in said) == (first, True)
    project.matrix("axes: {torch: 2.13.0, transformers: 5.8.1}\nrequirements: [click]\n", "other.yaml")
    both, _ = made(project, file="other.yaml")
    new = {wheel.name for wheel in both.wheels} - {wheel.name for wheel in first.wheels}
    assert len(both.locked) == 3 and not new
    assert set(first.wheels) < set(both.wheels) and set(first.part_bytes) < set(both.part_bytes)
    for name, mtime in stats.items():
        assert (project.folder / "bundle" / "parts" / name).stat().st_mtime_ns == mtime
    # The first cell's parts are those of this run's matrix.
    assert both.locked[0].cells == ("torch-2.13.0_transformers-5.8.1",)


def test_parts_serve_where_the_fetched_wheels_are_gone(project: World) -> None:
    first, _ = made(project)
    shutil.rmtree(project.store)
    project.index.requests.clear()
    assert made(project)[0] == first
    assert not [path for _, path in project.index.requests if "torch" in path and path.endswith(".whl")]


def test_a_damaged_part_is_made_anew(project: World) -> None:
    made(project)
    for part in list((project.folder / "bundle" / "parts").iterdir()):
        part.write_bytes(bytes(part.stat().st_size))
        bundle, _ = made(project)
        assert all(hashlib.sha256(data).hexdigest() == name for name, data in parts(project).items())
        for wheel in bundle.wheels:
            assert hashlib.sha256(joined(project, wheel)).hexdigest() == wheel.sha256


def inventory(project: World, uv: Uv, *wheels: Path, absorbed: tuple[str, ...] = ()) -> Path:
    """What `bisect-env inventory` prints in a fresh environment with these wheels."""
    venv = project.folder / "target"
    assert uv.run(["venv", "--quiet", "--python", sys.executable, venv]).ok
    if wheels:
        finished = uv.run(["pip", "install", "--no-deps", "--python", venv / "bin" / "python", *wheels])
        assert finished.ok, finished.stderr
    said = project.run("inventory", "--python", str(venv / "bin" / "python"))
    assert said.returncode == 0, said.stderr
    value = json.loads(said.stdout)
    value["wheels"] = list(absorbed)
    path = project.folder / "have.json"
    path.write_text(json.dumps(value))
    return path


def test_what_the_target_has_is_left_out(project: World, uv: Uv) -> None:
    whole, _ = made(project)
    shutil.rmtree(project.folder / "bundle")
    [torch] = [wheel for wheel in whole.wheels if wheel.name == "torch"]
    absorbed = next(wheel for wheel in whole.wheels if wheel.version == "5.6.0")
    have = inventory(project, uv, project.wheels.folder / torch.filename, absorbed=(absorbed.sha256,))
    bundle, said = made(project, "--have", str(have))
    found = {(wheel.name, wheel.version): wheel for wheel in bundle.wheels}
    assert found["torch", "2.14.1"].installed and "torch/large.txt,sha256=" in found["torch", "2.14.1"].record
    assert not found["torch", "2.14.1"].pieces
    assert not found["transformers", "5.6.0"].pieces and not found["transformers", "5.6.0"].installed
    assert found["transformers", "5.8.1"].pieces
    assert [len(locked.wheels) for locked in bundle.locked] == [3, 3]
    assert "left out 2 wheels" in said and sum(dict(bundle.part_bytes).values()) < PART
    # Known from the manifest: no wheel is looked into again.
    shutil.rmtree(project.store)
    project.index.requests.clear()
    assert made(project, "--have", str(have))[0] == bundle
    assert not [path for _, path in project.index.requests if path.endswith(torch.filename)]


def test_another_build_is_not_left_out(project: World, uv: Uv, tmp_path: Path) -> None:
    changed = type(project.wheels)(tmp_path / "changed").wheel("torch", "2.14.1")
    bundle, _ = made(project, "--have", str(inventory(project, uv, changed)))
    assert all(wheel.pieces for wheel in bundle.wheels)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("platform", "linux-aarch64", "linux-aarch64"),
        ("libc", "glibc 2.5", "glibc 2.5, older"),
        ("python", "3.8.1", "3.8.1"),
    ],
)
def test_an_inventory_of_another_host_is_refused(project: World, uv: Uv, key: str, value: str, words: str) -> None:
    have = inventory(project, uv)
    have.write_text(json.dumps({**json.loads(have.read_text()), key: value}))
    finished = project.run("bundle", "matrix.yaml", *OPTIONS, "--have", str(have))
    assert finished.returncode == 2 and words in finished.stderr, finished.stderr
    assert not (project.folder / "bundle").exists()


@pytest.mark.parametrize("option", ["--output", "--store"])
def test_a_folder_that_cannot_be_made_is_said(project: World, option: str) -> None:
    finished = project.run("bundle", "matrix.yaml", *OPTIONS, option, "/proc/folder")
    assert finished.returncode == 5 and f"{option}: the folder /proc/folder" in finished.stderr, finished.stderr


def test_a_cell_that_cannot_be_bundled_is_named(project: World) -> None:
    project.index.add(project.wheels.sdist("transformers", "5.9.0", requires=["torch"]))
    project.matrix("axes: {torch: 2.14.1, transformers: [5.9.0, 5.8.1]}\n")
    bundle, said = made(project)
    assert "1 of 2 cells" in said and "NOT BUNDLED torch-2.14.1_transformers-5.9.0" in said
    assert [locked.lock is None for locked in bundle.locked] == [True, False]
    assert bundle.locked[0].unavailable is not None and "5.9.0" in bundle.locked[0].unavailable.message


def test_some_cells_only(project: World) -> None:
    bundle, _ = made(project, "--cell", "*5.6.0")
    assert [locked.cells for locked in bundle.locked] == [("torch-2.14.1_transformers-5.6.0",)]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--part-size", "much"), "--part-size"),
        (("--part-size", "1K"), "at least"),
        (("--python", "3"), "--python"),
        (("--platform", "win32"), "--platform"),
        (("--platform", "x86_64-manylinux_2_99"), "x86_64-manylinux_2_28"),
        (("--python", "3.9"), "bisect-env itself"),
        (("--have", "race.py"), "inventory"),
        (("--have", "none.json"), "none.json"),
        (("--cell", "nothing"), "--cell"),
        (("-o", "race.py"), "race.py"),
        (("-o", "."), "other things"),
    ],
)
def test_bad_input(project: World, args: tuple[str, ...], words: str) -> None:
    finished = project.run("bundle", "matrix.yaml", *OPTIONS, *args)
    assert finished.returncode == 2 and words in finished.stderr and "Traceback" not in finished.stderr
    assert not (project.folder / "bundle").exists()


def test_a_matrix_on_a_base_is_refused(project: World) -> None:
    project.matrix(f"axes: {{transformers: 5.8.1}}\nbase: {sys.executable}\n")
    finished = project.run("bundle", "matrix.yaml", *OPTIONS)
    assert finished.returncode == 2 and "base" in finished.stderr and "--have" in finished.stderr


def test_another_target_in_the_same_folder_is_refused(project: World) -> None:
    made(project)
    finished = project.run("bundle", "matrix.yaml", *OPTIONS, "--platform", "x86_64-manylinux_2_31")
    assert finished.returncode == 2 and "another folder" in finished.stderr


def test_an_index_that_is_down_is_no_bundle(project: World) -> None:
    project.index.stop()
    finished = project.run("bundle", "matrix.yaml", *OPTIONS)
    assert finished.returncode == 5 and "index unreachable" in finished.stderr
    assert not (project.folder / "bundle" / "manifest.json").exists()


def test_interrupted_it_leaves_nothing_half(project: World) -> None:
    process = project.start("bundle", "matrix.yaml", *OPTIONS)
    deadline = time.monotonic() + 30
    while not any(path.endswith(".whl") for _, path in project.index.requests):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.005)
    project.index.mode = "hangs"
    threading.Timer(0.5, project.index.stop).start()
    process.terminate()
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130 and "goes on from there" in stderr
    folder = project.folder / "bundle"
    assert not (folder / "manifest.json").exists()
    for path in (folder / "parts").glob("*"):
        assert hashlib.sha256(path.read_bytes()).hexdigest() + ".part" == path.name


@pytest.fixture
def small_disk(project: World) -> Iterator[World]:
    """The bundle's folder has a disk of its own, too small for the parts and large enough for what is asked first."""
    folder = project.folder / "bundle"
    folder.mkdir()
    if trouble := mount(folder, "size=260M"):
        pytest.skip(f"no disk can be mounted here: {trouble}")
    try:
        yield project
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_disk_too_small_is_said_before_anything_is_fetched(small_disk: World) -> None:
    assert not mount(small_disk.folder / "bundle", "remount,size=100M")
    finished = small_disk.run("bundle", "matrix.yaml", *OPTIONS)
    assert finished.returncode == 5 and "must stay free" in finished.stderr and "are needed" in finished.stderr
    assert not list((small_disk.store / "wheels").rglob("*.whl"))
