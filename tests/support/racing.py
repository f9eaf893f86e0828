"""A world small enough for tests: pretended torch and transformers wheels, and a reproducer that reads its fate there.

The pretended ``torch`` says in ``FATE`` what happens to a trial, and the pretended ``transformers`` how many calls of
a hundred run unfused. The reproducer is a user's own command that speaks the protocol by hand, so that tests also show
what such a command has to do.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from tests.support.index import Index
from tests.support.schemas import matching
from tests.support.wheels import Wheels

SCRIPT = """\
import json, os, pathlib, random, sys, time

condition = json.load(open(os.environ["BISECT_ENV_CONDITION"]))
events = open(os.environ["BISECT_ENV_EVENTS"], "a", buffering=1)


def say(event, **values):
    events.write(json.dumps({"event": event, "t": time.time(), **values}) + "\\n")


def fail(message):
    say("failure", thread="w1", type="RuntimeError", message=message, module="torch.fx", where="trace:1",
        traceback="RuntimeError: " + message)
    sys.exit(1)


say("start", pid=os.getpid())
try:
    import torch
    import transformers
except Exception as error:
    say("import_failed", type=type(error).__name__, message=str(error), traceback="")
    sys.exit(1)
say("ready", versions={"torch": torch.__version__, "transformers": transformers.__version__}, devices=[])
fate, side = torch.FATE, condition["side"]
draw = random.Random(f"{condition['seed']} {torch.__version__} {transformers.__version__}").random()
entry = pathlib.Path(os.environ["TORCHINDUCTOR_CACHE_DIR"], "entry")
warm = entry.exists()
say("cache", hits=int(warm), misses=int(not warm))
entry.write_text("compiled")
if side == "warmup" and fate.get("warmup_fails"):
    fail("nothing can be compiled")
time.sleep(fate.get("seconds", 0))
if side == "threads" and draw < fate.get("hang", 0):
    time.sleep(600)
if side == "threads" and draw < fate.get("pause", 0):
    time.sleep(1.8)
if side == "threads" and draw < fate.get("race", 0) and condition.get("mitigation", "none") == "none":
    fail("tracing flag was set")
if side == "threads" and not warm and fate.get("cold_race"):
    fail("tracing flag was set by a compile")
if side == "threads" and fate.get("large"):
    # As an allocator on a card that the trials of this project share: there is room for one.
    room = pathlib.Path(fate["large"])
    try:
        room.touch(exist_ok=False)
    except FileExistsError:
        fail("CUDA out of memory. Tried to allocate 90.00 GiB")
    time.sleep(0.5)
    room.unlink()
while side == "threads" and draw < fate.get("crawl", 0):
    say("alive")
    time.sleep(0.05)
if side == "threads" and "late" in fate:
    only = condition.get("only_repeat")
    for index, resets in ((0, 0), (1, 1)) if only is None else ((only, 0),):
        say("repeat", index=index, resets=resets)
    if only is None or fate["late"] == "confirmed":
        fail("tracing flag was set after a reset")
for step in range(3):
    say("step", thread="w0", tokens=fate.get("tokens", 1000), seconds=0.01, warm=True)
    time.sleep(0.01)
dense = transformers.DENSE if side == "threads" else 0
say("path", thread="w0", calls=100, signs={"math_attention": dense, "library_choice": dense})
say("done")
"""
MODULE = """\
import time
from . import version
__version__ = {version!r}
FATE = {fate!r}
if FATE.get("import_hangs"):
    time.sleep(600)
if FATE.get("import_fails"):
    raise ImportError("libnothing.so: cannot open shared object file")
