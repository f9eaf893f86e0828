"""The real script, under a real torch and the runner: a planted dense worker is found, and nothing where there is none.

Needs an interpreter that has torch, named by BISECT_ENV_TEST_TORCH; no test installs one. Half a minute on two cores.
"""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from bisect_env.matrix.cells import Condition, Limits, ReproducerChoice
from bisect_env.matrix.options import read_options
from bisect_env.matrix.shipped import reproducers_folder
from bisect_env.trials import runner
from bisect_env.trials.records import Outcome, Side, TrialRecord, TrialSpec
from bisect_env.trials.reproducers import prepare
from bisect_env.verdicts.looks import Design
from bisect_env.verdicts.verdict import judge

PYTHON = os.environ.get("BISECT_ENV_TEST_TORCH", "")
needs_torch = pytest.mark.skipif(not PYTHON, reason="BISECT_ENV_TEST_TORCH names no interpreter with torch")

CHOSEN = {"threads": 2, "device": "cpu", "size": "tiny", "backend": "aot_eager", "steps": 6, "mitigation": "warmup"}
"""Warmed up: what other threads' compiles do to the attention path is not the question here."""


def trial(folder: Path, side: Side, planted: str) -> TrialRecord:
    options = read_options(reproducers_folder() / "dflash.py")
    values = {name: option.default for name, option in options.items()} | CHOSEN | {"planted": planted}
    spec = TrialSpec(
        id=f"{side}-{planted}",
        environment="environment",
        python=Path(PYTHON),
        pycache=folder / "pycache",
        reproducer=prepare(ReproducerChoice("dflash")),
        condition=Condition.of({**values, "cache": "cold"}),
        side=side,
        seed=3,
        folder=folder / f"{side}-{planted}",
        limits=Limits(trial=240.0),
        silence=120.0,
    )
    return runner.run(spec, threading.Event())


@needs_torch
def test_a_planted_dense_worker_is_found(tmp_path: Path) -> None:
    planted = trial(tmp_path, Side.THREADS, "dense")
    assert planted.outcome is Outcome.CLEAN, planted.output
    serial = trial(tmp_path, Side.SERIAL, "none")
    assert serial.outcome is Outcome.CLEAN, serial.output
    found = judge([planted, serial], Design(1, 1, solo=0))
    # On a CPU there are neither kernels nor a peak: one sign. w1 is fused until it is warm.
    assert found.text.startswith("DENSE? ")
    shares = {item.thread: item.share for item in found.dense}
    assert shares["w0"] == 0.0
    assert 0.5 < shares["w1"] < 1.0
    assert {item.share for item in found.dense_controls} == {0.0}
    fused = judge([replace(serial, id="again", side=Side.THREADS), serial], Design(1, 1, solo=0))
    assert fused.text == "FULL"
    assert "that attention ran fused rests on one sign only (math_attention)" in fused.marks
