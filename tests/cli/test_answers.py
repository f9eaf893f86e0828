"""One matrix with every answer, from the command to the evidence behind it."""

from __future__ import annotations

import json
import re
import time

from tests.support.racing import World
from tests.support.wheels import corrupt

BODY = """\
axes: {torch: [2.10.0, 2.11.0, 2.12.0, 2.12.1, 2.13.0, 2.14.1], transformers: [4.52.4]}
include: [{torch: 2.14.1, transformers: 5.8.1}]
trials: 4
controls: 4
limits: {import_time: 3}
"""
ANSWERS = {
    "torch-2.10.0_transformers-4.52.4": "BUILD-FAILED",
    "torch-2.11.0_transformers-4.52.4": "RACE 4/4",
    "torch-2.12.0_transformers-4.52.4": "IMPORT-FAILED",
    "torch-2.12.1_transformers-4.52.4": "IMPORT-FAILED",
    "torch-2.13.0_transformers-4.52.4": "UNRESOLVABLE",
    "torch-2.14.1_transformers-4.52.4": "FULL",
    "torch-2.14.1_transformers-5.8.1": "DENSE 31 %",
}


def furnish(world: World) -> None:
    corrupt(world.torch("2.10.0", files={"torch/more.py": "x = 1\n" * 500}))
    world.torch("2.11.0", race=1.0)
    world.torch("2.12.0", import_hangs=True)
    world.torch("2.12.1", import_fails=True)
    world.torch("2.14.1")
    world.transformers("4.52.4")
    world.transformers("5.8.1", dense=31)
    world.matrix(BODY)


def test_the_answers_of_one_matrix(world: World) -> None:
    furnish(world)
    finished = world.run("matrix", "matrix.yaml", "--json", "document.json")
    assert finished.returncode == 0, finished.stderr
    _the_table_says_it(finished.stdout)
    assert re.search(r"^ *\d+:\d\d  \[\d+/36\] torch-2.11.0_\S+ threads: failed in", finished.stderr, re.MULTILINE)
    assert "\x1b" not in finished.stdout + finished.stderr, "control codes where no terminal is"
    document = json.loads((world.folder / "document.json").read_text())
    assert {cell["id"]: cell["verdict"]["text"] for cell in document["cells"]} == ANSWERS
    _every_trial_can_be_traced(world, document)

    # A second run: nothing is measured, and with the index gone nothing can be resolved or fetched.
    world.index.stop()
    asked, before = len(world.index.requests), world.trials(counted=False)
    began = time.monotonic()
    again = world.run("matrix", "matrix.yaml", "--fail-on", "race", "--format", "github", "-o", "table.md")
    seconds = time.monotonic() - began
    print(f"second run of a finished matrix: {seconds:.2f} s")
    assert seconds < 5
    assert again.returncode == 1, "--fail-on race"
    assert again.stderr == ""
    assert again.stdout.startswith("| torch") and again.stdout == (world.folder / "table.md").read_text()
    assert world.trials(counted=False) == before and len(world.index.requests) == asked
    assert world.document("matrix.yaml")["cells"] == document["cells"]
    _show_explains(world, document)


def _the_table_says_it(text: str) -> None:
    rows = {tuple(line.split()[:2]): line for line in text.splitlines() if re.match(r"2\.\d+", line)}
    assert len(rows) == len(ANSWERS)
    for name, answer in ANSWERS.items():
        torch, transformers = re.findall(r"-([\d.]+)", name)
        assert answer in rows[torch, transformers]
    assert " 40-100 % " in rows["2.11.0", "4.52.4"] and "0/4" in rows["2.11.0", "4.52.4"]
    assert "<53 %" in rows["2.14.1", "4.52.4"] and "k " in rows["2.14.1", "4.52.4"]
    notes = " ".join(text.split())
    assert "RuntimeError: tracing flag was set (torch.fx)" in notes
    assert "build failed: Failed to download `torch==2.10.0`" in notes
    assert "import failed: importing torch took longer than 3 s (limits: import_time)" in notes
    assert "import failed: ImportError: libnothing.so" in notes
    assert "no such version: Because there is no version of torch==2.13.0" in notes
    assert text.splitlines()[-1].startswith("No cell can be recommended yet: that takes 59 clean trials")


