"""What continuous integration gets of a matrix and of a gate: JUnit XML, and on GitHub annotations and a summary."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.report.test_junit import checked
from tests.support.bisecting import Suspects
from tests.support.racing import World
from tests.support.schemas import matching

BODY = "axes: {torch: [2.11.0, 2.14.1, 2.15.0]}\nrequirements: [transformers]\ntrials: 4\ncontrols: 4\nsolo: 0\n"


@pytest.fixture
def racing(world: World) -> World:
    world.torch("2.11.0", race=1.0)
    world.torch("2.14.1")
    world.transformers("5.8.1")
    world.matrix(BODY)
    return world


def on_github(world: World, *args: str, summary: str = "summary.md") -> subprocess.CompletedProcess[str]:
    variables = {"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(world.folder), "GITHUB_STEP_SUMMARY": summary}
    return world.run(*args, variables=variables)


def said(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The workflow commands on standard error, up to their message."""
    return [line.rpartition("::")[0] for line in done.stderr.splitlines() if line.startswith("::")]


def test_a_matrix(racing: World) -> None:
    summary = racing.folder / "summary.md"
    summary.write_text("from a step before\n")
    done = on_github(racing, "matrix", "matrix.yaml", "--fail-on", "race", "--junit", "out.xml", "--json", "-")
    assert done.returncode == 1, done.stderr
    matching("matrix", json.loads(done.stdout))
    assert said(done) == [
        "::error file=matrix.yaml,title=matrix tiny%3A torch-2.11.0",
        "::warning file=matrix.yaml,title=matrix tiny%3A torch-2.15.0",
    ]
    text = summary.read_text()
    assert text.startswith("from a step before\n## bisect-env matrix tiny\n\n| torch") and "RACE 4/4" in text
    cases = checked((racing.folder / "out.xml").read_text()).findall(".//testcase")
    assert [[child.tag for child in case] for case in cases] == [["failure"], ["system-out"], ["skipped"]]
    # Elsewhere the same command says nothing to GitHub, whatever else is set.
    again = racing.run("matrix", "matrix.yaml", variables={"GITHUB_STEP_SUMMARY": "summary.md"})
    assert again.returncode == 0 and again.stderr == "" and "::" not in again.stdout and summary.read_text() == text


def test_a_summary_that_cannot_be_written_changes_no_exit_code(racing: World) -> None:
    done = on_github(racing, "matrix", "matrix.yaml", "--cell", "torch-2.14.1", summary="nowhere/summary.md")
    assert done.returncode == 0 and "GITHUB_STEP_SUMMARY: nowhere/summary.md cannot be written" in done.stderr
    refused = racing.run("matrix", "matrix.yaml", "--json", "out", "--junit", "out")
    assert refused.returncode == 2 and "--json and --junit: out for both" in refused.stderr


@pytest.fixture
def suspects(world: World) -> Suspects:
    found = Suspects(world)
    found.offer("alpha", {"1.0": 0.0, "1.1": 0.0, "1.2": 1.0})
    found.freeze("now.txt", alpha="1.0")
    return found


def gate(suspects: Suspects, change: Path) -> subprocess.CompletedProcess[str]:
    asked = ("gate", "--baseline", "now.txt", "--requirements", change.name, "--max-race-rate", "0.4")
    files = ("--junit", "out.xml", "--json", "out.json", "--index", suspects.world.index.url)
    return on_github(suspects.world, *asked, *files, "--", *suspects.command("alpha"))


def test_a_gate_that_fails(suspects: Suspects) -> None:
    done = gate(suspects, suspects.freeze("new.txt", alpha="1.2"))
    assert done.returncode == 1, done.stderr
    folder = suspects.world.folder
    found = matching("gate", json.loads((folder / "out.json").read_text()))
    assert said(done)[0] == "::error file=new.txt,title=gate%3A races"
    assert "## bisect-env gate" in (folder / "summary.md").read_text() and "FAIL on races" in done.stdout
    suite = checked((folder / "out.xml").read_text())
    cases = {case.attrib["name"]: case for case in suite.findall(".//testcase")}
    tags = {"pass": "system-out", "fail": "failure", "inconclusive": "error", "not asked": "skipped"}
    assert {name: case[0].tag for name, case in cases.items()} == {
        line["question"]: tags[line["decision"]] for line in found["lines"]
    }
    evidence = cases["races"][0].text or ""
    assert "tracing flag was set" in evidence and "candidate: " in evidence


def test_a_gate_that_passes(suspects: Suspects) -> None:
    done = gate(suspects, suspects.freeze("new.txt", alpha="1.1"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert not any(line.startswith(("::error", "::warning")) for line in said(done))
    suite = checked((suspects.world.folder / "out.xml").read_text()).find("testsuite")
    assert suite is not None and (suite.attrib["failures"], suite.attrib["errors"]) == ("0", "0")
