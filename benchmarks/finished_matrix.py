"""The second run of a finished matrix: nothing is resolved, built or measured, the table comes from the store.

Wall time of the whole command, and through `nox -s matrix`: with everything installed beside nox, and with nox alone,
as `uvx nox` has it. They take turns with `python -c pass` and with importing the command; the goal is under 2 s.

Without --store it makes a store of its own: 36 cells with 36 trials each, put in through the store's own interface, as
large as real ones of compile_race.py. With --store FOLDER it takes a copy of the store of a finished
`bisect-env matrix matrices/cpu.yaml`, and refuses one that is not finished.
"""

from __future__ import annotations

import argparse
import importlib.util
import sqlite3
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from measuring import Cost, parent_environment, run, say, scratch, show

from bisect_env.cli.common import STORE_FILE
from bisect_env.engine.plan import seed_of
from bisect_env.environments.records import Interpreter, Lock
from bisect_env.environments.uv import find_uv
from bisect_env.matrix import shipped
from bisect_env.matrix.cells import Cell, Matrix, digest
from bisect_env.matrix.loading import load
from bisect_env.store.database import Store
from bisect_env.store.ids import new_trial_id
from bisect_env.trials import reproducers
from bisect_env.trials.records import Failure, Outcome, PathCount, Side, Signature, StepTime, TrialRecord
from bisect_env.verdicts.looks import Design, finished

GOAL = 2.0
SYNTHETIC = """\
name: synthetic
axes:
  torch: [2.11.0, 2.13.0, 2.14.1]
  transformers: [5.6.0, 5.7.0, 5.8.1, 5.9.0]
reproducer: compile_race
conditions: {threads: 2, pattern: [hot, barrier, separate], device: cpu, cache: cold}
trials: 12
controls: 12
reference: {torch: 2.14.1, transformers: "5.8.1"}
"""
STEPS, OUTPUT_LINES = 60, 40
"""Of a trial. A clean threaded trial of compile_race.py takes about as much: 9 kB as JSON."""
PACKAGES, HASHES = 58, 12
"""Of a lock: 60 kB of text, as torch 2.11.0 with transformers 5.8.1 has."""


def synthetic(root: Path) -> Path:
    """A matrix file and its finished store below ``root``."""
    file = root / "synthetic.yaml"
    file.write_text(SYNTHETIC)
    fill(load(file), root)
    return file


def fill(matrix: Matrix, root: Path) -> None:
    """The store of a run of the matrix that was finished."""
    reproducer = reproducers.prepare(matrix.reproducer).content_hash
    with Store(root / STORE_FILE) as store:
        run_id = store.start_run(matrix.name, matrix.path, (), 0, {})
        for cell in matrix.cells:
            store.put_lock(cell.request.key, lock(cell), 1.0)
            for index in range(matrix.trials):
                for side in (Side.THREADS, Side.SERIAL, Side.SOLO):
                    record = trial(cell, side, index, reproducer)
                    store.put_trial(record, cell.key, run_id, index, reproducer)
        store.end_run(run_id, "completed")


def lock(cell: Cell) -> Lock:
    """A lock of realistic length."""
    hashes = " ".join(f"--hash=sha256:{digest(number, 64)}" for number in range(HASHES))
    pins = tuple((f"package-{number}", "1.0") for number in range(PACKAGES))
    text = "".join(f"{name}=={version} {hashes}\n" for name, version in pins)
    interpreter = Interpreter(Path(sys.executable), sys.version.split()[0], "cpython", "linux-x86_64")
    return Lock(text, interpreter, pins, "cu130", cell.request.key)


def trial(cell: Cell, side: Side, index: int, reproducer: str) -> TrialRecord:
    """A trial of realistic length; threads fail with the oldest torch in two thirds of the trials."""
    fails = side is Side.THREADS and dict(cell.levels)["torch"] == "2.11.0" and index % 3 > 0
    signature = Signature("RuntimeError", "FX to symbolically trace a dynamo-optimized function", "torch._dynamo")
    failure = Failure("w1", signature, "FX to symbolically trace", "compile_wrapper:764", "  File ...\n" * 80, 1e9)
    steps = tuple(
        StepTime(f"w{step % 2}", 4096 + index % 5, 0.1, 1e9 + 0.05 * step + 0.001 * index, True)
        for step in range(STEPS)
    )
    return TrialRecord(
        id=new_trial_id(),
        environment=cell.request.key,
        reproducer=reproducer,
        condition=cell.condition,
        side=side,
        seed=seed_of(0, cell, index),
        outcome=Outcome.FAILED if fails else Outcome.CLEAN,
        failures=(failure,) if fails else (),
        paths=(PathCount("w0", 100, (("library_choice", 0), ("math_attention", 0))),),
        steps=steps,
        versions=(("torch", dict(cell.levels)["torch"]), ("python", sys.version.split()[0])),
        exposures=80,
        windows=8,
        longest_silence=1.0,
        started=1e9 + index,
        seconds=8.0,
        exit_status=int(fails),
        output="a line of output, as torch prints its warnings\n" * OUTPUT_LINES,
        host=tuple((f"fact {number}", "1.23") for number in range(10)),
        environment_variables=tuple((f"VARIABLE_{number}", "/a/path/of/some/length") for number in range(16)),
    )


