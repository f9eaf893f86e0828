from __future__ import annotations

import ast
import subprocess
import sys

import pytest
from condition import checked

from bisect_env.matrix.options import read_options
from tests.reproducers.conftest import REPRODUCERS

SCRIPT = REPRODUCERS / "compile_race.py"


def raw_options() -> dict[str, dict[str, object]]:
    for node in ast.parse(SCRIPT.read_text()).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "OPTIONS":
            assert node.value is not None
            options: dict[str, dict[str, object]] = ast.literal_eval(node.value)
            return options
    raise AssertionError("no OPTIONS")


def test_its_options_are_read_without_running_it_and_its_defaults_are_allowed() -> None:
    options = read_options(SCRIPT)
    condition = checked(raw_options(), {})
    assert set(options) == {"threads", "pattern", "backend", "device", "functions", "calls"}
    assert {name: option.default for name, option in options.items()}.items() <= condition.items()


def test_help_needs_no_torch() -> None:
    without_torch = (
        "import runpy, sys; sys.modules['torch'] = None; runpy.run_path(sys.argv.pop(1), run_name='__main__')"
    )
    words = [sys.executable, "-c", without_torch]
    done = subprocess.run([*words, str(SCRIPT), "--help"], capture_output=True, text=True, timeout=30, cwd=REPRODUCERS)
    assert done.returncode == 0, done.stderr
    for name in read_options(SCRIPT):
        assert f"--{name}" in done.stdout
    assert "flex-choice" in done.stdout


@pytest.mark.parametrize("arguments", [["--threads", "1"], ["--pattern", "cold"], ["--calls", "0"]])
def test_a_wrong_option_ends_with_usage_before_torch_is_imported(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 2
    assert arguments[0].lstrip("-") in done.stderr
