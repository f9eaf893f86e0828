"""Results brought home: a store of another host becomes a table here, with no network and nothing written."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.index import refusing_url
from tests.support.racing import World

BODY = """\
axes: {torch: [2.11.0, 2.14.1], transformers: ">=5.6,<6"}
trials: 4
controls: 4
solo: 0
stop_early: false
"""
RACING = "torch-2.11.0_transformers-5.6.0"


@pytest.fixture
def home(world: World) -> World:
    """A project with the matrix and one file of the host where it was measured: its store, not to be written to."""
    world.torch("2.11.0", race=1.0)
    world.torch("2.14.1")
    world.transformers("5.6.0")
    world.transformers("5.8.1", dense=31)
    world.matrix(BODY)
    measured = world.run("matrix", "matrix.yaml", "--cell", "*-5.6.0", "--cell", "torch-2.11.0*")
    assert measured.returncode == 0, measured.stderr
    brought = world.folder / "brought"
    brought.mkdir()
    shutil.copy(world.store / "store.sqlite", brought)
    shutil.rmtree(world.store)
    world.index.stop()
    (brought / "store.sqlite").chmod(0o444)
    brought.chmod(0o555)
    return world


def report(world: World, *args: str) -> subprocess.CompletedProcess[str]:
    """The command where nothing can be reached, and without an environment or a cache of uv's."""
    names = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL", "https_proxy", "http_proxy", "all_proxy")
    before = sorted(path for path in world.folder.rglob("*") if "__pycache__" not in path.parts)
    stored = {path: path.read_bytes() for path in world.folder.rglob("store.sqlite")}
    found = world.run("report", "matrix.yaml", *args, variables=dict.fromkeys(names, refusing_url()))
    assert "Traceback" not in found.stderr
    assert sorted(path for path in world.folder.rglob("*") if "__pycache__" not in path.parts) == before
    assert {path: path.read_bytes() for path in stored} == stored
    return found


def edit(world: World, *statements: str) -> None:
    """Pretend that the store says something else."""
    (world.folder / "brought").chmod(0o755)
    path = world.folder / "brought" / "store.sqlite"
    path.chmod(0o644)
    with closing(sqlite3.connect(path)) as db:
        for statement in statements:
            db.execute(statement)
        db.commit()


def test_the_table(home: World) -> None:
    found = report(home, "--store", "brought")
    assert found.returncode == 0, found.stderr
    assert "transformers >=5.6,<6 stands for 5.6.0, 5.8.1" in found.stderr
    head, _, table = found.stdout.partition("\n\n")
    assert "GPUs        none" in head and "in 1 run: r" in head and "python      cpython 3." in head
    assert table.count("RACE 4/4") >= 2 and "FULL" in table and "Not run: torch 2.14.1 transformers 5.8.1." in table
    assert "another version" not in found.stdout


def test_narrowed_and_as_json(home: World) -> None:
    found = report(home, "--store", "brought", "--cell", f"{RACING}*", "--trials", "6", "--json", "-")
    assert found.returncode == 0, found.stderr
    document = json.loads(found.stdout)
    [cell] = document["cells"]
    # Of six planned trials four are in: nothing is certain yet.
    assert cell["id"] == RACING and cell["verdict"]["headline"] == "UNSURE" and document["matrix"]["trials"] == 6
    measured = document["measured"]
    assert measured["trials"] == 8 and measured["gpus"] == [] and len(measured["hosts"]) == 1
    assert measured["first"] <= measured["last"] and measured["runs"][0][1] == "completed"


def test_files_are_written_where_asked(home: World) -> None:
    found = home.run("report", "matrix.yaml", "--store", "brought", "--format", "github", "-o", "table.md")
    assert found.returncode == 0, found.stderr
    text = (home.folder / "table.md").read_text()
    assert text.startswith("- host: ") and "\n- GPUs: none\n" in text and "\n| torch " in text
    missing = report(home, "--store", "brought", "-o", "nowhere/table.md")
    assert missing.returncode == 2 and "no folder" in missing.stderr


def test_another_version_of_the_reproducer(home: World) -> None:
    script = home.folder / "race.py"
    script.write_text(script.read_text() + "# edited\n")
    found = report(home, "--store", "brought")
    mark = "measured with another version of the reproducer"
    assert found.returncode == 0 and found.stdout.count("RACE 4/4") >= 2
    above = found.stdout.partition("\ntorch ")[0]
    assert mark in above and found.stdout.count(mark) == 1, "all have it: said once"


def test_show_reads_it_too(home: World) -> None:
    for name in (RACING, "r"):
        before = sorted(home.folder.rglob("*"))
        shown = home.run("show", name, "--store", "brought")
        assert shown.returncode == 0, shown.stderr
        assert sorted(home.folder.rglob("*")) == before
    assert "matrix.yaml" in shown.stdout


def test_what_a_range_stands_for_is_not_known(home: World) -> None:
    edit(home, "DELETE FROM locks")
    found = report(home, "--store", "brought")
    assert found.returncode == 2 and "no environment has transformers" in found.stderr
    home.matrix(BODY.replace('">=5.6,<6"', "[5.6.0]"))
    found = report(home, "--store", "brought")
    assert found.returncode == 0 and found.stdout.count("NOT RUN") == 2 and "holds no trial" in found.stdout


@pytest.mark.parametrize("empty", [True, False])
def test_a_store_that_is_empty_or_missing(world: World, empty: bool) -> None:
    world.matrix("axes: {torch: [2.11.0]}\n")
    if empty:
        (world.folder / "brought").mkdir()
        (world.folder / "brought" / "store.sqlite").touch()
    found = report(world, "--store", "brought")
    if empty:
        assert found.returncode == 0 and "NOT RUN" in found.stdout
        assert "measured  nothing: the store holds no trial of these cells" in found.stdout
    else:
        assert found.returncode == 2 and "there is no store" in found.stderr and "store.sqlite" in found.stderr
        assert not Path(world.folder, "brought").exists()
