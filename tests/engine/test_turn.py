"""Whose turn it is in a store: one holder, who is named, and who lets go however it ends."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from bisect_env.engine.turn import Stopped, turn

HOLD = """
import sys, threading
from pathlib import Path
from bisect_env.engine.turn import turn
with turn(Path(sys.argv[1]), "run rfirst of tiny", threading.Event(), print):
    print("mine", flush=True)
    sys.stdin.read()
"""


def test_nobody_to_wait_for(tmp_path: Path) -> None:
    said: list[str] = []
    for _ in range(2):
        with turn(tmp_path, "run r1", threading.Event(), said.append) as waited:
            assert not waited
    assert not said


def test_a_killed_holder_lets_go_and_was_named(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None and holder.stdout.readline() == "mine\n"
    said: list[str] = []

    def tell(text: str) -> None:
        said.append(text)
        holder.kill()

    with turn(tmp_path, "run rsecond of tiny", threading.Event(), tell) as waited:
        assert waited
    holder.communicate()
    (line,) = said
    assert f"waiting for run rfirst of tiny (pid {holder.pid}, since " in line and "--store DIR" in line


def test_a_wait_that_is_stopped(tmp_path: Path) -> None:
    stop = threading.Event()
    with turn(tmp_path, "run r1", stop, print):
        stop.set()
        with pytest.raises(Stopped, match="stopped while waiting for run r1"), turn(tmp_path, "run r2", stop, print):
            raise AssertionError("two holders")
