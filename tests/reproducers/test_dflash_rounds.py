"""Whose turn it is to do a timed round."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from dflash_rounds import Turns
from trial_events import Events

from tests.reproducers.conftest import REPRODUCERS

SCRIPT = """
import os
from dflash_rounds import Turns
from trial_events import Events

events = Events(os.environ["BISECT_ENV_EVENTS"])
turns = Turns(events, 2)
index = 0
while turns.begins(index, lambda: False):
    events.emit("round", index=index, tokens=1, seconds=0.0)
    index += 1
events.emit("note", key="cpu", value=sum(os.times()[:2]))
"""


def until(path: Path, lines: int) -> list[dict[str, object]]:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        told = path.read_text().splitlines() if path.exists() else []
        if len(told) >= lines:
            return [json.loads(line) for line in told]
        time.sleep(0.01)
    raise AssertionError(f"no {lines} events")


def test_without_a_folder_rounds_run_back_to_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BISECT_ENV_TURNS", raising=False)
    events = Events()
    turns = Turns(events, 2)
    assert [turns.begins(index, lambda: False) for index in range(3)] == [True, True, False]
    assert events.seen == []


def test_a_process_waits_for_each_turn_and_for_the_end_and_uses_no_cpu_meanwhile(tmp_path: Path) -> None:
    turns, events = tmp_path / "turns", tmp_path / "events"
    turns.mkdir()
    variables = {"BISECT_ENV_TURNS": str(turns), "BISECT_ENV_EVENTS": str(events), "PYTHONPATH": str(REPRODUCERS)}
    process = subprocess.Popen([sys.executable, "-c", SCRIPT], env=variables)
    try:
        assert [event["event"] for event in until(events, 1)] == ["waiting"]
        time.sleep(1.0)
        assert len(until(events, 1)) == 1
        (turns / "0").touch()
        assert [event["event"] for event in until(events, 3)] == ["waiting", "round", "waiting"]
        # More rounds than the option says: the runner decides.
        (turns / "1").touch()
        (turns / "2").touch()
        until(events, 6)
        (turns / "end").touch()
        told = until(events, 8)
        assert [event.get("round", event.get("index")) for event in told[:-1]] == [0, 0, 1, 1, 2, 2, 3]
        assert told[-1]["value"] < 0.5  # type: ignore[operator]  # of which the interpreter's start is most
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()


def test_a_failure_elsewhere_ends_the_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BISECT_ENV_TURNS", str(tmp_path))
    assert Turns(Events(), 8).begins(0, lambda: True) is False
