from __future__ import annotations

from collections.abc import Sequence

import pytest

from bisect_env.gate.deciding import ENDED, GO_ON, certain_fail, decision, lines
from bisect_env.gate.needed import needed
from bisect_env.gate.records import Decision, Line, Question, Rules
from bisect_env.store.trials import StoredTrial
from bisect_env.trials.records import Failure, Outcome, PathCount, Round, Side, Signature, StepTime
from tests.gate.build import trial

GIB = 2**30
ENVIRONMENT = Line(Question.ENVIRONMENT, Decision.PASS, "", "", "")
FX = Failure("w0", Signature("RuntimeError", "FX to symbolically trace", "torch"), "", "", "", 1.0)
FUSED = (PathCount("w0", 100, (("library_choice", 0), ("math_attention", 0))),)
DENSE = (PathCount("w0", 100, (("library_choice", 90), ("math_attention", 90))),)
THREE = Rules(trials=3, max_race_rate=0.7)
AS_JUDGED = (Question.MEMORY, Question.ATTENTION, Question.NUMBERS)
DOUBTFUL = (PathCount("w0", 100, (("library_choice", 90),)),)


def threads(count: int, bad: Sequence[int] = (), **more: object) -> list[StoredTrial]:
    """Threaded trials; those of the blocks in ``bad`` failed."""
    return [
        trial(block, Outcome.FAILED, failures=(FX,), **more) if block in bad else trial(block, **more)
        for block in range(count)
    ]


def rounds(sessions: int, rate: float, first: float = 0.0, apart: float = 0.0) -> list[StoredTrial]:
    """Sessions of 4 rounds each, of about so many tokens a second; every second start is slower by ``apart``."""
    found = []
    for block in range(sessions):
        times = tuple(1000 / rate * (1 + apart * (block % 2) + 0.001 * ((block + i) % 3)) for i in range(4))
        timed = tuple(Round(i, 1000, each, 100.0 * i + first + each) for i, each in enumerate(times))
        found.append(trial(block, side=Side.ROUNDS, rounds=timed))
    return found


def decided(
    baseline: list[StoredTrial], candidate: list[StoredTrial], rules: Rules | None = None
) -> dict[Question, Line]:
    rules = rules or Rules()
    return {line.question: line for line in lines(rules, needed(rules), ENVIRONMENT, baseline, candidate)}


def test_a_line_for_every_question_in_their_order() -> None:
    side = [*threads(59, peak_bytes=GIB, paths=FUSED, numbers=(("x", 0.0, 1.0),)), *rounds(8, 100)]
    other = [*threads(59, peak_bytes=GIB, paths=FUSED, numbers=(("x", 0.0, 1.0),)), *rounds(8, 100, 50.0)]
    found = lines(Rules(), needed(Rules()), ENVIRONMENT, side, other)
    assert [line.question for line in found] == list(Question)
    assert {line.decision for line in found} == {Decision.PASS}
    assert decision(found) is Decision.PASS
    assert all(line.trials and line.figures for line in found[1:])


@pytest.mark.parametrize("there", [1, 30, 58])
def test_a_part_of_the_trials_passes_no_question_and_can_fail_one(there: int) -> None:
    whole = threads(59, peak_bytes=GIB, paths=FUSED, numbers=(("x", 0.0, 1.0),))
    part = decided(whole, whole[:there])
    assert Decision.PASS not in {line.decision for question, line in part.items() if question in AS_JUDGED}
    for question in AS_JUDGED:
        assert part[question].more == GO_ON and f"so far, after {there} of 59" in part[question].sentence
        assert decided(whole, whole)[question].decision is Decision.PASS
    larger = threads(there, peak_bytes=2 * GIB, paths=DENSE, numbers=(("x", 2.0, 1.0),))
    assert {decided(whole, larger)[question].decision for question in AS_JUDGED} == {Decision.FAIL}
    raced = decided(whole, threads(3, [0, 1, 2], peak_bytes=GIB))
    assert raced[Question.MEMORY].decision is Decision.INCONCLUSIVE and raced[Question.MEMORY].more == ENDED


def test_races_pass_fail_or_stay_open() -> None:
    passes = decided(threads(59), threads(59))[Question.RACES]
    assert (passes.decision, passes.candidate) == (Decision.PASS, "0 of 59 (0 %)")
    assert "below 4.95 % at 95 %, and the limit is 5 %" in passes.sentence
    fails = decided(threads(59), threads(5, [1, 2, 4]))[Question.RACES]
    assert (fails.decision, dict(fails.figures)["candidate_bad"]) == (Decision.FAIL, 3)
    assert "FX to symbolically trace" in fails.sentence and len(fails.trials) == 3
    one = decided(threads(59), threads(59, [7]))[Question.RACES]
    assert (one.decision, len(one.trials)) == (Decision.INCONCLUSIVE, 1)
    assert "--trials 181" in one.more
    assert "the baseline races too: 2 of 59" in decided(threads(59, [1, 2]), threads(59))[Question.RACES].sentence


