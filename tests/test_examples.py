"""The examples: what they call exists, and the scripts do what they say in a world of tiny wheels."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from bisect_env.errors import ExitCode
from tests.support.bisecting import Suspects
from tests.support.racing import World

FOLDER = Path(__file__).parents[1] / "examples"
WORKFLOW = FOLDER / "github-gate.yml"
SCRIPTS = sorted(FOLDER.glob("*.sh"))
BIN = Path(sys.executable).parent


def workflow() -> dict[Any, Any]:
    return dict(yaml.safe_load(WORKFLOW.read_text()))


def steps() -> list[dict[str, Any]]:
    return list(workflow()["jobs"]["gate"]["steps"])


def step(name: str) -> dict[str, Any]:
    [found] = [each for each in steps() if each.get("name") == name]
    return found


def test_the_workflow_is_one_by_githubs_own_schema() -> None:
    # check-jsonschema carries the schema: no network.
    checked = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", str(WORKFLOW)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_workflow_needs_python_and_pip_alone_and_no_rights() -> None:
    found = workflow()
    assert found["permissions"] == {"contents": "read"}
    assert found[True]["pull_request"]["paths"] == ["requirements.txt"], "YAML reads the key `on` as true"
    used = [each["uses"].partition("@")[0] for each in steps() if "uses" in each]
    assert used == ["actions/checkout", "actions/setup-python", "actions/upload-artifact"]
    assert step("Install")["run"] == 'python3 -m pip install "$BISECT_ENV"'
    assert step("Keep the reports")["if"] == "always()"
    # What a pull request can choose must reach a script as a variable, never as part of its text.
    assert not any("${{" in each.get("run", "") for each in steps())


@pytest.mark.parametrize("shell", ["bash", "sh"])
def test_the_scripts_can_be_parsed(shell: str) -> None:
    texts = [path.read_text() for path in SCRIPTS] + [each["run"] for each in steps() if "run" in each]
    assert len(texts) == 4
    for text in texts:
        parsed = subprocess.run([shell, "-n"], input=text, capture_output=True, text=True, check=False)
        assert parsed.returncode == 0, parsed.stderr
    assert all(os.access(path, os.X_OK) for path in SCRIPTS)


def test_the_options_that_they_use_exist() -> None:
    told = subprocess.run(
        [sys.executable, "-m", "bisect_env", "gate", "--help"], capture_output=True, text=True, check=True
    )
    known = set(re.findall(r"--[a-z][\w-]+", told.stdout))
    texts = [path.read_text() for path in SCRIPTS] + [step("Gate")["run"], "gate " + workflow()["env"]["GATE_OPTIONS"]]
    used = set()
    for text in texts:
        for call in re.findall(r"(?<![\w-])gate (?:.*\\\n)*.*", re.sub(r"^ *#.*", "", text, flags=re.MULTILINE)):
            used |= set(re.findall(r"(?<![\w-])--[a-z][\w-]+", call))
    assert {"--baseline", "--candidate", "--requirements", "--junit", "--reproducer", "--budget"} <= used <= known


def test_the_hook_is_called_as_pre_commit_would() -> None:
    [repo] = yaml.safe_load((FOLDER / "pre-commit-config.yaml").read_text())["repos"]
    [hook] = repo["hooks"]
    assert repo["repo"] == "local" and hook["language"] == "script" and hook["stages"] == ["pre-push"]
    assert (FOLDER / Path(hook["entry"]).name).is_file()
    for name, wanted in {"requirements.txt": True, "gpu/requirements-dev.txt": True, "notes.txt": False}.items():
        assert bool(re.search(hook["files"], name)) is wanted


@pytest.fixture
def repository(world: World) -> Suspects:
    """A repository whose requirements.txt has alpha 1.0; 1.1 is as good, and 1.2 always fails."""
    suspects = Suspects(world)
    suspects.offer("alpha", {"1.0": 0.0, "1.1": 0.0, "1.2": 1.0})
    suspects.freeze("requirements.txt", alpha="1.0")
    suspects.command("alpha")
    for command in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-q", "-m", "as it is")):
        named = ("-c", "user.name=someone", "-c", "user.email=someone@example.org")
        subprocess.run(["git", *named, *command], cwd=world.folder, check=True)
    return suspects


def run(suspects: Suspects, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A command that finds this bisect-env, and whose gates run the world's own trials."""
    world = suspects.world
    options = f"--max-race-rate 0.4 --index {world.index.url} -- python draw.py alpha"
    own = {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "UV_CACHE_DIR": str(world.uv_cache)}
    return subprocess.run(
        command,
        cwd=world.folder,
        env={**os.environ, **own, "GATE_OPTIONS": options, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_workflows_step_gates_the_change(repository: Suspects) -> None:
    folder = repository.world.folder
    base = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, check=True)

    def gated(version: str) -> subprocess.CompletedProcess[str]:
        repository.freeze("requirements.txt", alpha=version)
        # As the runner calls it: every command that fails ends the script.
        return run(repository, "bash", "-e", "-c", step("Gate")["run"], BASE=base.stdout.strip())

    failed = gated("1.2")
    assert failed.returncode == ExitCode.REGRESSION, failed.stderr
    kept = step("Keep the reports")["with"]["path"]
    assert {path.name for path in folder.glob(kept)} == {"gate.md", "gate.json", "gate.xml", "gate.html"}
    unchanged = gated("1.0")
    assert unchanged.returncode == 0 and "Nothing that trials could show has changed." in unchanged.stdout


def test_the_pre_commit_hook(repository: Suspects) -> None:
    hook = str(FOLDER / "pre-commit-gate.sh")
    nowhere = run(repository, hook, "requirements.txt")
    assert nowhere.returncode == 2 and "there is no revision @{upstream}; set GATE_BASE" in nowhere.stderr
    repository.freeze("requirements-new.txt", alpha="1.2")
    same = run(repository, hook, "requirements.txt", "requirements-new.txt", GATE_BASE="main")
    assert same.returncode == 0, same.stderr
    assert "nothing that trials could show has changed in requirements.txt" in same.stdout
    assert "requirements-new.txt is new" in same.stdout
    repository.freeze("requirements.txt", alpha="1.2")
    stopped = run(repository, hook, "requirements.txt", GATE_BASE="main")
    assert stopped.returncode == ExitCode.REGRESSION and "FAIL on races" in stopped.stdout, stopped.stderr


def test_a_host_is_changed_only_after_a_pass(repository: Suspects) -> None:
    folder = repository.world.folder
    script, change = str(FOLDER / "before-change.sh"), ("sh", "-c", 'echo "$1" >> changed; exit 7', "change")

    def changed(version: str) -> subprocess.CompletedProcess[str]:
        repository.freeze("new.txt", alpha=version)
        return run(repository, script, "requirements.txt", "new.txt", *change, f"alpha {version}")

    refused = changed("1.2")
    assert refused.returncode == ExitCode.REGRESSION, refused.stderr
    assert "not touched, the gate ended with 1: sh -c" in refused.stderr and not (folder / "changed").exists()
    assert (folder / "gate-reports" / "gate.html").is_file()
    passed = changed("1.1")
    assert passed.returncode == 7, "the change's own exit code"
    nothing = changed("1.0")
    assert nothing.returncode == 7 and "nothing changes that trials could show" in nothing.stdout
    assert (folder / "changed").read_text() == "alpha 1.1\nalpha 1.0\n"
    missing = run(repository, script, "nowhere.txt", "new.txt", *change, "never")
    assert missing.returncode == ExitCode.USAGE and "nowhere.txt" in missing.stderr
    assert run(repository, script, "requirements.txt").returncode == ExitCode.USAGE
    assert "never" not in (folder / "changed").read_text()
