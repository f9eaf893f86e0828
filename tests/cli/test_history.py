"""Verdicts over time: runs of one matrix with a change between them, and a store of an earlier version."""

from __future__ import annotations

import json
import lzma
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.racing import World
from tests.support.schemas import matching

BODY = """\
axes: {torch: [2.11.0, 2.14.1]}
requirements: [transformers]
trials: 4
controls: 4
solo: 0
stop_early: false
"""
OLD = Path(__file__).parents[2] / "docs" / "results" / "h200.sqlite.xz"


@pytest.fixture
def measured(world: World) -> World:
    """A matrix that ran once: 2.11.0 races."""
    world.torch("2.11.0", race=1.0)
    world.torch("2.14.1")
    world.transformers("5.6.0")
    world.matrix(BODY)
    run(world)
    return world


def run(world: World, *args: str) -> None:
    done = world.run("matrix", "matrix.yaml", *args)
    assert done.returncode == 0, done.stderr


def history(world: World, *args: str) -> subprocess.CompletedProcess[str]:
    """The command, which changes nothing."""
    before = {path: path.stat().st_mtime_ns for path in world.folder.rglob("*")}
    done = world.run("history", *args)
    assert {path: path.stat().st_mtime_ns for path in world.folder.rglob("*")} == before
    assert "Traceback" not in done.stderr
    return done


def document(world: World, *args: str) -> dict[str, Any]:
    done = history(world, *args, "--json", "-")
    assert done.returncode == 0, done.stderr
    return matching("history", json.loads(done.stdout))


def verdicts(found: dict[str, Any], name: str) -> list[str]:
    [cell] = [cell for cell in found["cells"] if cell["id"] == name]
    return [moment["text"] for moment in cell["moments"]]


def test_one_run_says_what_a_second_one_would_tell(measured: World) -> None:
    done = history(measured)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("tiny: 1 run, 2 cells.") and "RACE 4/4" in done.stdout and "FULL" in done.stdout
    assert "measured no cell again. The next run that measures these cells again" in " ".join(done.stdout.split())
    # A run that finds all measured is one, too, and hides nothing.
    run(measured)
    found = document(measured)
    assert [entry["trials"] for entry in found["runs"]] == [16, 0] and found["last"] == found["runs"][0]["id"]
    assert found["changed"] == [] and verdicts(found, "torch-2.11.0") == ["RACE 4/4"]


def test_what_changed_and_what_changed_with_it(measured: World) -> None:
    script = measured.folder / "race.py"
    script.write_text(script.read_text().replace('fail("tracing flag was set")', "pass"))
    run(measured)
    found = document(measured, "tiny")
    assert verdicts(found, "torch-2.11.0") == ["RACE 4/4", "FULL"]
    [changed] = [each for each in found["changed"] if each["cell"] == "torch-2.11.0"]
    assert changed["before"] == found["runs"][0]["id"] and found["last"] == found["runs"][1]["id"]
    assert [change["what"] for change in changed["changes"]] == ["verdict", "reproducer"]
    assert (changed["changes"][0]["before"], changed["changes"][0]["after"]) == ("RACE 4/4", "FULL")
    text = " ".join(history(measured, "matrix.yaml").stdout.split())
    assert f"{found['last']} measured 2 cells again; 1 verdict changed." in text
    assert f"torch-2.11.0, since {changed['before']}: RACE 4/4 -> FULL, reproducer " in text


def test_a_fresh_run_leaves_the_earlier_verdict_as_it_was(measured: World) -> None:
    measured.transformers("5.8.1")
    run(measured, "--fresh", "--cell", "torch-2.11.0", "--trials", "5")
    found = document(measured)
    assert verdicts(found, "torch-2.11.0") == ["RACE 4/4", "RACE 5/5"], "not 9/9: --fresh counts anew"
    assert verdicts(found, "torch-2.14.1") == ["FULL"]
    [changed] = found["changed"]
    assert changed["changes"] == [
        {"what": "verdict", "name": "", "before": "RACE 4/4", "after": "RACE 5/5"},
        {"what": "distribution", "name": "transformers", "before": "5.6.0", "after": "5.8.1"},
        {"what": "plan", "name": "", "before": "4 and 4 controls", "after": "5 and 5 controls"},
    ]
    text = " ".join(history(measured).stdout.split())
    assert "measured 1 cell again; no verdict changed." in text and "transformers 5.6.0 -> 5.8.1" in text


def test_more_trials_of_a_later_run_are_counted_with_the_earlier(measured: World) -> None:
    run(measured, "--trials", "6")
    found = document(measured)
    assert verdicts(found, "torch-2.11.0") == ["RACE 4/4", "RACE 6/6"]
    assert [moment["own"] for moment in found["cells"][0]["moments"]] == [8, 4]


def test_a_cell_that_cannot_be_had_any_more_says_so(measured: World) -> None:
    measured.matrix(BODY.replace("2.14.1]", "2.14.1, 2.15.0]"))
    run(measured)
    found = document(measured)
    [cell] = [cell for cell in found["cells"] if cell["id"] == "torch-2.15.0"]
    assert cell["moments"] == [] and cell["now"]["headline"] == "UNRESOLVABLE"
    assert "now UNRESOLVABLE: no such version" in " ".join(history(measured).stdout.split())


def test_a_store_of_an_earlier_version_of_another_host(world: World) -> None:
    brought = world.folder / "brought"
    brought.mkdir()
    store = brought / "store.sqlite"
    store.write_bytes(lzma.decompress(OLD.read_bytes()))
    store.chmod(0o444)
    brought.chmod(0o555)
    found = document(world, "/elsewhere/h200.yaml", "--store", "brought")
    assert found["matrix"] == "torch x transformers on an H200" and len(found["cells"]) == 20
    assert sum(entry["trials"] for entry in found["runs"]) == sum(
        moment["own"] for cell in found["cells"] for moment in cell["moments"]
    )
    assert {cell["moments"][-1]["headline"] for cell in found["cells"]} == {"RACE", "HANG"}
    latest = history(world, "--store", "brought")
    assert latest.stdout.startswith("mitigations on two GPUs: ") and "Other matrices in this store: " in latest.stdout


@pytest.mark.parametrize("present", [True, False])
def test_what_is_not_there(measured: World, present: bool) -> None:
    args = ("nothing.yaml",) if present else ("--store", "nowhere")
    done = history(measured, *args)
    assert done.returncode == 2 and ("one of: tiny" if present else "there is no store") in done.stderr
    assert not (measured.folder / "nowhere").exists()


def test_a_store_in_which_no_matrix_ran(world: World) -> None:
    world.store.mkdir()
    (world.store / "store.sqlite").touch()
    done = history(world)
    assert done.returncode == 2 and "no matrix was run" in done.stderr and "bisect-env matrix FILE" in done.stderr
