"""Ctrl-C before a command has begun and after it has ended: exit code 130, and no more than a line is said."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

FIRST = "bisect_env.cli.interrupts"
MARK = "import time:"


def start(folder: Path, *args: str, ignoring: bool = False) -> subprocess.Popen[str]:
    """The command line, which tells on standard error each module that it has imported."""

    def ignore() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    return subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", "bisect_env", *args],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=ignore if ignoring else None,
    )


def imported(folder: Path, *args: str) -> list[str]:
    """Modules that are imported once ours has begun, in their order."""
    _, told = start(folder, *args).communicate(timeout=60)
    names = [line.rpartition("|")[2].strip() for line in told.splitlines() if line.startswith(MARK)]
    return names[names.index(FIRST) + 1 :]


def interrupted(process: subprocess.Popen[str], module: str) -> tuple[int, str, list[str]]:
    """Send Ctrl-C as soon as the module was imported: exit code, output, and what else was said."""
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith(MARK) and line.rpartition("|")[2].strip() == module:
            break
    process.send_signal(signal.SIGINT)
    out, told = process.communicate(timeout=60)
    return process.returncode, out, [line for line in told.splitlines() if not line.startswith(MARK)]


@pytest.mark.parametrize(
    "args", [("--version",), *((name, "--help") for name in ("matrix", "bisect", "inspect", "show"))]
)
def test_interrupted_during_imports(tmp_path: Path, args: tuple[str, ...]) -> None:
    modules = imported(tmp_path, *args)
    assert len(modules) > 20
    for module in modules[: -len(modules) // 6 : max(1, len(modules) // 6)]:
        assert interrupted(start(tmp_path, *args), module) == (130, "", []), module


def test_whoever_ignores_interrupts_is_not_interrupted(tmp_path: Path) -> None:
    code, out, _ = interrupted(start(tmp_path, "--version", ignoring=True), "click")
    assert code == 0 and "version" in out


LINGERS = """\
import atexit, sys, time
from bisect_env.__main__ import main

def linger():
    for _ in range(600):  # Not one long sleep: Python answers a signal that comes just before it only after it.
        time.sleep(0.05)

atexit.register(linger)
sys.argv[1:] = ["--version"]
main()
"""


def lingering(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", LINGERS], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_interrupted_when_all_is_done(tmp_path: Path) -> None:
    with lingering(tmp_path) as process:
        assert process.stdout is not None and "version" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=20)
    assert (process.returncode, told) == (130, "")


@pytest.mark.parametrize("late", [0.0, 0.0002, 0.001, 0.005, 0.02])
def test_interrupted_on_the_way_out(tmp_path: Path, late: float) -> None:
    """Wherever the way out is by then: between the command's last line and Python's own end."""
    with lingering(tmp_path) as process:
        assert process.stdout is not None and process.stdout.readline()
        time.sleep(late)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=20)
    assert (process.returncode, told) == (130, "")


def test_the_installed_command_begins_there_too() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert project["project"]["scripts"]["bisect-env"] == "bisect_env.__main__:main"
