"""Gates of a known truth: trials and rounds are drawn, everything else is what a real gate does. Pure, seeded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from math import exp, log

import numpy as np

from bisect_env.gate import deciding
from bisect_env.gate.needed import needed
from bisect_env.gate.records import Announcement, Decision, Line, Question, Rules
from bisect_env.gate.throughput import sessions_wanted
from bisect_env.matrix.cells import Condition
from bisect_env.trials.records import Outcome, PathCount, Round, Side, TrialRecord
from bisect_env.verdicts.samples import Placed, by_side
from bisect_env.verdicts.throughput import sessions

PEAK = 8 * 2**30
STALL = 1.0
"""A round that stalls takes e times as long."""
ENVIRONMENT = Line(Question.ENVIRONMENT, Decision.PASS, "", "", "")


@dataclass(frozen=True)
class World:
    """What is true of two environments and their machine. Deviations are of logarithms, so 0.03 is 3 %."""

    candidate_rate: float = 0.0
    """Of threaded trials that go wrong."""
    baseline_rate: float = 0.0
    ratio: float = 1.0
    """Of the candidate's tokens a second to the baseline's."""
    noise: float = 0.03
    """Deviation of each round."""
    start: float = 0.0
    """Deviation that all rounds of one process share."""
    rounds: int = 8
    """Of one session."""
    stalled: float = 0.0
    """Share of rounds that stall."""
    peak: float = 0.03
    """Deviation of each trial's peak memory."""


@dataclass(frozen=True)
class Simulated:
    """How one gate ended."""

    decision: Decision
    answers: tuple[tuple[Question, Decision], ...]
    trials: int
    """Threaded trials of the candidate."""
    pairs: int

    def of(self, question: Question) -> Decision:
        """The answer to one question."""
        return dict(self.answers)[question]


def simulate(world: World, rules: Rules, runs: int, seed: int) -> Iterator[Simulated]:
    """Gates one after another, each drawn from a seed of its own."""
    announced = needed(rules, rounds=world.rounds, baseline_rate=world.baseline_rate)
    for run in range(runs):
        yield _gate(world, rules, announced, np.random.default_rng([seed, run]))


def _gate(world: World, rules: Rules, announced: Announcement, random: np.random.Generator) -> Simulated:
    numbers = count()
    rates = world.baseline_rate, world.candidate_rate
    blocks = announced.baseline_trials, announced.blocks
    base, own = (
        [Placed(_trial(random, next(numbers), rate, world.peak), block) for block in range(n)]
        for rate, n in zip(rates, blocks, strict=True)
    )
    done, most = 0, announced.most_pairs or 0
    while done < (wanted := sessions_wanted(rules, sessions(by_side(own), by_side(base)), world.rounds, most)):
        for block in range(done, wanted):
            pair = _session(random, next(numbers), world)
            for records, record in zip((base, own), pair, strict=True):
                records.append(Placed(record, block))
        done = wanted
    lines = deciding.lines(rules, announced, ENVIRONMENT, base, own)
    figures = {line.question: dict(line.figures) for line in lines}
    return Simulated(
        deciding.decision(lines),
        tuple((line.question, line.decision) for line in lines),
        int(figures[Question.RACES]["candidate_trials"]),
        int(figures[Question.THROUGHPUT]["pairs"]),
    )


def _trial(random: np.random.Generator, number: int, rate: float, peak: float) -> TrialRecord:
    outcome = Outcome.FAILED if random.random() < rate else Outcome.CLEAN
    return _record(
        f"t{number}",
        Side.THREADS,
        outcome,
        peak_bytes=round(PEAK * exp(peak * random.standard_normal())),
        paths=(PathCount("w0", 100, (("library_choice", 0), ("math_attention", 0))),),
        numbers=(("output", 1e-4, 1e-2),),
    )


def _session(random: np.random.Generator, number: int, world: World) -> tuple[TrialRecord, TrialRecord]:
    """Both processes' rounds, in turn."""
    made = []
    for place, ratio in enumerate((1.0, world.ratio)):
        shared = log(ratio) + world.start * random.standard_normal()
        rates = shared + world.noise * random.standard_normal(world.rounds)
        rates -= STALL * (random.random(world.rounds) < world.stalled)
        rounds = tuple(
            Round(i, 1_000_000, exp(-value), 100.0 * i + 10.0 * place + exp(-value)) for i, value in enumerate(rates)
        )
        made.append(_record(f"r{number}-{place}", Side.ROUNDS, Outcome.CLEAN, rounds=rounds))
    return made[0], made[1]


def _record(name: str, side: Side, outcome: Outcome, **more: object) -> TrialRecord:
    return TrialRecord(name, "", "", Condition.of({}), side, 0, outcome, **more)  # type: ignore[arg-type]