def test_what_is_missing_is_told() -> None:
    some = decided(threads(20), threads(20))[Question.RACES]
    assert (some.decision, some.more[:9]) == (Decision.INCONCLUSIVE, "39 trials")
    lost = decided(threads(20), threads(20, [12]))[Question.RACES]
    assert "cannot pass any more" in lost.more
    none = decided(threads(20), [])[Question.RACES]
    assert none.decision is Decision.INCONCLUSIVE and none.more


def test_infrastructure_and_other_sides_do_not_count() -> None:
    extra = [
        trial(60, Outcome.INFRA),
        trial(61, Outcome.SKIPPED),
        trial(0, Outcome.FAILED, Side.SERIAL),
        trial(62, Outcome.FAILED, resets=1),
    ]
    assert decided(threads(59), [*threads(59), *extra])[Question.RACES].decision is Decision.PASS


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.HANG, Outcome.OOM])
def test_failed_hung_and_out_of_memory_are_bad(outcome: Outcome) -> None:
    candidate = [trial(block, outcome) for block in range(2)]
    assert certain_fail(Rules(), needed(Rules()), [], candidate)
    assert not certain_fail(Rules(), needed(Rules()), [], candidate[:1])


def test_a_margin_compares_with_the_baseline() -> None:
    rules = Rules(no_worse=0.2, trials=40)
    same = decided(threads(40, range(8)), threads(40, range(4, 10)), rules)[Question.RACES]
    worse = decided(threads(40), threads(40, range(30)), rules)[Question.RACES]
    near = decided(threads(40), threads(40, range(8)), rules)[Question.RACES]
    assert [line.decision for line in (same, worse, near)] == [Decision.PASS, Decision.FAIL, Decision.INCONCLUSIVE]
    assert "by less than 20 %" in same.sentence and "by more than 20 %" in worse.sentence
    assert "8 of 40" in same.sentence and near.more
    early = decided(threads(10), threads(12), rules)[Question.RACES]
    assert "28 trials of the candidate and 30 of the baseline" in early.more


def test_announced_rounds_that_were_not_timed_are_no_pass() -> None:
    both = threads(59, peak_bytes=GIB), threads(59, peak_bytes=GIB)
    found = lines(Rules(), needed(Rules()), ENVIRONMENT, *both)
    (timed,) = (line for line in found if line.question is Question.THROUGHPUT)
    assert timed.decision is Decision.INCONCLUSIVE and "was timed" in timed.sentence
    assert decision(found) is Decision.INCONCLUSIVE, "the budget was over before the first session"
    silent = needed(Rules(), asked=(Question.ENVIRONMENT, Question.RACES, Question.MEMORY))
    assert decision(lines(Rules(), silent, ENVIRONMENT, *both)) is Decision.PASS, "a command that times nothing"


def test_throughput_pairs_sessions() -> None:
    base = [*threads(1), *rounds(8, 100)]
    same, slower = (decided(base, [*threads(1), *rounds(8, rate, 50.0)])[Question.THROUGHPUT] for rate in (100, 90))
    assert (same.decision, slower.decision) == (Decision.PASS, Decision.FAIL)
    assert dict(slower.figures)["ratio"] == pytest.approx(0.9, abs=0.002)
    assert dict(same.figures)["sessions"] == 8 and dict(same.figures)["pairs"] == 32
    assert len(same.trials) == 8 and same.baseline.endswith("tokens/s")
    half = decided(base, threads(3))[Question.THROUGHPUT]
    assert half.decision is Decision.INCONCLUSIVE and half.more


@pytest.mark.parametrize("rate", [100, 60])
@pytest.mark.parametrize("there", range(1, 8))
def test_throughput_has_no_answer_before_all_of_its_pairs_are_in(there: int, rate: float) -> None:
    line = decided(rounds(there, 100), rounds(there, rate, 50.0))[Question.THROUGHPUT]
    assert (line.decision, f"{8 - there} more start" in line.more) == (Decision.INCONCLUSIVE, True)
    fixed = decided(rounds(there, 100), rounds(there, rate, 50.0), Rules(pairs=4 * there + 1))[Question.THROUGHPUT]
    assert (fixed.decision, "1 more start" in fixed.more) == (Decision.INCONCLUSIVE, True)


