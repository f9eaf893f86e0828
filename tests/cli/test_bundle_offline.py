"""From a bundle to a table on a host without a network: parts come one by one while a matrix already runs on them."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bisect_env.environments.index import SimpleIndex
from bisect_env.environments.uv import Uv
from bisect_env.matrix.loading import load
from tests.bundles.build import noise, parts_in, resolved
from tests.support.index import refusing_url
from tests.support.racing import World

BODY = """\
axes: {torch: [2.11.0, 2.14.1], transformers: ">=5.6,<6"}
trials: 4
controls: 4
"""
PART = 4096


@pytest.fixture
def offline(world: World, uv: Uv) -> World:
    """A project whose index is gone, and its bundle; torch 2.14.1 alone is several parts."""
    world.torch("2.11.0", race=1.0)
    world.torch("2.14.1", files={"torch/data.bin": noise(7, 5 * PART)})  # type: ignore[dict-item]
    world.transformers("5.6.0")
    world.transformers("5.8.1", dense=31)
    path = world.matrix(BODY)
    resolved(world.folder / "bundle", load(path, SimpleIndex()), world.wheels.folder, uv, part_bytes=PART)
    world.index.stop()
    return World(world.folder, world.index, world.wheels, world.folder / "cache-of-this-host")


def run(world: World, *args: str | Path) -> subprocess.CompletedProcess[str]:
    """The command where nothing can be reached, whatever is asked for."""
    nowhere = refusing_url()
    names = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL", "https_proxy", "http_proxy", "all_proxy")
    return world.run(*map(str, args), variables=dict.fromkeys(names, nowhere))


def unbundle(world: World, *sources: str | Path) -> subprocess.CompletedProcess[str]:
    return run(world, "unbundle", *sources, "--into", "dest")


def verdicts(world: World) -> dict[str, str]:
    finished = run(world, "matrix", "matrix.yaml", "--bundle", "dest", "--json", "document.json")
    assert finished.returncode == 0, finished.stderr
    document = json.loads((world.folder / "document.json").read_text())
    return {cell["id"]: f"{cell['verdict']['text']}: {cell['verdict'].get('reason')}" for cell in document["cells"]}


def test_the_whole_chain(offline: World) -> None:
    folder = offline.folder
    parts, source = parts_in(folder / "bundle"), folder / "delivery"
    assert len(parts) >= 6
    source.mkdir()
    shutil.copy(folder / "bundle" / "manifest.json", source)
    shutil.copy(parts[0], source)
    first = unbundle(offline, "delivery")
    shutil.rmtree(source)
    assert first.returncode == 3, first.stderr
    assert "1 part taken in" in first.stdout and "complete: 2 of 4 cells: torch-2.11.0_" in first.stdout
    assert f"missing: {len(parts) - 1} parts" in first.stdout and f"{parts[1].name}" in first.stdout
    assert "bisect-env matrix matrix.yaml --bundle" in first.stdout

    now = verdicts(offline)
    assert now["torch-2.11.0_transformers-5.6.0"].startswith("RACE 4/4")
    assert now["torch-2.11.0_transformers-5.8.1"].startswith("RACE 4/4")
    waiting = now["torch-2.14.1_transformers-5.6.0"]
    assert waiting.startswith("NOT RUN") and f"{len(parts) - 1} parts of its bundle are missing" in waiting
    shown = run(offline, "show", "torch-2.14.1_transformers-5.6.0")
    assert shown.returncode == 0 and "NOT RUN" in shown.stdout

    for number, part in enumerate(parts[1:], start=2):
        source.mkdir()
        shutil.copy(part, source)
        found = unbundle(offline, source)
        shutil.rmtree(source)
        assert found.returncode == (0 if number == len(parts) else 3), found.stderr
    now = verdicts(offline)
    assert now["torch-2.11.0_transformers-5.6.0"].startswith("RACE 4/4")
    assert now["torch-2.14.1_transformers-5.6.0"].startswith("FULL")
    assert now["torch-2.14.1_transformers-5.8.1"].startswith("DENSE 31 %")
    # What was shown as missing is not kept.
    assert "FULL" in run(offline, "show", "torch-2.14.1_transformers-5.6.0").stdout


def test_damaged_and_unknown_cells(offline: World) -> None:
    folder = offline.folder
    parts = parts_in(folder / "bundle")
    parts[2].write_bytes(b"\0" * 10)
    found = unbundle(offline, "bundle")
    assert found.returncode == 2 and f"damaged: {parts[2].name}" in found.stdout
    assert "missing: 1 part" in found.stdout
    offline.matrix(BODY.replace("2.14.1", "2.12.0"))
    now = verdicts(offline)
    assert now["torch-2.11.0_transformers-5.6.0"].startswith("RACE 4/4")
    unknown = now["torch-2.12.0_transformers-5.6.0"]
    assert unknown.startswith("UNRESOLVABLE") and "bisect-env bundle FILE -o DIR" in unknown


def test_a_matrix_without_anything_unbundled_is_refused(offline: World) -> None:
    found = run(offline, "matrix", "matrix.yaml", "--bundle", "nowhere")
    assert found.returncode == 2 and "unbundle" in found.stderr and not offline.store.exists()
    found = run(offline, "matrix", "matrix.yaml", "--bundle", "bundle")
    assert found.returncode == 2 and "unbundle bundle --into OTHER" in found.stderr and not offline.store.exists()


def test_a_dry_run_reads_the_bundle(offline: World) -> None:
    unbundle(offline, "bundle/manifest.json")
    found = run(offline, "matrix", "matrix.yaml", "--bundle", "dest", "--dry-run")
    assert found.returncode == 0 and "torch-2.14.1_transformers-5.8.1" in found.stdout


def test_beside_a_running_matrix(offline: World) -> None:
    folder = offline.folder
    parts = parts_in(folder / "bundle")
    unbundle(offline, "bundle/manifest.json", parts[0])
    matrix = offline.start("matrix", "matrix.yaml", "--bundle", "dest")
    try:
        while matrix.poll() is None:
            unbundle(offline, *parts)
        stdout, stderr = matrix.communicate()
    finally:
        matrix.kill()
        matrix.wait()
    assert matrix.returncode == 0 and "BUILD-FAILED" not in stdout, stderr
    unbundle(offline, *parts)
    assert all(text.startswith(("RACE", "FULL", "DENSE")) for text in verdicts(offline).values())


def test_killed_and_given_again(offline: World) -> None:
    folder = offline.folder
    for delay in (0.3, 0.4, 0.5, 0.6):
        process = offline.start("unbundle", "bundle", "--into", "dest")
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    found = unbundle(offline, "bundle")
    assert found.returncode == 0 and "damaged" not in found.stdout
    assert {path.name: path.read_bytes() for path in (folder / "dest" / "wheels").iterdir()} == {
        path.name: path.read_bytes() for path in offline.wheels.folder.iterdir()
    }


def test_a_full_disk_is_said(offline: World) -> None:
    process = subprocess.run(
        [sys.executable, "-m", "bisect_env", "unbundle", "bundle", "--into", "dest"],
        cwd=offline.folder,
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (3 * PART, -1)),
    )
    assert process.returncode == 5 and "the disk is full" in process.stderr and "Traceback" not in process.stderr
    assert unbundle(offline, "bundle").returncode == 0


def test_the_project_s_own_folder_is_the_default(offline: World) -> None:
    assert run(offline, "unbundle", "bundle").returncode == 0
    assert (offline.store / "bundle" / "manifest.json").exists()
    finished = run(offline, "matrix", "matrix.yaml", "--bundle", ".bisect-env/bundle", "--cell", "*2.11.0*5.6.0")
    assert finished.returncode == 0 and "RACE" in finished.stdout


def test_inventory(offline: World) -> None:
    unbundle(offline, "bundle")
    finished = run(offline, "inventory", "--bundle", "dest", "-o", "have.json", "--python", sys.executable)
    assert finished.returncode == 0, finished.stderr
    value = json.loads((offline.folder / "have.json").read_text())
    assert len(value["wheels"]) == 4 and any(entry["name"] == "click" for entry in value["installed"])
    script = run(offline, "inventory", "--script").stdout
    bare = subprocess.run([sys.executable, "-I", "-"], input=script, capture_output=True, text=True, check=True)
    assert json.loads(bare.stdout)["wheels"] == []
    assert run(offline, "inventory", "--bundle", "nowhere").returncode == 2
