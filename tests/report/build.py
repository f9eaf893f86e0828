"""Rows for the tests of the reports: the four cells of a laptop, judged from synthetic trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bisect_env.environments.records import Interpreter, Lock, Reason, Unavailable
from bisect_env.matrix.cells import Cell, Condition, EnvironmentRequest, Matrix, ReproducerChoice
from bisect_env.trials.records import Side, StepTime
from bisect_env.verdicts.looks import Design
from bisect_env.verdicts.records import Verdict
from bisect_env.verdicts.samples import Placed
from bisect_env.verdicts.verdict import judge, without_environment
from tests.verdicts.build import COLD, paths, side

AXES = ("torch", "cuda", "transformers", "pattern")
SIX = Design(6, 6)


@dataclass(frozen=True)
class Judged:
    """A row."""

    cell: Cell
    verdict: Verdict
    lock: Lock | None
    samples: Sequence[Placed]
    elsewhere: Sequence[Placed] = ()


def lock(**more: Any) -> Lock:
    """A lock of one package."""
    interpreter = Interpreter(Path("/usr/bin/python3"), "3.12.1", "cpython", "linux-x86_64")
    found = Lock("torch==2.14.1 \\\n    --hash=sha256:00\n", interpreter, (("torch", "2.14.1"),), "cpu", "a" * 16)
    return replace(found, **more)


def cell(torch: str, transformers: str, pattern: str = "hot") -> Cell:
    """A cell of the CPU matrix."""
    levels = (("torch", torch), ("cuda", "cpu"), ("transformers", transformers), ("pattern", pattern))
    request = EnvironmentRequest((f"torch=={torch}", f"transformers=={transformers}"), cuda="cpu")
    return Cell(f"torch-{torch}_transformers-{transformers}_{pattern}", levels, request, COLD)


def row(
    torch: str,
    transformers: str,
    threads: str,
    serial: str = "......",
    design: Design = SIX,
    reference: Sequence[Placed] | None = None,
    **more: Any,
) -> Judged:
    """A judged row; ids are fixed, so that texts can be compared."""
    trials = side(Side.THREADS, threads, **more) + side(Side.SERIAL, serial) + side(Side.SOLO, serial)
    blocks = [*range(len(threads)), *range(len(serial)), *range(len(serial))]
    samples = [
        Placed(replace(trial, id=f"{trial.side}-{block + 1}", seed=block), block)
        for trial, block in zip(trials, blocks, strict=True)
    ]
    return Judged(cell(torch, transformers), judge(samples, design, reference), lock(), samples)


def under(shown: Judged, key: str, value: str) -> Judged:
    """The row as a cell with this level of a further condition."""
    condition = Condition.of({**shown.cell.condition.as_dict(), key: value})
    levels = (*shown.cell.levels, (key, value))
    return replace(shown, cell=replace(shown.cell, id=f"{shown.cell.id}_{value}", levels=levels, condition=condition))


def speed(rate: float) -> tuple[StepTime, ...]:
    """Warm work at so many tokens a second."""
    return (StepTime("w0", round(rate * 10), 10.0, 10.0, True),)


def laptop() -> list[Judged]:
    """Race, race, full and dense, and a cell that cannot be resolved."""
    signs = {"math_attention": 31, "library_choice": 31}
    full = row("2.14.1", "4.52.4", "......", steps=speed(21_500), exposures=40)
    conflict = without_environment(Unavailable("resolve", Reason.CONFLICT, "a 1.0 needs b<2\nand b==2 is asked for"))
    return [
        row("2.11.0", "4.52.4", "FFFF", "...."),
        row("2.11.0", "5.8.1", "FFFFF."),
        full,
        row(
            "2.14.1",
            "5.8.1",
            "......",
            reference=full.samples,
            steps=speed(4_300),
            paths=paths(("w0", 100, dict.fromkeys(signs, 0)), ("w1", 100, signs)),
        ),
        Judged(cell("2.15.0", "5.8.1"), conflict, None, ()),
    ]


def matrix(rows: Sequence[Judged]) -> Matrix:
    """The matrix of those rows."""
    return Matrix("laptop", Path("laptop.yaml"), tuple(r.cell for r in rows), AXES, ReproducerChoice("compile_race"))
