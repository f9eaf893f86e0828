"""A project on the folder that all pretended nodes see, whose reproducer writes down every real run of itself."""

from __future__ import annotations

import json
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.slurm.server import Slurm
from tests.support.racing import SCRIPT, World

WITNESS = """\
import atexit as _atexit, json as _json, os as _os, sys as _sys, time as _time


def _noted(what):
    condition = _json.load(open(_os.environ["BISECT_ENV_CONDITION"]))
    seen = {name: _os.environ.get(name) for name in ("SLURM_JOB_ID", "SLURMD_NODENAME", "SLURM_JOB_GPUS")}
    line = {"what": what, "t": _time.time(), "pid": _os.getpid(), "python": _sys.prefix, **condition, **seen}
    with open(RUNS, "a") as file:
        file.write(_json.dumps(line) + "\\n")


_noted("begin")
_atexit.register(_noted, "end")
while _os.path.exists(HOLD):
    _time.sleep(0.05)
"""
"""Stands before a reproducer: a line when it begins, and one when it ends by itself; waits while a file is there."""
PASSED = "pass_env: [SLURM_JOB_ID, SLURMD_NODENAME, SLURM_JOB_GPUS]\n"


@dataclass(frozen=True)
class Cluster:
    """A world whose matrices run on a real Slurm."""

    world: World
    slurm: Slurm
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def start(self, *args: str) -> subprocess.Popen[str]:
        """Start ``bisect-env matrix matrix.yaml ARGS``; it is killed at the test's end should it still run."""
        self.started.append(self.world.start("matrix", "matrix.yaml", *args))
        return self.started[-1]

    def end(self) -> None:
        for process in self.started:
            if process.returncode is None:
                process.kill()
                process.communicate()

    @property
    def log(self) -> Path:
        return self.world.folder / "runs.jsonl"

    @property
    def hold(self) -> Path:
        """While it is there, no trial comes to its end."""
        return self.world.folder / "hold"

    def matrix(self, body: str, executor: str = "{partition: first, gpus: 1}", name: str = "matrix.yaml") -> Path:
        """A matrix under the protocol; what becomes of a trial stands in the pretended torch."""
        path = self.world.matrix(f"{body}{PASSED}executor: {{slurm: {executor}}}\n", name)
        (self.world.folder / "race.py").write_text(self._noting(SCRIPT))
        return path

    def _noting(self, script: str) -> str:
        return f"RUNS, HOLD = {str(self.log)!r}, {str(self.hold)!r}\n{WITNESS}{script}"

    def runs(self, what: str = "end") -> list[dict[str, Any]]:
        """What the reproducer wrote down, in order; a torn last line is one that is just being written."""
        text = self.log.read_text() if self.log.exists() else ""
        lines = text.splitlines() if text.endswith("\n") or not text else text.splitlines()[:-1]
        return [line for line in map(json.loads, lines) if line["what"] == what]

    def wait_for(self, told: Callable[[], object], what: str, limit: float = 60) -> None:
        self.slurm.wait(lambda: bool(told()), what, limit)

    def everything_once(self, trials: int) -> None:
        """The store holds so many counted trials, none twice, and each of them is a run that came to its end."""
        stored = self.world.trials()
        places = [(cell, side, index) for _, cell, side, index, _ in stored]
        twice = [place for place, count in Counter(places).items() if count > 1]
        assert not twice and len(places) == trials, (twice, len(places))
        ended = Counter(line["side"] for line in self.runs())
        counted = Counter(side for _, _, side, _, outcome in stored if outcome != "hang")
        assert all(ended[side] >= number for side, number in counted.items()), (ended, counted)

    def nothing_left(self) -> None:
        """No job, and no process of this project."""
        assert not self.slurm.jobs()
        deadline = time.monotonic() + 15
        while left := self.world.processes():
            assert time.monotonic() < deadline, left
            time.sleep(0.1)


def verdicts(document: Mapping[str, Any]) -> dict[str, str]:
    """Of a matrix' JSON document: each cell's verdict, as the table words it."""
    return {cell["id"]: cell["verdict"]["text"] for cell in document["cells"]}
