"""A further cell: ten environments that differ in transformers alone, built one by one from given locks.

bisect-env's own building against the tools that people would take instead, each given the same locks (torch 2.11.0 as
the package index has it, CUDA libraries included) and uv's cache warm and offline:

  uv by hand     uv venv, uv pip sync: what the others could reach, without any proof of what was installed
  nox + uv       a noxfile with a session for each cell, `session.install("-r", LOCK)`
  tox-uv         a tox.toml with an environment for each cell, `deps = -r LOCK`
  venv + pip     python -m venv, pip install -r LOCK from a folder of wheels that was filled beforehand

Each tool builds one cell that is not timed, then the further ones. Seconds are the wall time of all of them over their
number, CPU seconds those of the tool and all that it started, megabytes what each cell takes on disk that is not a hard
link into uv's cache. What a tool has built is removed before the next one begins. pip copies 4.9 GB a cell, so it
builds fewer (--slow-cells), once. The goal for bisect-env is at most 0.5 s and 15 MB.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from measuring import Clock, Cost, parent_environment, run, say, scratch, show, uv_version

from bisect_env.engine.prepare import BUILDERS
from bisect_env.environments import building, locks, usage
from bisect_env.environments.records import Environment, Lock, Unavailable
from bisect_env.environments.uv import Uv
from bisect_env.matrix.cells import EnvironmentRequest
from bisect_env.trials import machine

TRANSFORMERS = ("5.3.0", "5.4.0", "5.5.0", "5.6.0", "5.7.0", "5.8.1", "5.9.0", "5.11.0", "5.12.0", "5.13.0")
"""Releases that take the same versions of everything else."""
FIXED = ("torch==2.11.0", "numpy")
GOAL_SECONDS, GOAL_MB = 0.5, 15.0
GB = 10**9
CELL_BYTES, WHEELS_BYTES = 5 * GB, 3 * GB
"""What a copied cell takes, and all wheels of one as archives."""
TIMEOUT = 3600.0

NOXFILE = """\
import nox

nox.options.default_venv_backend = "uv"
nox.options.reuse_venv = "no"


@nox.session
@nox.parametrize("lock", {locks!r}, ids={names!r})
def cell(session, lock):
    session.install("-r", lock)
"""
TOX = """\
requires = ["tox-uv"]
no_package = true
skip_missing_interpreters = false

[env_run_base]
base_python = ["{python}"]
"""
TOX_ENVIRONMENT = """
[env.{name}]
deps = ["-r {lock}"]
"""


@dataclass(frozen=True)
class Cell:
    """A cell with its lock, also as a file for the other tools."""

    name: str
    request: EnvironmentRequest
    lock: Lock
    file: Path


@dataclass(frozen=True)
class Tool:
    """Something that builds cells in a folder and says where each of them lies."""

    name: str
    build: Callable[[list[Cell], Path], Cost]
    """What these cells took; called with the first one, and then with the further ones."""
    place: Callable[[Cell, Path], Path]
    copies: bool = False


@dataclass(frozen=True)
class Measured:
    """One round of one tool."""

    seconds: float
    cpu: float
    """Seconds too."""
    megabytes: float
    """All three a further cell."""
    cells: int


def resolved(folder: Path, uv: Uv) -> list[Cell]:
    """The cells with their locks; exits when they differ in anything but transformers."""
    cells = []
    for version in TRANSFORMERS:
        request = EnvironmentRequest((*FIXED, f"transformers=={version}"))
        lock = locks.resolve(request, uv)
        if not isinstance(lock, Lock):
            sys.exit(f"transformers {version} cannot be resolved: {lock.message}")
        name = "t" + version.replace(".", "-")
        file = folder / f"{name}.txt"
        file.write_text(lock.text)
        cells.append(Cell(name, request, lock, file))
        say(f"resolved transformers {version}")
    others = {tuple(pin for pin in cell.lock.pins if pin[0] != "transformers") for cell in cells}
    if len(others) > 1:
        differing = {name for pins in others for name, version in pins if not all((name, version) in p for p in others)}
        sys.exit(f"the cells also differ in {', '.join(sorted(differing))}: TRANSFORMERS needs other releases")
    return cells


def with_bisect_env(uv: Uv) -> Tool:
    """The package's own building, as the engine calls it."""

    def build(cells: list[Cell], folder: Path) -> Cost:
        cost = Cost()
        for cell in cells:
            clock = Clock()
            built = building.build(cell.lock, cell.request, folder, uv, TIMEOUT)
            cost += clock.read()
            if not isinstance(built, Environment):
                sys.exit(f"{cell.name} could not be built: {built.message}")
        return cost

    return Tool("bisect-env", build, lambda cell, folder: folder / "environments" / cell.lock.address)