def copied(store: Path, root: Path) -> None:
    """Copies the store's file, also one that is open elsewhere: the benchmark's runs are not to stay in it."""
    source = store / STORE_FILE
    if not source.exists():
        sys.exit(f"--store {store}: there is no store; run `bisect-env matrix matrices/cpu.yaml` first")
    original = sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)
    with closing(original), closing(sqlite3.connect(root / STORE_FILE)) as copy:
        original.backup(copy)


def trials_of_finished(matrix: Matrix, root: Path) -> int:
    """How many trials the store has of the matrix. Exits unless it is finished: timing it would build and measure."""
    reproducer = reproducers.prepare(matrix.reproducer).content_hash
    design = Design(matrix.trials, matrix.controls)
    found = 0
    with Store(root / STORE_FILE) as store:
        for cell in matrix.cells:
            known = store.lock(cell.request.key, retry_transient=True)
            samples = store.trials(cell.key, known.address, reproducer) if isinstance(known, Lock) else []
            if known is None or (isinstance(known, Lock) and not finished(samples, design)):
                sys.exit(
                    f"this is not the store of a finished run of {matrix.path} as it is now: {cell.id} lacks trials"
                )
            found += len(samples)
    return found


def nox_alone(folder: Path, environment: Mapping[str, str]) -> Path:
    """The nox of an environment that holds nothing else, as `uvx nox` makes it: the noxfile's own dependencies go
    into nox's script environment at the first run, and are checked at every other."""
    uv, place = find_uv(), folder / "alone"
    run([uv, "venv", "--quiet", "--python", sys.executable, place], environment)
    run([uv, "pip", "install", "--quiet", "--python", place / "bin" / "python", "nox[uv]"], environment)
    return place / "bin" / "nox"


def measure(commands: dict[str, Callable[[], Cost]], rounds: int) -> dict[str, list[Cost]]:
    """What each command took, in turns; the first round warms up and is not counted."""
    found: dict[str, list[Cost]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name in list(commands) if number % 2 else reversed(commands):
            cost = commands[name]()
            if number:
                found[name].append(cost)
        if number:
            say(f"{number}/{rounds}: " + ", ".join(f"{name} {costs[-1].wall:.2f} s" for name, costs in found.items()))
    return found


def rows(found: dict[str, list[Cost]], judged: Sequence[str]) -> list[list[str]]:
    """A line a command, against the bare interpreter and the import, round by round."""
    bases = list(found.values())[:2]
    lines = []
    for name, costs in found.items():
        ratios = [
            statistics.median(cost.wall / other.wall for cost, other in zip(costs, base, strict=True)) for base in bases
        ]
        middle = statistics.median(cost.wall for cost in costs)
        lines.append(
            [
                name,
                f"{middle:.3f}",
                f"{min(cost.wall for cost in costs):.3f}",
                f"{statistics.median(cost.cpu for cost in costs):.3f}",
                *(f"{ratio:.1f}" for ratio in ratios),
                ("yes" if middle < GOAL else "NO") if name in judged else "",
            ]
        )
    return lines


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, metavar="FOLDER", help="folder of a finished run of matrices/cpu.yaml")
    parser.add_argument("--rounds", type=int, default=11, help="times that each command is run (default: 11)")
    parser.add_argument("--scratch", type=Path, help="where to make the scratch folder (default: the system's)")
    options = parser.parse_args()
    if importlib.util.find_spec("nox") is None:
        sys.exit("nox is not installed beside bisect-env: python -m pip install 'bisect-env[nox]'")
    with scratch(options.scratch) as folder:
        root = folder / "store"
        root.mkdir()
        if options.store:
            copied(options.store, root)
            file = shipped.matrices_folder() / "cpu.yaml"
        else:
            say("making a synthetic store")
            file = synthetic(root)
        matrix = load(file)
        trials = trials_of_finished(matrix, root)
        noxfile = Path(__file__).resolve().parent.parent / "noxfile.py"
        environment = parent_environment()

        def command(*words: str | Path) -> Callable[[], Cost]:
            return lambda: run([sys.executable, *words], environment)

        arguments = (file, "--store", root)
        nox = ("-m", "nox", "-f", noxfile, "--envdir", folder / "nox", "-s", "matrix", "--", *arguments)
        say("making an environment with nothing but nox")
        alone = nox_alone(folder, environment)
        commands = {
            "python -c pass": command("-c", "pass"),
            'python -c "import bisect_env.cli.matrix"': command("-c", "import bisect_env.cli.matrix"),
            "bisect-env matrix FILE": command("-m", "bisect_env", "matrix", *arguments),
            "nox -s matrix -- FILE": command(*nox),
            "uvx nox -s matrix -- FILE": lambda: run([alone, *nox[2:]], environment),
        }
        found = measure(commands, options.rounds)
    judged = list(commands)[2:]
    headers = ["command", "s (median)", "s (least)", "CPU s", "x pass", "x import", f"under {GOAL:.0f} s"]
    note = f"{len(matrix.cells)} cells, {trials} trials, {options.rounds} rounds in turns; ratios within a round."
    show(rows(found, judged), headers, [note])


if __name__ == "__main__":
    main()
