"""A small part of benchmarks/gate.py: enough gates to see a rule that is wrong, too few for its last percent."""

from __future__ import annotations

from dataclasses import replace

from bisect_env.gate.records import Decision, Question, Rules
from bisect_env.gate.simulation import Simulated, World, simulate

RUNS = 60


def gates(world: World, runs: int = RUNS) -> list[Simulated]:
    return list(simulate(world, Rules(), runs, 11))


def share(done: list[Simulated], decision: Decision, question: Question | None = None) -> float:
    return sum((run.of(question) if question else run.decision) is decision for run in done) / len(done)


def test_an_unchanged_candidate_passes() -> None:
    done = gates(World())
    assert share(done, Decision.PASS) >= 0.95
    assert {run.trials for run in done} == {59}


def test_three_percent_of_races_hardly_ever_fail_and_thirty_do() -> None:
    few = gates(World(candidate_rate=0.03))
    assert share(few, Decision.FAIL) <= 0.05
    many = gates(World(candidate_rate=0.3))
    assert share(many, Decision.FAIL) > 0.95
    assert sum(run.trials for run in many) / RUNS < 30


def test_five_percent_slower_does_not_pass() -> None:
    done = gates(World(ratio=0.95))
    assert share(done, Decision.PASS) == 0
    assert share(done, Decision.FAIL, Question.THROUGHPUT) > 0.7


def test_noise_takes_more_pairs_and_the_same_seed_the_same_gate() -> None:
    calm, noisy = (sum(run.pairs for run in gates(World(noise=noise), 10)) for noise in (0.01, 0.06))
    assert noisy > calm
    world = World(candidate_rate=0.1)
    assert gates(world, 3) == gates(replace(world), 3)