def test_an_open_race_question_gets_no_further_pairs_of_trials() -> None:
    rules = Rules(trials=6, max_race_rate=0.4)
    figures = {"steps": (StepTime("w0", 100, 1.0, 1.0, True),), "at_once": 1}
    timed = decided(threads(6, **figures), threads(6, [2], **figures), rules)[Question.THROUGHPUT]
    assert timed.decision is Decision.INCONCLUSIVE and "race question stays open" in timed.more
    earlier = decided(threads(5, **figures), threads(5, [2], **figures), rules)[Question.THROUGHPUT]
    assert "the same command goes on" in earlier.more


def test_throughput_in_between_says_how_many_pairs_would_tell() -> None:
    base = [*threads(1), *rounds(8, 100)]
    near = decided(base, [*threads(1), *rounds(8, 100, 50.0, 0.05)])[Question.THROUGHPUT]
    assert near.decision is Decision.INCONCLUSIVE
    assert "--pairs" in near.more and "would pass with a chance of 80 %" in near.more
    at_limit = decided(base, [*threads(1), *rounds(8, 98.25, 50.0, 0.025)])[Question.THROUGHPUT]
    assert at_limit.decision is Decision.INCONCLUSIVE and "too near the limit" in at_limit.more


def test_other_runs_are_not_paired() -> None:
    old = [trial(block, side=Side.ROUNDS, run="old", rounds=(Round(0, 1000, 10.0, 10.0),)) for block in range(8)]
    found = decided([*threads(1), *old], [*threads(1), *rounds(8, 100)])[Question.THROUGHPUT]
    assert found.decision is Decision.INCONCLUSIVE


def test_memory_is_a_ratio_of_peaks() -> None:
    base = threads(3, peak_bytes=100 * GIB)
    within, above = (decided(base, threads(3, peak_bytes=n * GIB), THREE)[Question.MEMORY] for n in (105, 106))
    assert (within.decision, above.decision) == (Decision.PASS, Decision.FAIL)
    assert above.candidate == "106.00 GiB" and len(above.trials) == 2
    assert decided(threads(3), threads(3))[Question.MEMORY].decision is Decision.NOT_ASKED
    silent = decided(base, threads(3))[Question.MEMORY]
    assert silent.decision is Decision.INCONCLUSIVE and "of the candidate does" in silent.sentence


@pytest.mark.parametrize(
    ("baseline", "candidate", "expected"),
    [
        (FUSED, FUSED, Decision.PASS),
        (FUSED, DENSE, Decision.FAIL),
        (DENSE, DENSE, Decision.PASS),
        (DENSE, FUSED, Decision.PASS),
        (FUSED, DOUBTFUL, Decision.INCONCLUSIVE),
        (DOUBTFUL, DENSE, Decision.INCONCLUSIVE),
        (FUSED, (), Decision.INCONCLUSIVE),
        ((), (), Decision.NOT_ASKED),
    ],
)
def test_attention(baseline: tuple[PathCount, ...], candidate: tuple[PathCount, ...], expected: Decision) -> None:
    line = decided(threads(3, paths=baseline), threads(3, paths=candidate), THREE)[Question.ATTENTION]
    assert line.decision is expected
    assert bool(line.more) == (expected is Decision.INCONCLUSIVE)


def test_one_wrong_number_is_a_fail_also_beside_a_wrong_baseline() -> None:
    right, wrong = (("output", 0.001, 0.01),), (("output", 0.5, 0.01),)
    good = threads(3, numbers=right)
    assert decided(good, threads(3, numbers=right), THREE)[Question.NUMBERS].decision is Decision.PASS
    bad = [*threads(2, numbers=right), trial(2, numbers=wrong)]
    failed = decided(good, bad)[Question.NUMBERS]
    assert (failed.decision, failed.candidate, len(failed.trials)) == (Decision.FAIL, "1 of 3 wrong", 1)
    both = decided(bad, bad)[Question.NUMBERS]
    assert both.decision is Decision.FAIL and "the baseline's are wrong as well" in both.sentence
    assert decided(threads(3), threads(3))[Question.NUMBERS].decision is Decision.NOT_ASKED


def test_a_candidate_that_cannot_be_had_fails_by_that_alone() -> None:
    missing = Line(Question.ENVIRONMENT, Decision.FAIL, "it does not resolve", "", "")
    found = lines(Rules(), needed(Rules()), missing, threads(1), [])
    assert [line.decision for line in found] == [Decision.FAIL] + [Decision.NOT_ASKED] * 5
    assert decision(found) is Decision.FAIL


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ("pass pass", Decision.PASS),
        ("pass not_asked", Decision.PASS),
        ("pass inconclusive", Decision.INCONCLUSIVE),
        ("inconclusive fail", Decision.FAIL),
        ("fail pass", Decision.FAIL),
        ("not_asked", Decision.INCONCLUSIVE),
    ],
)
def test_the_gates_decision(answers: str, expected: Decision) -> None:
    made = [Line(Question.RACES, Decision[each.upper()], "", "", "") for each in answers.split()]
    assert decision(made) is expected
