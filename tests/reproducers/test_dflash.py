"""The dflash script as the tool and a reader without torch see it."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bisect_env.matrix.cells import ReproducerChoice
from bisect_env.matrix.options import read_options
from bisect_env.matrix.shipped import reproducers, reproducers_folder
from bisect_env.trials.reproducers import prepare

SCRIPT = reproducers_folder() / "dflash.py"
MODULES = sorted(path.name for path in reproducers_folder().glob("dflash_*.py"))


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-B", str(SCRIPT), *arguments]
    environment = {**os.environ, **variables}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)


def test_help_names_every_option_and_needs_no_torch() -> None:
    done = run("--help")
    assert done.returncode == 0
    assert all("--" + name.replace("_", "-") in done.stdout for name in read_options(SCRIPT))


def test_every_default_is_one_of_its_choices() -> None:
    options = read_options(SCRIPT)
    assert {option.value(str(option.default)) == option.default for option in options.values()} == {True}
    assert {"threads", "pattern", "attention", "mitigation", "checkpointing", "device"} <= options.keys()


def test_only_the_script_is_a_reproducer() -> None:
    assert "dflash" in reproducers()
    assert not {Path(name).stem for name in MODULES} & reproducers().keys()


def test_without_torch_the_import_failure_is_reported(tmp_path: Path) -> None:
    condition, events = tmp_path / "condition.json", tmp_path / "events"
    condition.write_text(json.dumps({"side": "threads", "seed": 1, "device": "cpu", "cache": "cold"}))
    (tmp_path / "torch.py").write_text("raise ImportError('no torch in the tests')")
    done = run(PYTHONPATH=str(tmp_path), BISECT_ENV_CONDITION=str(condition), BISECT_ENV_EVENTS=str(events))
    told = [json.loads(line) for line in events.read_text().splitlines()]
    assert done.returncode == 1
    assert [event["event"] for event in told] == ["start", "import_failed"]
    assert told[1]["message"] == "no torch in the tests"


@pytest.mark.parametrize("name", ["protocol.py", *MODULES])
def test_the_content_hash_covers_each_module(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in reproducers_folder().glob("*.py"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr("bisect_env.matrix.shipped.reproducers_folder", lambda: tmp_path)
    before = prepare(ReproducerChoice("dflash")).content_hash
    (tmp_path / name).write_text((tmp_path / name).read_text() + "\n# changed\n")
    assert prepare(ReproducerChoice("dflash")).content_hash != before


@pytest.mark.parametrize("name", ["dflash.py", *MODULES])
def test_only_torch_transformers_and_the_standard_library_are_imported(name: str) -> None:
    tree = ast.parse((reproducers_folder() / name).read_text())
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    imported |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    beside = {path.stem for path in reproducers_folder().glob("*.py")}
    allowed = {"torch", "transformers", *beside, *sys.stdlib_module_names}
    assert {module.partition(".")[0] for module in imported} <= allowed
