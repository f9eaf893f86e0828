"""What a trial costs over the bare reproducer: the same script, started by hand with the same variables.

Three ways to run it take turns in the order A B C C B A, so that a machine that drifts meets all of them alike:

  A  the bare process: the trial's own variables, folders made beforehand, the same byte-code cache
  B  runner.run: folders, isolation, supervisor, watchdog, classification, removal
  C  the engine's trial: B, and the lease, the GPU's health, the host's facts, and the row in the store

The goal is a difference of at most the larger of 5 % and 150 ms of wall time, in the median over the pairs. On a busy
machine wall time scatters by more than that: the CPU time of the process and all that it started, this program's
share included, hardly does, and is shown beside it.

Without --environment the script is a tiny one of the standard library; with it, the shipped compile_race.py runs in
that environment too: its serial control, since that always does the same work, in the conditions of matrices/cpu.yaml.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from measuring import Clock, Cost, say, scratch, show

from bisect_env.engine.attempt import Attempt
from bisect_env.engine.places import Place
from bisect_env.engine.plan import Slot
from bisect_env.engine.settings import Settings
from bisect_env.engine.trialing import Bench, run_trial
from bisect_env.environments.records import Environment, Interpreter, Lock
from bisect_env.matrix import shipped
from bisect_env.matrix.cells import Cell, Condition, EnvironmentRequest, Matrix, ReproducerChoice
from bisect_env.matrix.loading import load
from bisect_env.store.database import Store
from bisect_env.trials import machine, reproducers, runner
from bisect_env.trials.isolation import Folders, compiler_folders, isolate
from bisect_env.trials.records import Outcome, Reproducer, Side, TrialRecord, TrialSpec

TINY = """\
import json, os, sys, threading, time

def say(event, **words):
    with open(os.environ["BISECT_ENV_EVENTS"], "a") as file:
        file.write(json.dumps({"event": event, "t": time.time(), **words}) + "\\n")

say("start", pid=os.getpid())
say("ready", versions={}, devices=["cpu"])
for step in range(20):
    time.sleep(0.01)
    say("step", thread="w0", tokens=100, seconds=0.01, warm=True)
say("done")
"""
SHARE, FLOOR = 0.05, 0.150
"""The goal: of the bare reproducer's wall time, and in seconds."""
SILENCE = 300.0


@dataclass(frozen=True)
class Subject:
    """What is run, and where."""

    name: str
    python: Path
    reproducer: Reproducer
    cell: Cell
    matrix: Matrix
    root: Path

    def environment(self) -> Environment:
        """The interpreter as an environment of the store's root."""
        interpreter = Interpreter(self.python, "", "cpython", "")
        return Environment(Lock("", interpreter, (), None, "benchmark"), self.root / "place", self.python, "", 0.0)

    def spec(self, name: str, seed: int) -> TrialSpec:
        """A trial."""
        return TrialSpec(
            id=name,
            environment="benchmark",
            python=self.python,
            pycache=self.root / "place" / "pycache",
            reproducer=self.reproducer,
            condition=self.cell.condition,
            side=Side.SERIAL,
            seed=seed,
            folder=self.root / "trials" / name,
            limits=self.matrix.limits,
            silence=SILENCE,
        )


def tiny(root: Path) -> Subject:
    """A script that lives for 0.2 s and speaks the protocol."""
    script = root / "tiny.py"
    script.write_text(TINY)
    reproducer = Reproducer("tiny", ("python", str(script)), (), "tiny", protocol=True)
    cell = Cell("tiny", (), EnvironmentRequest(()), Condition.of({"threads": 2, "device": "cpu"}))
    matrix = Matrix("tiny", script, (cell,), (), ReproducerChoice("tiny"))
    return Subject("tiny script", Path(sys.executable), reproducer, cell, matrix, root)


def compile_race(root: Path, python: Path) -> Subject:
    """The shipped reproducer in the conditions of the shipped CPU matrix."""
    matrix = load(shipped.matrices_folder() / "cpu.yaml")
    reproducer = reproducers.prepare(matrix.reproducer)
    return Subject("compile_race.py", python.absolute(), reproducer, matrix.cells[0], matrix, root)


def bare(subject: Subject, number: int) -> Cost:
    """The process alone; its folders are made before and removed after the time is taken."""
    spec = subject.spec(f"bare-{number}", number)
    folders = Folders(spec.folder)
    folders.create()
    condition = {**spec.condition.as_dict(), "side": spec.side.value, "seed": spec.seed}
    folders.condition.write_text(json.dumps(condition))
    variables = isolate(spec, os.environ, compiler_folders(os.environ.get("PATH", ""))).variables
    command = [str(spec.python), *spec.reproducer.command[1:]]
    clock = Clock()
    done = subprocess.run(command, env=variables, cwd=folders.work, stdin=subprocess.DEVNULL, capture_output=True)
    cost = clock.read()
    if done.returncode:
        sys.exit(f"the bare reproducer ended with {done.returncode}:\n{done.stderr.decode(errors='replace')[-3000:]}")
    shutil.rmtree(spec.folder)
    return cost