"""


@dataclass(frozen=True)
class World:
    """A project's folder, an index with what it may install, and the command line run in it as a user would."""

    folder: Path
    index: Index
    wheels: Wheels
    uv_cache: Path

    @property
    def store(self) -> Path:
        return self.folder / ".bisect-env"

    def torch(self, version: str, files: Mapping[str, str] | None = None, **fate: object) -> Path:
        """Offer a torch: ``race``, ``hang`` and ``pause`` are chances that a threaded trial fails, hangs or is slow.

        Under a ``mitigation`` in the condition that is not ``none`` it does not fail.

        ``crawl``: the chance that it never ends and goes on saying so. ``late``: it fails after a reset, and alone in a
        fresh process only when that is ``confirmed``. ``large``: there is memory for one such trial at a time; the
        path of a mark.
        """
        cuda = version.partition("+cu")[2]
        variant = f"{cuda[:-1]}.{cuda[-1]}" if cuda else None
        contents = {
            "torch/__init__.py": MODULE.format(version=version, fate=fate),
            "torch/version.py": f"cuda = {variant!r}\n",
            **(files or {}),
        }
        return self.index.add(self.wheels.wheel("torch", version, files=contents))

    def transformers(self, version: str, dense: int = 0) -> Path:
        """Offer a transformers of whose calls so many percent run unfused under threads."""
        files = {"transformers/__init__.py": f"__version__ = {version!r}\nDENSE = {dense}\n"}
        return self.index.add(self.wheels.wheel("transformers", version, requires=["torch"], files=files))

    def matrix(self, body: str, name: str = "matrix.yaml") -> Path:
        """Write a matrix file over the index, with the reproducer beside it."""
        (self.folder / "race.py").write_text(SCRIPT)
        path = self.folder / name
        head = (
            f"name: tiny\nindex: {{urls: ['{self.index.url}']}}\n"
            "reproducer: {command: [python, race.py], files: [race.py]}\n"
        )
        path.write_text(head + body)
        return path

    def start(self, *args: str, variables: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """Start ``bisect-env ARGS`` in the project's folder."""
        # Read as they come: a full pipe would stop the run.
        return subprocess.Popen(
            [sys.executable, "-m", "bisect_env", *args],
            cwd=self.folder,
            env={**os.environ, "UV_CACHE_DIR": str(self.uv_cache), **(variables or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(
        self, *args: str, variables: Mapping[str, str] | None = None, timeout: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Run ``bisect-env ARGS`` to its end."""
        process = self.start(*args, variables=variables)
        try:
            stdout, stderr = process.communicate(timeout=timeout)
        except BaseException:
            process.kill()
            raise
        finally:
            process.wait()
        return subprocess.CompletedProcess(args, process.returncode, stdout, stderr)

    def document(self, *args: str) -> dict[str, Any]:
        """The JSON document of a run that ends with 0."""
        finished = self.run("matrix", *args, "--json", "-")
        assert finished.returncode == 0, finished.stderr
        return matching("matrix", json.loads(finished.stdout))

    def trials(self, counted: bool = True) -> list[tuple[str, str, str, int, str]]:
        """Id, cell's key, side, index and outcome of the stored trials, in order; without those not counted."""
        if not (self.store / "store.sqlite").exists():
            return []
        database = sqlite3.connect(self.store / "store.sqlite", timeout=30)
        try:
            query = "SELECT id, cell_key, side, block, outcome FROM trials WHERE superseded = 0 ORDER BY seq"
            rows = database.execute(query).fetchall()
        except sqlite3.OperationalError:
            return []  # Killed before it had made its tables.
        finally:
            database.close()
        return [row for row in rows if not counted or row[4] != "infra"]

    def processes(self, word: str = "") -> list[psutil.Process]:
        """Running processes that this project started, its commands apart: by their variables, folder and arguments."""
        found = []
        for process in psutil.process_iter():
            try:
                arguments, variables = process.cmdline(), process.environ()
                ours = any(str(self.store) in text for text in (*arguments, *variables.values()))
                if ours and process.status() != psutil.STATUS_ZOMBIE and any(word in text for text in arguments):
                    found.append(process)
            except psutil.Error:
                continue
        return found


def placed(trials: list[tuple[str, str, str, int, str]]) -> list[tuple[str, str, int]]:
    """Where in the plan the trials stand, sorted."""
    return sorted((cell, side, index) for _, cell, side, index, _ in trials)