def _every_trial_can_be_traced(world: World, document: dict[str, object]) -> None:
    stored = {trial[0]: trial for trial in world.trials()}
    listed = {trial["id"]: (cell["key"], trial) for cell in document["cells"] for trial in cell["trials"]}  # type: ignore[attr-defined]
    assert listed.keys() == stored.keys() and len(listed) == 3 * 12
    for name, (key, trial) in listed.items():
        assert stored[name] == (name, key, trial["side"], trial["block"], trial["outcome"])


def _show_explains(world: World, document: dict[str, object]) -> None:
    cells = {cell["id"]: cell for cell in document["cells"]}  # type: ignore[attr-defined]
    race = cells["torch-2.11.0_transformers-4.52.4"]
    shown = world.run("show", race["show"]).stdout
    assert shown.startswith("torch-2.11.0_transformers-4.52.4  (cell") and "RACE 4/4: 4 of 4 threaded" in shown
    assert all(trial["id"] in shown for trial in race["trials"]) and "torch==2.11.0\n" in shown
    assert shown == world.run("show", race["id"]).stdout
    trial = next(trial for trial in race["trials"] if trial["outcome"] == "failed")
    told = world.run("show", trial["id"]).stdout
    assert f"Trial {trial['id']}: threads failed, exit status 1" in told
    for evidence in ("TORCHINDUCTOR_CACHE_DIR", "tracing flag was set", "seed", "torch==2.11.0"):
        assert evidence in told
    address = race["environment"]["address"]
    assert f"Environment {address}" in world.run("show", address[:10]).stdout
    several = world.run("show", "t")
    assert several.returncode == 2 and "things begin with 't'" in several.stderr and " more\n" in several.stderr
    failed = world.run("show", "torch-2.12.0_transformers-4.52.4").stdout
    assert "IMPORT-FAILED: import failed: importing torch took longer" in failed


def test_a_dry_run_builds_nothing_and_measures_nothing(world: World) -> None:
    furnish(world)
    finished = world.run("matrix", "matrix.yaml", "--dry-run")
    assert finished.returncode == 0
    assert re.search(r"torch-2\.14\.1_transformers-5\.8\.1 +to build +2 +\d \wB +12\n", finished.stdout)
    assert re.search(r"torch-2\.13\.0_transformers-4\.52\.4 +UNRESOLVABLE: no such version +0\n", finished.stdout)
    assert "7 cells, 6 environments to build, at most 72 trials to run" in finished.stdout
    assert "no time is known yet" in finished.stdout
    assert not world.trials() and not (world.store / "environments").exists()
    fetched = {path.rpartition("/")[2] for _, path in world.index.requests if path.endswith(".whl")}
    # An archive whose metadata the index cannot tell is looked into.
    assert fetched <= {"torch-2.10.0-py3-none-any.whl"}


def test_some_cells_and_then_all_anew(world: World) -> None:
    furnish(world)
    args = ("matrix.yaml", "--cell", "torch-2.14.1*", "--trials", "1")
    (full, dense) = world.document(*args)["cells"]
    assert [cell["verdict"]["text"] for cell in (full, dense)] == ["FULL", "DENSE 31 %"]
    first = world.trials()
    assert len(first) == 6
    # More trials of the same cells: those that are there count. Another order of the command is the same matrix.
    assert len(world.document(*args[:3], "--trials", "2")["cells"][0]["trials"]) == 6
    assert world.trials()[:6] == first and len(world.trials()) == 12
    fresh = world.document(*args, "--fresh")["cells"]
    assert not {trial["id"] for cell in fresh for trial in cell["trials"]} & {trial[0] for trial in first}
    assert len(world.trials()) == 6, "what was measured before counts no more"
    assert f"Trial {first[0][0]}: " in world.run("show", first[0][0]).stdout, "and is kept"


def test_a_report_that_cannot_be_written_is_refused_first(world: World) -> None:
    furnish(world)
    for option in ("--output", "--json"):
        finished = world.run("matrix", "matrix.yaml", option, "nowhere/report")
        assert finished.returncode == 2
        assert f"{option}: nowhere/report: there is no folder nowhere" in finished.stderr
    assert not world.store.exists()


def test_a_reader_that_goes_away_changes_no_exit_code(world: World) -> None:
    furnish(world)
    process = world.start("matrix", "matrix.yaml", "--cell", "torch-2.13*")
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    complaints = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) == 0 and "Traceback" not in complaints and "Exception" not in complaints
