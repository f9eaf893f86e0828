"""Small reproducers of the standard library alone, and how a test runs one."""

from __future__ import annotations

import sys
import textwrap
import threading
from dataclasses import replace
from pathlib import Path

from bisect_env.matrix.cells import Condition, Limits
from bisect_env.trials import runner
from bisect_env.trials.records import Reproducer, Side, TrialRecord, TrialSpec

PROTOCOL = """\
import json, os, sys, threading, time

def say(event, **words):
    with open(os.environ["BISECT_ENV_EVENTS"], "a") as file:
        file.write(json.dumps({"event": event, "t": time.time(), **words}) + "\\n")

say("start", pid=os.getpid())
"""
READY = PROTOCOL + "say('ready', versions={'torch': '2.11.0+cu130'}, devices=['cpu'])\n"


def spec_of(folder: Path, script: str, protocol: bool = True, **changes: object) -> TrialSpec:
    """A trial of ``script`` below ``folder``. A hang shows within a second."""
    path = folder / "reproducer.py"
    path.write_text(script)
    spec = TrialSpec(
        id=f"trial-{folder.name}",
        environment="environment",
        python=Path(sys.executable),
        pycache=folder / "pycache",
        reproducer=Reproducer("test", ("python", str(path)), (), "hash", protocol),
        condition=Condition.of({"threads": 2}),
        side=Side.THREADS,
        seed=7,
        folder=folder / "trial",
        limits=Limits(trial=30.0, import_time=20.0),
        silence=0.6,
    )
    return replace(spec, **changes)  # type: ignore[arg-type]


def run_script(folder: Path, body: str, start: str = READY, protocol: bool = True, **changes: object) -> TrialRecord:
    """Run ``start`` and ``body`` as a trial."""
    spec = spec_of(folder, start + textwrap.dedent(body), protocol, **changes)
    return runner.run(spec, threading.Event())


def run_command(folder: Path, body: str, **changes: object) -> TrialRecord:
    """Run ``body`` as a user's command without the protocol."""
    return run_script(folder, body, start="", protocol=False, **changes)
