"""A world for gates: a tiny distribution that says what becomes of a trial, and a command that reports it all."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.racing import World

SCRIPT = """\
import json, os, pathlib, random, sys, time

condition = json.load(open(os.environ["BISECT_ENV_CONDITION"]))
events = open(os.environ["BISECT_ENV_EVENTS"], "a", buffering=1)


def say(event, **values):
    events.write(json.dumps({"event": event, "t": time.time(), **values}) + "\\n")


say("start", pid=os.getpid())
try:
    import engine
except Exception as error:
    say("import_failed", type=type(error).__name__, message=str(error), traceback="")
    sys.exit(1)
fate, side = engine.FATE, condition["side"]
say("ready", versions={"engine": engine.__version__}, devices=[])
if fate.get("skips"):
    say("note", key="skipped", value="no flex attention here")
    sys.exit(125)
noise = random.Random(f"{condition['seed']} {side} {engine.__version__}")
time.sleep(fate.get("seconds", 0))


def rate():
    return max(1, int(fate["tokens"] * noise.gauss(1, 0.01)))


if side == "rounds":
    turns, index = pathlib.Path(os.environ["BISECT_ENV_TURNS"]), 0
    while True:
        say("waiting", round=index)
        while not ((turns / str(index)).exists() or (turns / "end").exists()):
            time.sleep(0.005)
        if not (turns / str(index)).exists():
            break
        say("round", index=index, tokens=rate(), seconds=0.01)
        index += 1
    say("done")
    sys.exit(0)
if side == "threads" and random.Random(condition["seed"]).random() < fate.get("race", 0):
    say("failure", thread="w1", type="RuntimeError", message="tracing flag was set", module="torch.fx", where="trace:1",
        traceback="RuntimeError: tracing flag was set")
    sys.exit(1)
if "tokens" in fate:
    say("step", thread="w0", tokens=rate(), seconds=0.01, warm=True)
if "peak" in fate:
    say("memory", peak_bytes=fate["peak"])
if "dense" in fate:
    dense = fate["dense"] if side == "threads" else 0
    say("path", thread="w0", calls=100, signs={"math_attention": dense, "library_choice": dense})
if "error" in fate:
    say("numbers", what="output", error=fate["error"], tolerance=0.01)
say("done")
"""
FAST = ("--max-race-rate", "0.4", "--pairs", "8")
"""6 clean trials do, and 5 bad ones of as many are a fail; 8 pairs are the fewest that tell anything of throughput."""
CLEAN_TRIALS, PAIRS = 6, 8


@dataclass(frozen=True)
class Gates:
    """Runs gates in a world."""

    world: World

    def __post_init__(self) -> None:
        (self.world.folder / "trial.py").write_text(SCRIPT)

    def offer(self, version: str, requires: str = "", fails: str = "", **fate: object) -> None:
        """Put a version of ``engine`` on the index: chance to ``race``, ``tokens`` a hundredth of a second, ``peak``
        bytes, ``dense`` calls of a hundred, ``error`` of its numbers, ``seconds`` of a trial, whether it ``skips``.

        Without a figure it is not reported. ``fails``: what its import raises.
        """
        raised = f"raise ImportError({fails!r})\n" if fails else ""
        files = {"engine/__init__.py": f"__version__ = {version!r}\nFATE = {fate!r}\n{raised}"}
        needs = [requires] if requires else []
        self.world.index.add(self.world.wheels.wheel("engine", version, requires=needs, files=files))

    def library(self, name: str, *versions: str) -> None:
        """Put versions of another distribution on the index."""
        for version in versions:
            self.world.index.add(self.world.wheels.wheel(name, version, files={f"{name}/__init__.py": ""}))

    def freeze(self, file: str, **pins: str) -> Path:
        """Write a ``pip freeze``."""
        path = self.world.folder / file
        path.write_text("".join(f"{name}=={version}\n" for name, version in pins.items()))
        return path

    def words(self, *options: str) -> list[str]:
        """The command line of a gate."""
        return ["gate", "--index", self.world.index.url, *FAST, *options, "--", "python", "trial.py"]

    def run(self, *options: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
        """A gate, and its JSON document (empty where there is none)."""
        path = self.world.folder / "out.json"
        path.unlink(missing_ok=True)
        done = self.world.run(*self.words(*options, "--json", "out.json"))
        assert "Traceback" not in done.stderr, done.stderr
        return done, json.loads(path.read_text()) if path.exists() else {}


def answers(document: dict[str, Any]) -> dict[str, str]:
    """The decision of every question."""
    return {line["question"]: line["decision"] for line in document["lines"]}