def as_a_run_builds(uv: Uv) -> Tool:
    """The same, as many at once as a run of a matrix builds."""

    def build(cells: list[Cell], folder: Path) -> Cost:
        def one(cell: Cell) -> Environment | Unavailable:
            return building.build(cell.lock, cell.request, folder, uv, TIMEOUT)

        clock = Clock()
        with ThreadPoolExecutor(BUILDERS) as pool:
            built = list(pool.map(one, cells))
        cost = clock.read()
        for cell, found in zip(cells, built, strict=True):
            if not isinstance(found, Environment):
                sys.exit(f"{cell.name} could not be built: {found.message}")
        return cost

    return Tool(f"bisect-env, {BUILDERS} at once", build, with_bisect_env(uv).place)


def with_uv(uv: Uv, env: dict[str, str]) -> Tool:
    """uv called by hand."""

    def build(cells: list[Cell], folder: Path) -> Cost:
        cost = Cost()
        for cell in cells:
            venv = folder / cell.name
            cost += run([uv.binary, "venv", "--quiet", "--python", cell.lock.interpreter.path, venv], env)
            python = venv / "bin" / "python"
            cost += run([uv.binary, "pip", "sync", "--quiet", "--python", python, cell.file], env)
        return cost

    return Tool("uv by hand", build, lambda cell, folder: folder / cell.name)


def with_nox(tools: Path, all_cells: list[Cell], env: dict[str, str]) -> Tool:
    """nox with uv as its backend, all further cells in one call."""

    def build(cells: list[Cell], folder: Path) -> Cost:
        noxfile = folder / "noxfile.py"
        names, files = [cell.name for cell in all_cells], [str(cell.file) for cell in all_cells]
        noxfile.write_text(NOXFILE.format(locks=files, names=names))
        sessions = [f"cell({cell.name})" for cell in cells]
        return run([tools / "nox", "-f", noxfile, "--envdir", folder / "nox", "-s", *sessions], env)

    return Tool("nox + uv", build, lambda cell, folder: folder / "nox" / f"cell-{cell.name}")


def with_tox(tools: Path, all_cells: list[Cell], env: dict[str, str]) -> Tool:
    """tox with tox-uv, all further cells in one call."""

    def build(cells: list[Cell], folder: Path) -> Cost:
        config = folder / "tox.toml"
        parts = [TOX_ENVIRONMENT.format(name=cell.name, lock=cell.file) for cell in all_cells]
        config.write_text(TOX.format(python=all_cells[0].lock.interpreter.path) + "".join(parts))
        names = ",".join(cell.name for cell in cells)
        return run([tools / "tox", "run", "--notest", "-c", config, "--workdir", folder / "tox", "-e", names], env)

    return Tool("tox-uv", build, lambda cell, folder: folder / "tox" / cell.name)


def with_pip(wheels: Path, env: dict[str, str]) -> Tool:
    """venv and pip, without byte code, which the others do not write either."""

    def build(cells: list[Cell], folder: Path) -> Cost:
        cost = Cost()
        for cell in cells:
            venv = folder / cell.name
            cost += run([cell.lock.interpreter.path, "-m", "venv", venv], env)
            options = ["--no-compile", "--no-index", "--find-links", str(wheels)]
            cost += run([venv / "bin" / "pip", "install", *options, "-r", cell.file], env)
        return cost

    return Tool("venv + pip", build, lambda cell, folder: folder / cell.name, copies=True)


def measured(tool: Tool, cells: list[Cell], folder: Path) -> Measured:
    """Builds a first cell and the further ones below ``folder``, and removes all of them."""
    folder.mkdir()
    try:
        tool.build(cells[:1], folder)
        cost = tool.build(cells[1:], folder)
        own = [usage.measure(tool.place(cell, folder)).own_bytes for cell in cells[1:]]
    finally:
        say(f"{tool.name}: removing what was built")
        shutil.rmtree(folder)
    found = Measured(cost.wall / len(own), cost.cpu / len(own), statistics.mean(own) / 1e6, len(own))
    say(f"{tool.name}: {found.seconds:.2f} s and {found.megabytes:.1f} MB a further cell")
    return found


def room_for(needed: int, folder: Path) -> None:
    """Exits when the disk lacks ``needed`` bytes."""
    free = machine.free_bytes(folder)
    if free < needed:
        sys.exit(
            f"{folder}: {needed / GB:.0f} GB are needed, {free / GB:.0f} GB are free: "
            "make room, name another --scratch, or lower --slow-cells (0 leaves pip out)"
        )


