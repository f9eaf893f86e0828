"""What the witness costs a trial, and whether a failure still happens under it.

Trials of the shipped compile_race.py take turns in one run, without a witness and with one, in the order A B B A. Two
conditions: `steady`, one compile and many warm calls, for the time of a warm call; and the pattern asked for, for the
share of trials that fail and their seconds. On a torch whose trials fail in `steady` too, its calls a second are those
until then.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

from measuring import say, scratch, show

from bisect_env.explanation.log import read_log
from bisect_env.matrix.cells import Condition, Limits, ReproducerChoice
from bisect_env.trials import reproducers, runner
from bisect_env.trials.records import Outcome, Side, TrialRecord, TrialSpec

SIDES = (Side.THREADS, Side.WITNESS)
SILENCE = 120.0
ROWS = 16
"""Tokens of one call of compile_race.py's functions."""


@dataclass
class Found:
    """The trials of one condition, by side."""

    records: dict[Side, list[TrialRecord]] = field(default_factory=lambda: {side: [] for side in SIDES})


def trial(root: Path, python: Path, condition: Condition, side: Side, number: int) -> TrialRecord:
    """One trial."""
    spec = TrialSpec(
        id=f"{side.value}-{number}",
        environment="benchmark",
        python=python,
        pycache=root / "pycache",
        reproducer=reproducers.prepare(ReproducerChoice("compile_race")),
        condition=condition,
        side=side,
        seed=number,
        folder=root / "trials" / f"{side.value}-{number}",
        limits=Limits(trial=300.0, import_time=120.0),
        silence=SILENCE,
    )
    record = runner.run(spec, threading.Event())
    if record.outcome not in (Outcome.CLEAN, Outcome.FAILED):
        sys.exit(f"a trial was {record.outcome}, so that its time says nothing: {record.message}\n{record.output}")
    return record


def measure(root: Path, python: Path, name: str, condition: Condition, pairs: int) -> Found:
    """``pairs`` trials of each side, in turns."""
    found = Found()
    trial(root, python, condition, Side.THREADS, 0)  # fills the byte-code cache
    for number in range(1, pairs + 1):
        for side in SIDES if number % 2 else reversed(SIDES):
            record = trial(root, python, condition, side, number)
            found.records[side].append(record)
            say(f"{name} {number}/{pairs} {side.value}: {record.outcome.value}, {record.seconds:.1f} s, {told(record)}")
    return found


def told(record: TrialRecord) -> str:
    """How much its witness said."""
    log = read_log(record.witness)
    return f"{len(log.events)} events, {len(record.witness) // 1024} KB" if log else "no log"


def pace(record: TrialRecord) -> float:
    """Warm calls a second of the threads that made some."""
    warm = [step for step in record.steps if step.warm]
    return sum(step.tokens for step in warm) / ROWS / max(sum(step.seconds for step in warm), 1e-9)


def rows(name: str, found: Found) -> list[list[str]]:
    """A line a side."""
    plain, seen = (found.records[side] for side in SIDES)
    lines = []
    for records in (plain, seen):
        pairs = list(zip(records, plain, strict=True))
        seconds = statistics.median(a.seconds / b.seconds for a, b in pairs)
        paces = statistics.median(pace(a) / max(pace(b), 1e-9) for a, b in pairs)
        lines.append(
            [
                name,
                "with the witness" if records is seen else "without",
                f"{sum(record.outcome is Outcome.FAILED for record in records)}/{len(records)}",
                f"{statistics.median(record.seconds for record in records):.2f}",
                f"{seconds:.2f}" if records is seen else "",
                f"{statistics.median(map(pace, records)):.0f}",
                f"{paces:.2f}" if records is seen else "",
            ]
        )
    return lines


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environment", type=Path, required=True, help="an interpreter with torch")
    parser.add_argument("--pattern", default="hot", help="of compile_race.py (default: hot)")
    parser.add_argument("--pairs", type=int, default=10, help="trials of each side of it (default: 10)")
    parser.add_argument("--steady", type=int, default=4, help="trials of each side of `steady` (default: 4)")
    parser.add_argument("--calls", type=int, default=3000, help="warm calls of `steady` (default: 3000)")
    asked = parser.parse_args()
    common = {"threads": 2, "device": "cpu"}
    conditions = {
        "steady": (asked.steady, common | {"pattern": "hot", "functions": 1, "calls": asked.calls}),
        asked.pattern: (asked.pairs, common | {"pattern": asked.pattern}),
    }
    python = asked.environment.absolute()
    lines: list[list[str]] = []
    versions = ""
    with scratch(None) as root:
        for name, (pairs, values) in conditions.items():
            if not pairs:
                continue
            found = measure(root, python, name, Condition.of(values), pairs)
            lines += rows(name, found)
            versions = ", ".join(f"{key} {value}" for key, value in found.records[Side.THREADS][0].versions)
    headers = ["condition", "", "failed", "s a trial", "x", "warm calls/s", "x"]
    show(lines, headers, [versions, "x: with the witness over without, the median over pairs"])


if __name__ == "__main__":
    main()
