"""The real dflash script under a real torch on a CPU: repeats, rounds in turn, topologies, mitigations.

Needs an interpreter that has torch, named by BISECT_ENV_TEST_TORCH; no test installs one. A minute or two on two cores.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.reproducers.conftest import REPRODUCERS, under_the_tool

PYTHON = os.environ.get("BISECT_ENV_TEST_TORCH", "")
pytestmark = pytest.mark.skipif(not PYTHON, reason="BISECT_ENV_TEST_TORCH names no interpreter with torch")

SMALL = {"threads": 2, "device": "cpu", "backend": "aot_eager", "steps": 3, "cache": "cold", "seed": 5}


def dflash(folder: Path, **condition: Any) -> tuple[int, list[dict[str, Any]], str]:
    folder.mkdir(parents=True)
    environment = {**os.environ, **under_the_tool(folder, {**SMALL, **condition}), "TMPDIR": str(folder)}
    environment["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "inductor")
    command = [PYTHON, "-B", str(REPRODUCERS / "dflash.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)
    told = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    return done.returncode, told, done.stderr


def of(events: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [event for event in events if event["event"] == name]


def compiles(events: list[dict[str, Any]]) -> list[int]:
    """Compiles in each repeat."""
    counts: list[int] = []
    for event in events:
        if event["event"] == "repeat":
            counts.append(0)
        elif event["event"] == "window" and event["phase"] == "begin":
            counts[-1] += 1
    return counts


def losses(events: list[dict[str, Any]]) -> dict[str, list[float]]:
    return {event["thread"]: event["values"] for event in of(events, "losses")}


def test_each_repeat_compiles_anew_and_one_alone_does_what_it_did_among_others(tmp_path: Path) -> None:
    chosen = {"pattern": "mixed", "side": "serial", "repeats": 3}
    status, events, errors = dflash(tmp_path / "all", **chosen)
    assert status == 0, errors
    assert [(event["index"], event["resets"]) for event in of(events, "repeat")] == [(0, 0), (1, 1), (2, 2)]
    counts = compiles(events)
    # Forward only on a CPU: two compiles of the attention, and each fresh function forward and backward.
    assert counts[0] == counts[1] == counts[2] >= 4
    status, alone, errors = dflash(tmp_path / "one", **chosen, only_repeat=2)
    assert status == 0, errors
    assert [(event["index"], event["resets"]) for event in of(alone, "repeat")] == [(2, 0)]
    assert losses(alone) == {name: values for name, values in losses(events).items() if name.endswith(" repeat 2")}
    assert losses(alone).keys() == {"w0 repeat 2", "w1 repeat 2"}


def test_a_warm_cache_is_as_warm_in_every_repeat(tmp_path: Path) -> None:
    kept = tmp_path / "one" / "inductor"
    kept.mkdir(parents=True)
    code = (
        "import os, sys; sys.path.insert(0, sys.argv[1]); import protocol, dflash_repeats as r\n"
        "state = r.CompiledState(range(2)); state.reset()\n"
        "folder = os.environ['TORCHINDUCTOR_CACHE_DIR']\n"
        "print(folder != sys.argv[2], open(folder + '/entry').read(), os.listdir(os.environ['TRITON_CACHE_DIR']))\n"
    )
    (kept / "entry").write_text("kept")
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(kept), "TMPDIR": str(tmp_path)}
    environment.pop("TRITON_CACHE_DIR", None)
    command = [PYTHON, "-B", "-c", code, str(REPRODUCERS), str(kept)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.split("\n")[0] == "True kept []", done.stderr


def test_rounds_are_timed_and_what_they_reach_is_told(tmp_path: Path) -> None:
    status, events, errors = dflash(tmp_path / "r", side="rounds", pattern="mixed", rounds=2, mitigation="warmup")
    assert status == 0, errors
    rounds = of(events, "round")
    assert [event["index"] for event in rounds] == [0, 1]
    assert {event["tokens"] for event in rounds} == {2 * 3 * 2 * 128}  # threads x steps x batch x length
    told = {event["what"]: event for event in of(events, "utilisation")}
    assert told.keys() == {"attention", "step"}
    for event in told.values():
        assert 0 < event["operations"] / event["seconds"] / event["ceiling"] < 1
    assert told["step"]["seconds"] in {event["seconds"] for event in rounds}


@pytest.mark.parametrize("side", ["threads", "serial"])
def test_the_incidents_targets_feed_the_drafters(tmp_path: Path, side: str) -> None:
    # Warmed up, so that no race of this torch decides the test.
    chosen = {"topology": "incident", "mitigation": "warmup", "pattern": "barrier"}
    status, events, errors = dflash(tmp_path / side, side=side, **chosen)
    assert status == 0, errors
    status, other, errors = dflash(tmp_path / "solo", side="solo", **chosen)
    assert status == 0, errors
    assert losses(other)["w0"] == pytest.approx(losses(events)["w0"], rel=1e-4)
    assert len(losses(events)) == 2


@pytest.mark.parametrize("topology", ["drafters", "incident"])
def test_the_largest_seed_that_a_matrix_gives(tmp_path: Path, topology: str) -> None:
    chosen = {"side": "serial", "pattern": "mixed", "repeats": 2, "seed": 2**31 - 1, "topology": topology}
    status, events, errors = dflash(tmp_path / topology, **chosen)
    assert status == 0, errors
    assert of(events, "repeat")[-1]["resets"] == 1


def test_a_mitigation_of_the_configuration_holds_in_each_thread(tmp_path: Path) -> None:
    status, events, errors = dflash(tmp_path / "m", side="serial", mitigation="per-thread-config", recompile_limit=21)
    assert status == 0, errors
    told = {event["key"]: event["value"] for event in of(events, "note")}
    assert told["config_w0"] == told["config_w1"] == "recompile_limit: 21, in its backward's thread 21"


def test_a_dense_worker_that_is_not_there_cannot_be_planted(tmp_path: Path) -> None:
    status, events, _ = dflash(tmp_path / "g", planted="dense", threads=1)
    assert status == 125
    assert "only one thread" in of(events, "note")[-1]["value"]