def tools_of(cells: list[Cell], uv: Uv, folder: Path, slow_cells: int) -> list[Tool]:
    """All tools; nox, tox and tox-uv are installed into an environment of their own, with the cells' interpreter."""
    env = parent_environment()
    interpreter = cells[0].lock.interpreter.path
    say("installing nox, tox and tox-uv")
    run([uv.binary, "venv", "--quiet", "--seed", "--python", interpreter, folder / "tools"], env)
    python = folder / "tools" / "bin" / "python"
    # They look for uv beside themselves first: let it be the same, or the cache might not be.
    packages = ["nox", "tox", "tox-uv", f"uv=={uv_version()}"]
    run([uv.binary, "pip", "install", "--quiet", "--python", python, *packages], env)
    wheels = folder / "wheels"
    if slow_cells:
        for cell in cells[: slow_cells + 1]:
            say(f"{cell.name}: filling the folder of wheels for pip")
            options = ["--no-cache-dir", "--no-deps", "--find-links", str(wheels), "-d", str(wheels)]
            run([python, "-m", "pip", "download", *options, "-r", cell.file], env)
    offline = parent_environment(UV_OFFLINE="1", UV_PYTHON_DOWNLOADS="never")
    named = [
        with_bisect_env(uv),
        as_a_run_builds(uv),
        with_uv(uv, offline),
        with_nox(python.parent, cells, offline),
        with_tox(python.parent, cells, offline),
    ]
    return [*named, with_pip(wheels, env)] if slow_cells else named


def rows(found: dict[str, list[Measured]]) -> list[list[str]]:
    """A line a tool, against the first one, round by round."""
    first = next(iter(found.values()))
    lines = []
    for name, rounds in found.items():
        seconds = sorted(one.seconds for one in rounds)
        # pip has fewer rounds: its ratios are to the same ones.
        pairs = list(zip(rounds, first, strict=False))
        lines.append(
            [
                name,
                f"{rounds[0].cells} x {len(rounds)}",
                f"{statistics.median(seconds):.2f}",
                f"{seconds[0]:.2f} to {seconds[-1]:.2f}",
                f"{statistics.median(one.seconds / own.seconds for one, own in pairs):.2f}",
                f"{statistics.median(one.cpu for one in rounds):.2f}",
                f"{statistics.median(one.megabytes for one in rounds):.1f}",
                f"{statistics.median(one.megabytes / own.megabytes for one, own in pairs):.2f}",
            ]
        )
    return lines


def verdict(value: float, goal: float, unit: str) -> str:
    """One goal in words."""
    return f"Goal: at most {goal:g} {unit} a further cell, {'met' if value <= goal else 'MISSED'}."


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="times that each tool but pip has its turn (default: 3)")
    parser.add_argument("--slow-cells", type=int, default=2, help="further cells for pip (default: 2; 0: without pip)")
    parser.add_argument("--scratch", type=Path, help="folder on the file system of uv's cache (default: the system's)")
    options = parser.parse_args()
    if options.rounds < 1 or not 0 <= options.slow_cells < len(TRANSFORMERS):
        parser.error(f"--rounds is at least 1, --slow-cells 0 to {len(TRANSFORMERS) - 1}")
    uv = Uv()
    found: dict[str, list[Measured]] = {}
    with scratch(options.scratch) as folder:
        copied = (options.slow_cells + 1) * CELL_BYTES + WHEELS_BYTES if options.slow_cells else 0
        room_for(CELL_BYTES + copied, folder)
        cells = resolved(folder, uv)
        say("warming uv's cache: every cell once")
        measured(with_bisect_env(uv), cells, folder / "warm-up")
        tools = tools_of(cells, uv, folder, options.slow_cells)
        for number in range(options.rounds):
            for tool in tools if number % 2 == 0 else reversed(tools):
                if tool.copies and number:
                    continue
                taken = cells[: options.slow_cells + 1] if tool.copies else cells
                found.setdefault(tool.name, []).append(measured(tool, taken, folder / "building"))
    headers = ["tool", "further cells", "s a cell", "s (least to most)", "x", "CPU s a cell", "MB a cell", "x"]
    own = next(iter(found))
    notes = [
        f"{FIXED[0]}, transformers {TRANSFORMERS[0]} to {TRANSFORMERS[-1]}.",
        f"Medians over rounds; ratios to {own}, within a round.",
        verdict(statistics.median(one.seconds for one in found[own]), GOAL_SECONDS, "s"),
        verdict(statistics.median(one.megabytes for one in found[own]), GOAL_MB, "MB"),
    ]
    show(rows(found), headers, notes)


if __name__ == "__main__":
    main()
