"""The two commands of a report show each side where they are pasted, whatever the command reads of its trial."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from bisect_env.bisection.closing import own_command, shipped_command
from bisect_env.bisection.records import Answer, Finding
from bisect_env.matrix.cells import Cell, Condition, EnvironmentRequest
from tests.bisection.world import Bisections, Rules

RACE = "tracing flag was set"
SIDES = ({"alpha": "1.0"}, {"alpha": "2.0"})


def failures(found: Finding, folder: Path) -> list[int]:
    """How many of two runs fail on each side, pasted into a shell in a folder that has nothing to do with it."""
    assert found.commands is not None, found.sentence
    counts = []
    for command in found.commands:
        codes = [
            subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, timeout=60, check=False).returncode
            for _ in range(2)
        ]
        counts.append(sum(code != 0 for code in codes))
    return counts


@pytest.fixture
def offered(bisections: Bisections) -> Bisections:
    """Two versions of alpha."""
    bisections.offer("alpha", "1.0", "2.0")
    return bisections


def test_a_version(offered: Bisections, tmp_path: Path) -> None:
    rules: Rules = [{"when": {"alpha": ">=2"}, "rate": 1, "says": RACE}]
    assert failures(offered.found(offered.specification(*SIDES, rules)), tmp_path) == [0, 2]


def test_a_variable_with_blanks_and_quotes(offered: Bisections, tmp_path: Path) -> None:
    value = 'it\'s 100 % "on" $HOME'
    rules: Rules = [{"when": {"OMP_X": value}, "rate": 1, "says": RACE}]
    asked = offered.specification(*SIDES, rules, variables=({"OMP_X": "off"}, {"OMP_X": value}))
    assert failures(offered.found(asked), tmp_path) == [0, 2]


def test_a_warm_cache_is_filled_first(offered: Bisections, tmp_path: Path) -> None:
    rules: Rules = [{"when": {"warm": False}, "rate": 1, "says": RACE}]
    asked = offered.specification(*SIDES, rules, conditions=({"cache": "warm"}, {"cache": "cold"}))
    found = offered.found(asked)
    assert found.answer is Answer.CULPRIT, found.sentence
    assert failures(found, tmp_path) == [0, 2]


def test_what_the_condition_says(offered: Bisections, tmp_path: Path) -> None:
    rules: Rules = [{"when": {"mode": "100% 'odd'"}, "rate": 1, "says": RACE}]
    asked = offered.specification(*SIDES, rules, conditions=({"mode": "even"}, {"mode": "100% 'odd'"}))
    assert failures(offered.found(asked), tmp_path) == [0, 2]


def test_the_seed_is_another_each_second(offered: Bisections, tmp_path: Path) -> None:
    rules: Rules = [{"when": {"alpha": ">=2"}, "rate": 0.5, "says": RACE}]
    found = offered.found(offered.specification(*SIDES, rules))
    assert found.commands is not None, found.sentence
    codes: set[int] = set()
    deadline = time.monotonic() + 30
    while len(codes) < 2 and time.monotonic() < deadline:
        done = subprocess.run(
            ["sh", "-c", found.commands[1]], cwd=tmp_path, capture_output=True, timeout=60, check=False
        )
        codes.add(done.returncode)
        time.sleep(0.3)
    assert codes == {0, 1}


@pytest.mark.parametrize(("cache", "runs"), [("cold", 1), ("warm", 2)])
def test_a_shipped_reproducer_is_warmed_up_by_its_own_option(cache: str, runs: int, tmp_path: Path) -> None:
    script = tmp_path / "shipped.py"
    script.write_text("import os, sys\nprint(os.environ['TORCHINDUCTOR_CACHE_DIR'], *sys.argv[1:])\n")
    cell = Cell("any", (), EnvironmentRequest((), None), Condition.of({"cache": cache, "threads": 3}))
    command = shipped_command(cell, ["python3", str(script)])
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    lines = [line.split(maxsplit=1) for line in done.stdout.splitlines()]
    assert [options for _, options in lines] == ["--threads 3 --side warmup", "--threads 3"][-runs:]
    assert len({folder for folder, _ in lines}) == 1


@pytest.mark.parametrize("name", ["env", "with space"])
def test_a_script_of_the_users_own_finds_the_sides_python(name: str, tmp_path: Path) -> None:
    """It may name Python itself, as trials let it: what is pasted must not take whatever stands on PATH."""
    programs = tmp_path / name / "bin"
    programs.mkdir(parents=True)
    (programs / "python").write_text(f"#!/bin/sh\necho {name}\n")
    script = tmp_path / "script.sh"
    script.write_text("#!/bin/sh\npython -c 'print(1)'\n")
    for path in (programs / "python", script):
        path.chmod(0o755)
    cell = Cell("any", (), EnvironmentRequest((), None), Condition.of({"cache": "cold", "threads": 2}))
    command = own_command(cell, ["./script.sh"], [script], programs)
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == f"{name}\n"
