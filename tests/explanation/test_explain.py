"""The explanation of a cell: counts, a failure that vanishes under the witness, and what the witness costs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bisect_env.explanation.explain import account, cost, explain, is_explained, vanished, went_wrong
from bisect_env.trials.records import Outcome, PathCount, Side, StepTime, TrialRecord
from tests.explanation.logs import FX, START, failure, trial

HEADER = f'{{"witness": 1, "python": "3.11.9", "pid": 1, "started": {START}}}\n{{"torch": "2.11.0"}}\n'


def written(record: TrialRecord, *events: str) -> TrialRecord:
    """With a log as the witness writes it."""
    return replace(record, witness=HEADER + "".join(f"{event}\n" for event in events) + f'{{"end": {START + 9}}}\n')


RACE = (
    '{"watched": "trace", "where": "torch/fx/_symbolic_trace.py: Tracer.trace", "how": "enter and leave"}',
    '{"stack": 1, "frames": [["torch/fx/_symbolic_trace.py", 781, "trace"]]}',
    f'{{"e": [{START + 1}, "w0", "trace", "enter", "Tracer.trace", 1]}}',
    f'{{"e": [{START + 1.1}, "w0", "fx-tracing", "set", "True, was False", 1]}}',
    f'{{"e": [{START + 1.2}, "w1", "fx-tracing", "obeyed", "raised", 0]}}',
)


def test_from_logs_to_the_explanation() -> None:
    failed = failure("w1", START + 1.2)
    trials = [
        written(trial(failed, name="bad", side=Side.WITNESS), *RACE),
        written(trial(name="good", side=Side.WITNESS)),
        trial(failed, name="silent", side=Side.WITNESS),
        trial(name="lost", side=Side.WITNESS, outcome=Outcome.INFRA),
    ]
    plain = [trial(failed), trial(failed), trial(outcome=Outcome.INFRA)]
    found = explain("cell", "aaaa1111", trials, plain, [trial(side=Side.SERIAL)])
    assert [each.trial for each in found.accounts] == ["bad", "good", "silent"]
    assert (found.failed, found.plain_failed, found.plain, found.vanished) == (2, 2, 2, "")
    assert found.accounts[0].collisions[0].culprit == "w0" and found.accounts[2].log is None
    assert found.notes == ("The witness did not start in 1 of 3 trials: counted, and not explained.",)
    assert is_explained(found)
    assert not is_explained(explain("cell", "aaaa1111", trials[1:], plain))


def test_a_trial_that_went_wrong_unseen_is_named() -> None:
    wrong = replace(trial(name="wrong"), outcome=Outcome.WRONG)
    found = explain("cell", "aaaa1111", [written(wrong)])
    assert found.failed == 1 and found.notes == ("Went wrong, and the witness saw nothing that explains it: wrong.",)


def test_dense_trials_went_wrong() -> None:
    dense = replace(trial(), paths=(PathCount("w1", 200, (("math_attention", 2),)),))
    assert went_wrong(dense) and not went_wrong(replace(dense, paths=(PathCount("w1", 201, (("kernels", 2),)),)))
    assert not went_wrong(replace(dense, paths=(PathCount("w1", 0, (("kernels", 0),)),)))


def test_no_log_no_account() -> None:
    assert account(trial(), None).sentences == (
        "The witness did not start in this trial: nothing is known of what its threads did.",
    )


@pytest.mark.parametrize(
    ("counts", "says"),
    [
        (
            (0, 12, 6, 6),
            "It did not occur under the witness: 0 of 12 trials went wrong with it, and 6 of 6 without",
        ),
        ((2, 12, 6, 6), "It is rarer under the witness: 2 of 12"),
        ((5, 6, 6, 6), ""),
        ((0, 12, 0, 6), ""),
        ((0, 0, 6, 6), ""),
        ((0, 12, 0, 0), ""),
        ((6, 6, 0, 6), ""),
    ],
)
def test_a_failure_that_vanishes_is_said_to(counts: tuple[int, int, int, int], says: str) -> None:
    text = vanished(*counts)
    assert text.startswith(says) if says else not text


def rated(tokens: int, at_once: int = 1, seconds: float = 9.0) -> TrialRecord:
    steps = (StepTime("w0", tokens, 1.0, START + 2, True),)
    return replace(trial(), steps=steps, at_once=at_once, seconds=seconds)


def test_its_cost_is_in_tokens_a_second_where_there_are_any() -> None:
    assert cost([rated(900)], [rated(1000), rated(1100), rated(1000)]) == (
        "Warm work at 900 tokens/s with the witness and 1,000 without: 10 % less (medians of 1 trials between"
        " 900 and 900, and of 3 trials between 1,000 and 1,100)."
    )


def test_else_in_seconds_of_clean_trials_and_else_it_is_not_known() -> None:
    slow, quick = replace(trial(), seconds=12.0), replace(trial(), seconds=10.0)
    assert cost([slow], [quick]).startswith("A clean trial took 12.0 s with the witness and 10.0 s without")
    assert cost([slow], [rated(1000, at_once=3)]).startswith("Not known: no trials")
    dead = replace(trial(failure("w1", START)), seconds=4.0)
    assert cost([dead, slow, slow], [dead]) == (
        "Trials took 12.0 s with the witness and 4.0 s without (medians of 3 and 1), but one that fails ends when it"
        " does."
    )
    assert cost([replace(dead, outcome=Outcome.HANG)], [dead]).startswith("Not known: no trials")
    assert cost([slow], []).startswith("Not known: the store has no trial of this cell without the witness")


def test_a_failure_that_the_exit_status_hides_is_said_to_be_hidden() -> None:
    dead = f'{{"e": [{START + 1.3}, "w1", "uncaught-exception", "raised", "RuntimeError: {FX}", 0]}}'
    found = explain("cell", "aaaa1111", [written(trial(), *RACE, dead), written(trial(), *RACE)])
    assert found.failed == 0 and is_explained(found)
    [note] = found.notes
    assert note.startswith("1 trial ended clean although an exception ended a thread")
