"""A site with a shared folder and a node's own disk, and jobs on it that plain processes do, without any Slurm."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil

from bisect_env.cluster import job
from bisect_env.cluster.credentials import Vault
from bisect_env.cluster.job import Ended, JobSpec, Wanted
from bisect_env.engine.attempt import Attempt
from bisect_env.engine.plan import Slot
from bisect_env.environments.places import LOCKS, environments_folder
from bisect_env.environments.records import Environment, Lock
from bisect_env.matrix.cells import Cell, Condition, EnvironmentRequest, Limits, Matrix, ReproducerChoice
from bisect_env.trials import reproducers
from bisect_env.trials.records import Side
from tests.support.environments import lock_of, request_of
from tests.support.wheels import Wheels

SCRIPT = """\
import json, os, pathlib, sys, time

import torch

condition = json.load(open(os.environ["BISECT_ENV_CONDITION"]))
print("torch", torch.__version__, "token", os.environ.get("TOKEN"), sorted(os.environ))
if "mark" in condition:
    if pathlib.Path(condition["mark"]).exists():
        sys.exit(0)
    pathlib.Path(condition["mark"]).write_text(str(os.getpid()))
if "fills" in condition:
    # As a trial that takes all of the disk that it runs on; gone when it ends, or the test could not go on.
    pathlib.Path(condition["fills"]).touch()
    while not pathlib.Path(condition["fills"] + ".full").exists():
        time.sleep(0.01)
if "entry" in condition:
    entry = pathlib.Path(os.environ["TORCHINDUCTOR_CACHE_DIR"], "entry")
    print("warm" if entry.exists() else "cold")
    entry.write_text("compiled")
time.sleep(condition.get("seconds", 0))
sys.exit(condition.get("status", 0))
"""


@dataclass
class Site:
    """``shared`` is what all nodes see; ``disk`` a node's own."""

    folder: Path
    wheels: Wheels
    uv_cache: Path
    variables: dict[str, str] = field(default_factory=dict)
    """What jobs have besides this process's variables."""

    def __post_init__(self) -> None:
        for each in (self.root, self.disk):
            each.mkdir(parents=True)

    @property
    def root(self) -> Path:
        return self.folder / "shared" / ".bisect-env"

    @property
    def disk(self) -> Path:
        return self.folder / "disk"

    def torch(self, version: str = "2.14.1", **options: object) -> Path:
        """A wheel of a pretended torch."""
        text = f"__version__ = {version!r}\nclass version:\n    cuda = None\n"
        return self.wheels.wheel("torch", version, files={"torch/__init__.py": text}, **options)

    def slow_source(self, seconds: float) -> Path:
        """A source distribution whose build takes so long."""
        return self.wheels.sdist("slow", "1.0", build_imports=[f"time; time.sleep({seconds})"])

    def spec(
        self,
        conditions: Sequence[Mapping[str, object]] = ({},),
        paths: Sequence[Path] = (),
        request: EnvironmentRequest | None = None,
        lock: Lock | None = None,
        script: str = SCRIPT,
        **options: object,
    ) -> JobSpec:
        """A job with one trial of each condition, in the environment of these distributions."""
        paths = paths or (self.torch(),)
        lock, request = lock or lock_of(*paths), request or request_of(*paths)
        (self.folder / "trial.py").write_text(script)
        choice = ReproducerChoice("trial", ("python", "trial.py"), (self.folder / "trial.py",))
        cells = tuple(
            Cell(f"c{number}", (), request, Condition.of({"device": "cpu", **condition}))  # type: ignore[dict-item]
            for number, condition in enumerate(conditions)
        )
        matrix = Matrix("m", self.folder / "m.yaml", cells, (), choice, limits=Limits(build=60.0, silence=30.0))
        elsewhere = Environment(lock, Path("/elsewhere"), Path("/elsewhere/python"), "", 0.0)
        items = tuple(
            job.item(f"i{number}", Attempt(Slot(cell, Side.THREADS, number), elsewhere, 30.0))
            for number, cell in enumerate(cells)
        )
        wanted = (Wanted(lock, request, "torch"),)
        spec = JobSpec(
            "j", "r1", self.root, matrix, reproducers.prepare(choice), wanted, items,
            uv_cache=str(self.uv_cache), staleness=2.0,
        )  # fmt: skip
        return replace(spec, **options)  # type: ignore[arg-type]

    def send(self, spec: JobSpec, name: str = "job") -> Path:
        """Write a job's folder, and keep the variables that it needs."""
        folder, vault = self.root / "jobs" / name, Vault()
        job.write(spec, folder, vault)
        self.variables.update(vault.variables())
        return folder

    def start(self, folder: Path, **variables: str) -> subprocess.Popen[str]:
        """A node's process for a job."""
        return subprocess.Popen(
            [sys.executable, "-m", "bisect_env.cluster.worker", str(folder)],
            env={**os.environ, "TMPDIR": str(self.disk), **self.variables, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def do(self, spec: JobSpec, name: str = "job", **variables: str) -> tuple[Ended, str]:
        """Do a job to its end: what it says of that, and its log."""
        folder = self.send(spec, name)
        with self.running(folder, **variables) as process:
            log, _ = process.communicate(timeout=60)
        ended = job.ended(folder)
        assert ended is not None, log
        return ended, log

    @contextmanager
    def running(self, folder: Path, **variables: str) -> Iterator[subprocess.Popen[str]]:
        """A job under way, killed at the end."""
        with self.start(folder, **variables) as process:
            try:
                yield process
            finally:
                process.kill()

    def left(self) -> list[str]:
        """What is on the node's disk, claimed or half built, and the processes that work in the site."""
        environments = environments_folder(self.root)
        found = [path.name for path in self.disk.iterdir()]
        found += [path.name for path in environments.glob(".tmp-*")]
        found += [path.name for path in (environments / LOCKS).glob("*") if path.suffix != ".lock"]
        for process in psutil.process_iter(["pid", "cwd", "cmdline"]):
            words = [process.info["cwd"] or "", *(process.info["cmdline"] or ())]
            if process.pid != os.getpid() and any(str(self.folder) in word for word in words):
                found.append(json.dumps(words))
        return found
