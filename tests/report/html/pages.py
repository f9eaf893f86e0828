"""What the HTML reports are made of in these tests: matrices, bisections and gates, judged as real ones are."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bisect_env.bisection.concluding import conclude
from bisect_env.bisection.log import Header, History, Told
from bisect_env.bisection.records import Finding
from bisect_env.bisection.stages import Course
from bisect_env.gate.records import Announcement, Chance, Decision, GateResult, Line, Question, Rules, SideFacts
from bisect_env.matrix.cells import Matrix
from bisect_env.report.html import matrix as html
from bisect_env.snapshots.factors import Difference
from bisect_env.snapshots.records import Distribution, Snapshot
from bisect_env.store.trials import StoredTrial
from bisect_env.trials.records import Round, Side
from bisect_env.verdicts.looks import Design
from bisect_env.verdicts.samples import Placed
from bisect_env.verdicts.verdict import judge
from tests.bisection.simulated import World, factor, number, specification
from tests.report.build import Judged, laptop, row
from tests.report.build import matrix as matrix_of
from tests.verdicts.build import record

PLANTED = """<script>document.title = "planted"</script>'"><img src=x onerror=alert(1)>"""
"""What must stay text wherever it comes from."""
TORCH = ("2.11.0", "2.12.0", "2.12.1", "2.13.0", "2.14.1")


def matrix_page(rows: list[Judged] | None = None, **more: Any) -> str:
    """Of the laptop's matrix, or of these rows; ``more`` changes the matrix."""
    rows = laptop() if rows is None else rows
    matrix: Matrix = replace(matrix_of(rows), **more)
    return html.page(rows, matrix, 0.05)


def bisection(seed: int = 1, **more: Any) -> tuple[Finding, History]:
    """One of five packages is to blame, and one of its versions: the course of a real bisection, its trials drawn."""
    names = ("numpy", "tokenizers", "torch", "transformers", "triton-lang")
    factors = tuple(
        factor(name, "1.0", "2.0") if name != "torch" else factor(name, TORCH[0], TORCH[-1]) for name in names
    )

    def rate(chosen: Mapping[str, str]) -> float:
        return 0.6 if number(chosen, "torch", TORCH) >= 3 else 0.02

    asked = specification(factors)
    asked = replace(asked, good=side("good.txt", TORCH[0]), bad=side("bad.txt", TORCH[-1]), **more)
    course = Course(asked, factors)
    world = World(rate, seed, TORCH)
    answers: list[Any] = []
    while course.want is not None:
        answer = world.answer(course.want)
        if isinstance(answer, Told):
            first = len(course.observations)
            numbered = [replace(seen, batch=first + at) for at, seen in enumerate(answer.observations)]
            answer = replace(answer, observations=tuple(numbered))
        answers.append(answer)
        course.give(answer)
    header = Header("r0abcde", asked, factors, 0.0, "0.1.0")
    return conclude(course, header.id, 754.0), History(header, tuple(answers), len(answers))


def gate(*lines: Line, **more: Any) -> GateResult:
    """A candidate that races and is as fast as the baseline: what was measured is judged, the answers are as given."""
    old, new = timed("2.14.1", "4.52.4", "." * 8, 21_500, seed=1), timed("2.11.0", "4.52.4", "F.F.....", 21_300, seed=2)
    torch, numpy = factor("torch", "2.14.1", "2.11.0"), factor("numpy", "2.2.0", "2.3.0")
    announced = Announcement(
        59,
        59,
        (Chance(0.0, 1.0), Chance(0.03, 0.17)),
        12,
        3600.0,
        (Question.RACES, Question.THROUGHPUT),
        ("59 clean trials of the candidate pass: then its race rate is below 5 % at 95 %.",),
    )
    lines = lines or (
        Line(Question.ENVIRONMENT, Decision.PASS, "It resolves, installs and imports.", "", ""),
        Line(
            Question.RACES,
            Decision.FAIL,
            "2 of 8 threaded trials of the candidate failed: its race rate is not below 5 %.",
            "0/8 (0-37 %)",
            "2/8 (3-65 %)",
            (("failed", 2), ("trials", 8), ("low", 0.0319)),
            trials=tuple(sample.record.id for sample in new.samples),
        ),
        Line(
            Question.THROUGHPUT,
            Decision.INCONCLUSIVE,
            "The candidate's throughput is 0.99 (0.95-1.03) of the baseline's: not shown to be at least 0.97.",
            "21.5k tok/s",
            "21.3k tok/s",
            more="some 24 more pairs of rounds",
        ),
        Line(Question.MEMORY, Decision.NOT_ASKED, "There is no GPU.", "", ""),
    )
    result = GateResult(
        "g0abcde",
        Decision.FAIL,
        lines,
        Difference((numpy, torch), notes=("conda and pip disagree about numpy",)),
        announced,
        Rules(),
        SideFacts("baseline", side("base.txt", "2.14.1"), old.cell, old.lock, "a" * 16, old.verdict, stored(old)),
        SideFacts("candidate", side("new.txt", "2.11.0"), new.cell, new.lock, "b" * 16, new.verdict, stored(new)),
        "bisect-env bisect --good base.txt --bad new.txt",
        trials=32,
        builds=2,
        seconds=754.0,
    )
    return replace(result, **more)


def side(origin: str, torch: str) -> Snapshot:
    """A snapshot of one package."""
    return Snapshot(origin, "pip freeze", (Distribution("torch", torch),))


def stored(shown: Judged) -> tuple[StoredTrial, ...]:
    """A row's trials as the store has them."""
    return tuple(StoredTrial(sample.record, sample.block, "r1") for sample in shown.samples)


def timed(torch: str, transformers: str, threads: str, rate: float, rounds: int = 24, seed: int = 0) -> Judged:
    """A judged row with rounds whose tokens a second scatter by 2 % about ``rate``."""
    draw = random.Random(seed)
    seconds = [10 / draw.gauss(1, 0.02) for _ in range(rounds)]
    measured = tuple(Round(index, round(rate * 10), each, 100.0 + 20 * index) for index, each in enumerate(seconds))
    shown = row(torch, transformers, threads)
    trial = record(Side.ROUNDS, rounds=measured, id=f"rounds-{torch}-{transformers}")
    samples = [*shown.samples, Placed(trial, 0)]
    return replace(shown, samples=samples, verdict=judge(samples, Design(len(threads), 6)))
