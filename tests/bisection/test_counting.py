"""What a trial says of the question."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisect_env.bisection import counting
from bisect_env.bisection.ends import Ends, judge
from bisect_env.bisection.records import Measure, Observation, Question, Stage
from bisect_env.matrix.cells import Condition
from bisect_env.search.records import Tally
from bisect_env.trials.records import Failure, Outcome, Side, Signature, StepTime, TrialRecord
from bisect_env.verdicts.statistics import fisher_greater

RACE, OTHER = Signature("RuntimeError", "race", "torch.fx"), Signature("ValueError", "shape", "torch")


def trial(outcome: Outcome, *signatures: Signature, **facts: object) -> TrialRecord:
    failures = tuple(Failure("w0", signature, "", "", "", 0.0) for signature in signatures)
    return TrialRecord("t", "e", "r", Condition(()), Side.THREADS, 0, outcome, failures=failures, **facts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (trial(Outcome.CLEAN), "pass"),
        (trial(Outcome.FAILED, RACE), "failure"),
        (trial(Outcome.FAILED, OTHER), "other"),
        (trial(Outcome.FAILED, OTHER, RACE), "failure"),
        (trial(Outcome.IMPORT_FAILED, OTHER), "other"),
        (trial(Outcome.SKIPPED), "other"),
        (trial(Outcome.HANG), "other"),
    ],
)
def test_only_the_signature_of_the_question_counts(record: TrialRecord, said: str) -> None:
    assert counting.verdict(record, Question(), str(RACE)) == said


def test_any_failure_widens_the_question() -> None:
    question = Question(any_failure=True)
    records = [trial(Outcome.FAILED, OTHER), trial(Outcome.HANG), trial(Outcome.OOM), trial(Outcome.WRONG)]
    assert {counting.verdict(record, question, str(RACE)) for record in records} == {"failure"}
    assert counting.verdict(trial(Outcome.SKIPPED), question, None) == "other"


@pytest.mark.parametrize(("hang", "said"), [("bad", "failure"), ("good", "pass"), ("skip", "other")])
def test_what_a_time_out_means_is_asked_for(hang: str, said: str) -> None:
    assert counting.verdict(trial(Outcome.HANG), Question(hang=hang), counting.HUNG) == said


def test_thresholds_compare_what_came_to_its_end() -> None:
    steps = (StepTime("w0", 1000, 1.0, 1.0, True),)
    slow = Question(Measure.THROUGHPUT_BELOW, 2000)
    assert counting.verdict(trial(Outcome.CLEAN, steps=steps), slow, None) == "failure"
    assert counting.verdict(trial(Outcome.CLEAN, steps=steps), Question(Measure.THROUGHPUT_BELOW, 500), None) == "pass"
    assert counting.verdict(trial(Outcome.CLEAN), slow, None) == "other"
    assert counting.verdict(trial(Outcome.FAILED, RACE, steps=steps), slow, None) == "other"
    large = Question(Measure.MEMORY_ABOVE, 1e9)
    assert counting.verdict(trial(Outcome.CLEAN, peak_bytes=2 * 10**9), large, None) == "failure"
    assert counting.verdict(trial(Outcome.CLEAN, peak_bytes=10**9), large, None) == "pass"


def test_a_mix_that_only_shows_others_is_a_skip() -> None:
    broken = trial(Outcome.IMPORT_FAILED, OTHER, message="ImportError: libnothing.so")
    assert "libnothing" in counting.untestable([broken], Question(), 0)
    assert counting.untestable([trial(Outcome.SKIPPED, message="no GPU")], Question(), 0) == "no GPU"
    others = [trial(Outcome.FAILED, OTHER)] * counting.ONLY_OTHERS
    assert "ValueError: shape" in counting.untestable(others, Question(), 0)
    assert counting.untestable(others[1:], Question(), 0) == ""
    assert counting.untestable([*others, trial(Outcome.CLEAN)], Question(), 1) == ""


def seen(point: str, failures: int, passes: int, **shown: int) -> Observation:
    signatures = tuple(shown.items())
    return Observation(Stage.ENDS, 0, ((point, "bad"),), "", "", failures, passes, signatures=signatures)


def test_the_question_is_what_the_bad_end_shows_and_the_good_one_does_not() -> None:
    flaky, race = seen("a", 3, 1, network=3), seen("b", 4, 0, network=3, race=2)
    assert counting.signature_of([flaky], [race]) == "race"
    assert counting.signature_of([], [race]) == "network"
    assert counting.signature_of([flaky], [seen("b", 0, 4)]) is None
    again = counting.recounted(race, Question(), "race")
    assert (again.failures, again.passes, again.other) == (2, 0, 2)


@given(st.integers(0, 60), st.integers(0, 60), st.integers(1, 60))
def test_ends_that_differ_do_so_by_an_exact_test(good: int, bad: int, trials: int) -> None:
    good, bad = min(good, trials), min(bad, trials)
    verdict = judge(Tally(good, trials - good), Tally(bad, trials - bad), 0.95)
    if fisher_greater(bad, trials, good, trials) <= 0.05:
        assert verdict is Ends.DIFFER
    elif bad == 0 and trials >= 29:
        assert verdict is Ends.NOT_REPRODUCED
    elif good >= 2 and good >= bad and trials >= 8:
        assert verdict is Ends.GOOD_FAILS
    elif trials < 58:
        assert verdict is Ends.OPEN
    else:
        assert verdict in (Ends.DIFFER, Ends.GOOD_FAILS)
