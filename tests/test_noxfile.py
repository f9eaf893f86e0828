"""Real nox: what it lists, and that exit codes and signals pass through it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from bisect_env.matrix import shipped
from bisect_env.matrix.loading import load
from tests.support.bisecting import Suspects
from tests.support.gating import Gates
from tests.support.index import refusing_url
from tests.support.racing import World

ROOT = Path(__file__).parents[1]


def start(*args: str, world: World | None = None) -> subprocess.Popen[str]:
    """nox in the project's folder, with an index that nobody can reach."""
    nowhere = refusing_url()
    variables = {"UV_DEFAULT_INDEX": nowhere, "UV_INDEX_URL": nowhere, "PIP_INDEX_URL": nowhere, "PIP_NO_INDEX": "1"}
    if world is not None:
        variables |= {"UV_CACHE_DIR": str(world.uv_cache), "BISECT_ENV_STORE": str(world.store)}
    return subprocess.Popen(
        [sys.executable, "-m", "nox", *args],
        cwd=ROOT,
        env={**os.environ, **variables, "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def run(*args: str, world: World | None = None) -> subprocess.CompletedProcess[str]:
    process = start(*args, world=world)
    stdout, stderr = process.communicate(timeout=60)
    return subprocess.CompletedProcess(args, process.returncode, stdout, stderr)


def script_requirements() -> set[str]:
    """The dependencies in the noxfile's block (PEP 723)."""
    text = (ROOT / "noxfile.py").read_text()
    block = re.search(r"^# /// script\n(.*?)^# ///$", text, re.MULTILINE | re.DOTALL)
    assert block is not None
    return set(tomllib.loads(re.sub(r"^# ?", "", block[1], flags=re.MULTILINE))["dependencies"])


def test_the_list_needs_no_network() -> None:
    listed = run("-l")
    assert listed.returncode == 0, listed.stderr
    names = re.findall(r"^[-*] (\S+)", listed.stdout, re.MULTILINE)
    default = "gpu" if "cu1" in listed.stdout else "cpu"
    cells = load(shipped.matrices_folder() / f"{default}.yaml").cells
    others = [
        "bisect",
        "gate",
        "explain",
        "inspect",
        "report",
        "history",
        "show",
        "bundle",
        "unbundle",
        "clean",
        "tests",
    ]
    others += ["torch_tests", "ssh_tests", "slurm_tests", "browser_tests", "lint", "typecheck"]
    assert names == ["matrix", *(f"cell({cell.id})" for cell in cells), *others]
    for cell in cells:
        assert f"cell({cell.id}) [{','.join(cell.tags)}]" in listed.stdout


def test_tests_that_need_a_torch_say_why_they_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BISECT_ENV_TEST_TORCH", raising=False)
    done = run("-s", "torch_tests")
    assert done.returncode == 0, done.stderr
    assert "BISECT_ENV_TEST_TORCH names no interpreter" in done.stderr


def test_tests_that_need_a_browser_say_why_they_are_skipped_or_fail_where_one_is_required(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BISECT_ENV_TEST_BROWSER", "no-such-browser")
    done = run("-s", "browser_tests")
    assert done.returncode == 0, done.stderr
    assert "there is no no-such-browser: install chromium" in done.stderr
    monkeypatch.setenv("BISECT_ENV_REQUIRE_BROWSER", "1")
    required = run("-s", "browser_tests")
    assert required.returncode != 0 and "there is no no-such-browser" in required.stderr


def test_tags_choose_cells() -> None:
    tags = {cell.id: cell.tags for cell in load(shipped.matrices_folder() / "gpu.yaml").cells}
    for name, own in tags.items():
        torch, cuda, transformers = re.findall(r"torch-([\d.]+).*(cu\d+).*transformers-([\d.]+)", name)[0]
        short = [version.rpartition(".")[0] for version in (torch, transformers)]
        assert {f"torch{short[0]}", cuda, f"transformers{short[1]}"} <= set(own)
    (tag, *_) = load(shipped.matrices_folder() / "cpu.yaml").cells[0].tags
    listed = run("-l", "-t", tag)
    chosen = re.findall(r"^\* (\S+)", listed.stdout, re.MULTILINE)
    assert chosen and all(name.startswith("cell(torch-") for name in chosen)


@pytest.fixture
def racing(world: World) -> World:
    world.torch("2.11.0", race=1.0)
    world.transformers("5.8.1")
    world.matrix("axes: {torch: [2.11.0], transformers: [5.8.1]}\ntrials: 4\ncontrols: 4\n")
    return world


def test_exit_codes_survive(racing: World) -> None:
    (racing.folder / "bad.yaml").write_text("axis: {}\n")
    refused = run("-s", "matrix", "--", str(racing.folder / "bad.yaml"), world=racing)
    assert refused.returncode == 2 and "unknown key 'axis'" in refused.stderr
    assert not racing.store.exists()
    path = str(racing.folder / "matrix.yaml")
    completed = run("-s", "matrix", "--", path, world=racing)
    assert completed.returncode == 0 and "RACE 4/4" in completed.stdout, completed.stderr
    gate = run("-s", "matrix", "--", path, "--fail-on", "race,hang", world=racing)
    assert gate.returncode == 1 and "RACE 4/4" in gate.stdout


def test_exit_codes_of_a_bisection_survive_and_its_command_arrives(world: World) -> None:
    suspects = Suspects(world)
    suspects.offer("alpha", {"1.0": 0.0, "1.1": 0.0})
    good, bad = (str(suspects.freeze(f"{version}.txt", alpha=version)) for version in ("1.0", "1.1"))
    suspects.command()
    command = ("python", str(world.folder / "draw.py"), "alpha")
    sides = ("--good", good, "--bad", bad, "--index", world.index.url)
    refused = run("-s", "bisect", "--", *sides, world=world)
    assert refused.returncode == 2 and "--reproducer" in refused.stderr
    unreproduced = run("-s", "bisect", "--", *sides, "--", *command, world=world)
    assert unreproduced.returncode == 1 and "bad end does not fail" in unreproduced.stdout, unreproduced.stderr
    nothing = run("-s", "bisect", "--", "--good", good, "--bad", good, "--offline", "--", *command, world=world)
    assert nothing.returncode == 4, nothing.stderr


def test_exit_codes_of_a_gate_survive(world: World) -> None:
    gates = Gates(world)
    gates.offer("1.0")
    gates.offer("1.1", race=1.0)
    now, new = (str(gates.freeze(f"{version}.txt", engine=version)) for version in ("1.0", "1.1"))
    options = ("--index", world.index.url, "--max-race-rate", "0.4", "--", "python", str(world.folder / "trial.py"))
    failed = run("-s", "gate", "--", "--baseline", now, "--candidate", new, *options, world=world)
    assert failed.returncode == 1 and "FAIL on races" in failed.stdout, failed.stderr
    nothing = run("-s", "gate", "--", "--baseline", now, "--candidate", now, *options, world=world)
    assert nothing.returncode == 4, nothing.stderr


@pytest.mark.parametrize("way", ["ctrl-c", "job ended"])
def test_signals_end_the_run_and_it_prints_what_it_has(racing: World, way: str) -> None:
    racing.torch("2.11.0", race=1.0, seconds=0.2)
    process = start("-s", "matrix", "--", str(racing.folder / "matrix.yaml"), world=racing)
    while len(racing.trials()) < 2:
        assert process.poll() is None
    if way == "ctrl-c":
        os.killpg(process.pid, signal.SIGINT)
    else:
        process.terminate()
    stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == 130, stderr
    assert "torch" in stdout and "Interrupted. What was measured is kept" in stderr
    assert not racing.processes()


def test_the_scripts_dependencies_are_the_packages() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = {*project["project"]["dependencies"], *project["project"]["optional-dependencies"]["nox"]}
    assert script_requirements() == wanted


def test_the_sessions_groups_exist() -> None:
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    used = re.findall(r'load_toml\("pyproject.toml"\), "(\w+)"', (ROOT / "noxfile.py").read_text())
    assert set(used) == set(groups) == {"test", "browser", "lint", "typecheck"}
    names = {group: {Requirement(line).name for line in lines} for group, lines in groups.items()}
    assert {"pytest", "pytest-xdist", "hypothesis", "nox"} <= names["test"]
    assert {"ruff", "import-linter"} <= names["lint"] and "mypy" in names["typecheck"]
