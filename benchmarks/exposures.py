"""How much chance a minute of processes gives a race: calls made while another thread was compiling.

Two ways to spend the time take turns in the order A B B A, each trial a process under the runner with a cold cache:

  A  one plain barrier start a process
  B  the pattern `mixed` with several repeats a process

An exposure is a call that a thread makes while another one compiles: only such a call can be harmed. Those of one
process depend on each other, so they are no unit of any count; more of them make the one outcome of the process tell
more. A process ends at its first failure, and its time counts whole. The goal is a ratio of at least 5.

Choose an environment in which the trials come clean (torch 2.14 with transformers 4.52), or most end early.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

from measuring import say, scratch, show

from bisect_env.matrix.cells import Condition, Limits, ReproducerChoice
from bisect_env.matrix.options import read_options
from bisect_env.matrix.shipped import reproducers_folder
from bisect_env.trials import runner
from bisect_env.trials.records import Outcome, Side, TrialRecord, TrialSpec
from bisect_env.trials.reproducers import prepare

GOAL = 5.0
BARRIER, MIXED = "one barrier start", "mixed"


@dataclass(frozen=True)
class Spent:
    """A process."""

    exposures: int
    seconds: float
    compiles: int
    clean: bool

    @property
    def a_minute(self) -> float:
        """Exposures."""
        return 60 * self.exposures / self.seconds


def trial(root: Path, python: Path, number: int, chosen: dict[str, str | int]) -> Spent:
    """One process with these options, its compile cache cold."""
    options = read_options(reproducers_folder() / "dflash.py")
    condition = {name: option.default for name, option in options.items()} | {"cache": "cold"} | chosen
    spec = TrialSpec(
        id=str(number),
        environment="benchmark",
        python=python,
        pycache=root / "pycache",
        reproducer=prepare(ReproducerChoice("dflash")),
        condition=Condition.of(condition),
        side=Side.THREADS,
        seed=number,
        folder=root / "trials" / str(number),
        limits=Limits(trial=1200.0),
        silence=600.0,
    )
    record = runner.run(spec, threading.Event())
    if record.outcome not in (Outcome.CLEAN, Outcome.FAILED):
        sys.exit(f"a trial ended as {record.outcome}: {record.message}\n{record.output[-3000:]}")
    return Spent(_exposures(record), record.seconds, record.windows, record.outcome is Outcome.CLEAN)


def _exposures(record: TrialRecord) -> int:
    if record.exposures is None:
        sys.exit(f"a trial did not say its exposures:\n{record.output[-3000:]}")
    return record.exposures


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environment", type=Path, required=True, help="an interpreter that has torch")
    parser.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto", help="default: auto")
    parser.add_argument("--backend", default="aot_eager", help="of torch.compile (default: aot_eager)")
    parser.add_argument("--repeats", type=int, default=6, help="of a process with the pattern mixed (default: 6)")
    parser.add_argument(
        "--mitigation", default="none", help="of both ways; one that keeps trials clean (default: none)"
    )
    parser.add_argument("--rounds", type=int, default=2, help="rounds of A B B A (default: 2)")
    parser.add_argument("--scratch", type=Path, help="parent of the scratch folder")
    given = parser.parse_args()
    common: dict[str, str | int] = {
        "device": given.device, "backend": given.backend, "mitigation": given.mitigation,
    }  # fmt: skip
    ways: dict[str, dict[str, str | int]] = {
        BARRIER: {**common, "pattern": "barrier", "repeats": 1},
        MIXED: {**common, "pattern": "mixed", "repeats": given.repeats},
    }
    spent: dict[str, list[Spent]] = {name: [] for name in ways}
    python = given.environment.absolute()
    with scratch(given.scratch) as root:
        trial(root, python, 0, ways[BARRIER])  # fills the byte-code cache
        number = 1
        for _ in range(given.rounds):
            for name in (BARRIER, MIXED, MIXED, BARRIER):
                spent[name].append(trial(root, python, number, ways[name]))
                last = spent[name][-1]
                say(f"{name}: {last.exposures} exposures in {last.seconds:.1f} s")
                number += 1
    pooled = {name: 60 * sum(s.exposures for s in some) / sum(s.seconds for s in some) for name, some in spent.items()}
    rows = []
    for name, some in spent.items():
        ratio = pooled[name] / pooled[BARRIER]
        least, most = min(s.a_minute for s in some), max(s.a_minute for s in some)
        rows.append([
            name, str(len(some)), str(sum(s.clean for s in some)),
            f"{statistics.median(s.seconds for s in some):.1f}", f"{statistics.median(s.compiles for s in some):.0f}",
            f"{statistics.median(s.exposures for s in some):.0f}", f"{pooled[name]:.0f} ({least:.0f} to {most:.0f})",
            f"{ratio:.1f}", "" if name == BARRIER else "yes" if ratio >= GOAL else "no",
        ])  # fmt: skip
    headers = [
        "a process",
        "processes",
        "clean",
        "s (median)",
        "compiles",
        "exposures",
        "a minute",
        "ratio",
        "goal met",
    ]
    show(rows, headers, [f"mixed: {given.repeats} repeats; the ratio is of all exposures over all seconds."])


if __name__ == "__main__":
    main()