def trial(subject: Subject, number: int) -> Cost:
    """``runner.run``, removal of the folder included."""
    clock = Clock()
    record = runner.run(subject.spec(f"trial-{number}", number), threading.Event())
    cost = clock.read()
    _must_be_clean(record)
    return cost


def engine(subject: Subject, bench: Bench, number: int) -> Cost:
    """The engine's trial, its row in the store included."""
    slot = Slot(subject.cell, Side.SERIAL, number)
    clock = Clock()
    record = run_trial(bench, Attempt(slot, subject.environment(), SILENCE), Place(0, machine.cores()))
    cost = clock.read()
    _must_be_clean(record)
    return cost


def _must_be_clean(record: TrialRecord) -> None:
    if record.outcome is not Outcome.CLEAN:
        sys.exit(f"a trial was {record.outcome}, so that its time says nothing: {record.message}\n{record.output}")


def measure(subject: Subject, pairs: int) -> dict[str, list[Cost]]:
    """What each way took, ``pairs`` of each, in turns."""
    stop = threading.Event()
    with Store(subject.root / "store.sqlite") as store:
        settings = Settings(subject.root)
        run_id = store.start_run(subject.name, "", (), 0, {})
        bench = Bench(subject.matrix, settings, store, run_id, subject.reproducer, stop, say)
        ways: dict[str, Callable[[int], Cost]] = {
            "bare process": lambda number: bare(subject, number),
            "runner.run": lambda number: trial(subject, number),
            "the engine's trial": lambda number: engine(subject, bench, number),
        }
        found: dict[str, list[Cost]] = {name: [] for name in ways}
        for name, way in ways.items():
            say(f"{subject.name}: warm-up, {name}: {way(0).wall:.2f} s")
        for number in range(1, pairs + 1):
            for name in ways if number % 2 else reversed(ways):
                found[name].append(ways[name](number))
            last = ", ".join(f"{name} {costs[-1].wall:.3f} s" for name, costs in found.items())
            say(f"{subject.name}: {number}/{pairs}: {last}")
    return found


def rows(subject: str, found: dict[str, list[Cost]]) -> list[list[str]]:
    """A line for each way, against the first one, pair by pair."""
    base = found["bare process"]
    allowed = max(SHARE * statistics.median(cost.wall for cost in base), FLOOR)
    lines = []
    for name, costs in found.items():
        line = [subject, name, f"{statistics.median(cost.wall for cost in costs):.3f}"]
        if costs is base:
            lines.append([*line, "", "", "", "", ""])
            continue
        pairs = list(zip(costs, base, strict=True))
        extra = [cost.wall - bare.wall for cost, bare in pairs]
        low, middle, high = (1000 * value for value in statistics.quantiles(extra, n=4))
        lines.append(
            [
                *line,
                f"{statistics.median(cost.wall / bare.wall for cost, bare in pairs):.3f}",
                f"{middle:.0f} ({low:.0f} to {high:.0f})",
                f"{1000 * statistics.median(cost.cpu - bare.cpu for cost, bare in pairs):.0f}",
                f"{1000 * allowed:.0f}",
                "yes" if middle <= 1000 * allowed else "NO",
            ]
        )
    return lines


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environment", type=Path, metavar="PYTHON", help="interpreter with torch and transformers")
    parser.add_argument("--pairs", type=int, default=15, help="pairs of each comparison (default: 15)")
    parser.add_argument("--scratch", type=Path, help="where to make the scratch folder (default: the system's)")
    options = parser.parse_args()
    if options.pairs < 2:
        parser.error("--pairs: at least 2, or there are no quartiles")
    table = []
    with scratch(options.scratch) as folder:
        (folder / "tiny").mkdir()
        subjects = [tiny(folder / "tiny")]
        if options.environment:
            (folder / "race").mkdir()
            subjects.append(compile_race(folder / "race", options.environment))
        for subject in subjects:
            table += rows(subject.name, measure(subject, options.pairs))
    headers = [
        "script",
        "run as",
        "s (median)",
        "x bare",
        "ms more (quartiles)",
        "CPU ms more",
        "ms allowed",
        "goal met",
    ]
    show(table, headers, [f"{options.pairs} of each, in turns A B C C B A; differences and ratios within a pair."])


if __name__ == "__main__":
    main()
