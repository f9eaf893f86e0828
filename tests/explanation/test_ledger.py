"""The ledger: kept by what explains, eliminated by what was watched and absent, undecided with what would tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisect_env.explanation.explain import account
from bisect_env.explanation.ledger import hypotheses_of
from bisect_env.explanation.records import Action, Frame, Hypothesis, Standing, State
from bisect_env.trials.records import TrialRecord
from tests.explanation.logs import START, TRACING, Story, failure, race, trial
from tests.explanation.test_windows import stories

ALL = (Standing.KEPT, Standing.ELIMINATED, Standing.UNDECIDED, Standing.UNTESTED)


def ledger(
    *told: tuple[Story, TrialRecord], threads: tuple[int, int] = (0, 0), serial: tuple[int, int] = (0, 0)
) -> dict[str, Hypothesis]:
    records = [record for _, record in told]
    accounts = [account(record, story.log) for story, record in told]
    return {each.name: each for each in hypotheses_of(records, accounts, threads, serial)}


def standing(found: dict[str, Hypothesis], which: Standing) -> set[str]:
    return {name for name, each in found.items() if each.standing is which}


def raced(torch: str = "2.11.0", value: str = "forward") -> tuple[Story, TrialRecord]:
    story, failed = race(torch, value)
    return story, trial(failed, warm=("w1", START + 0.9))


def test_a_race_keeps_the_trace_and_the_compile_and_eliminates_what_was_watched_and_absent() -> None:
    found = ledger(raced(), raced(), threads=(6, 6), serial=(0, 6))
    assert standing(found, Standing.KEPT) == {
        "another thread's trace",
        "torch.compile itself does it",
        "the failure needs two threads",
        "failing calls were warm",
    }
    assert standing(found, Standing.ELIMINATED) == {
        "a lazy backward did the tracing",
        "the tracing flag sticks",
        "is_compiling() of another thread",
        "create_block_mask traces",
        "the thread's own trace",
        "a recompile limit",
        "FX annotations",
        "FX's patches",
        "dynamo's metrics",
        "inductor's kernel load",
        "the compile lock and autograd's thread",
    }
    trace = found["another thread's trace"].evidence
    assert trace == (
        "2 traces were seen in 2 witnessed trials.",
        "It was open in another thread at 2 of 2 failures, and explains 2 of them.",
    )
    assert found["the tracing flag sticks"].evidence[-1] == "It was stuck at 0 of 2 failures."
    assert found["the failure needs two threads"].evidence == (
        "Serial control: 0 of 6 failed. With threads and no witness: 6 of 6.",
        "By chance alone this or more has a probability of 0.0011 (one-sided exact test).",
    )


def test_the_wrong_hypothesis_is_eliminated_by_traces_that_ran() -> None:
    """Read in its source, create_block_mask does not trace; the stacks of all traces say so too, and who did."""
    found = ledger(raced())["create_block_mask traces"]
    assert found.standing is Standing.ELIMINATED
    assert found.evidence == (
        "0 of 1 traces ran under it; of 1 every caller down to the thread's first was seen.",
        "What traced instead when a call went wrong: aot_dispatch_autograd_graph.",
        "Whether the trials call it or not, no trace of theirs is its.",
    )


MASKING = Frame("torch/nn/attention/flex_attention.py", 9, "create_block_mask")


def masked(*, called: bool, whole: bool, other: bool = True) -> Hypothesis:
    """Of a trial with a trace in the way (``whole``: all its callers are seen), and one that is not, cut off."""
    story = Story()
    if called:
        story.does("w1", State.UNFUSED, Action.CALL, stack=(MASKING,))
    if other:
        story.traces("w2")()
    if whole:
        story.enters("w0", State.COMPILE, stack=(Frame("threading.py", 1002, "_bootstrap"),))
    end = story.traces("w0")
    met = story.obeys("w1")
    end()
    return ledger((story, trial(failure("w1", met.t))))["create_block_mask traces"]


def test_but_not_by_stacks_that_end_before_its_callers() -> None:
    found = masked(called=True, whole=False)
    assert found.standing is Standing.UNDECIDED
    assert "Of 1 trace that was in the way not all callers were seen." in found.evidence


def test_where_no_call_of_it_was_seen_nothing_is_said_of_it_but_by_the_callers_of_all_traces() -> None:
    for whole, cut in ((False, 2), (True, 1)):
        found = masked(called=False, whole=whole)
        assert found.standing is Standing.UNTESTED
        assert f"of {cut} trace{'s' * (cut > 1)} not all callers were seen: whether the trials call it" in " ".join(
            found.evidence
        )
    assert masked(called=False, whole=True, other=False).standing is Standing.ELIMINATED
    assert masked(called=True, whole=True).standing is Standing.ELIMINATED


def test_a_torch_that_never_sets_is_compiling_round_a_compile_is_said_to() -> None:
    found = ledger(raced())["is_compiling() of another thread"]
    assert found.standing is Standing.ELIMINATED
    assert found.evidence[:2] == (
        "0 settings of the flag were seen in 1 witnessed trial.",
        "2 compiles ran in them: this torch does not set it round compiles.",
    )
    story, record = raced("2.13.0")
    story.does("w0", State.COMPILING, Action.SET)
    assert "round compiles" not in " ".join(ledger((story, record))["is_compiling() of another thread"].evidence)


def test_and_kept_where_it_is_right() -> None:
    story = Story()
    story.enters(
        "w0", State.TRACE, stack=(*TRACING, Frame("torch/nn/attention/flex_attention.py", 9, "create_block_mask"))
    )
    story.does("w0", State.TRACING, Action.SET)
    met = story.obeys("w1")
    found = ledger((story, trial(failure("w1", met.t))))["create_block_mask traces"]
    assert found.standing is Standing.KEPT and "1 of 1 failure." in found.evidence[-1]


def test_a_lazy_backward_is_told_from_a_forward() -> None:
    found = ledger(raced("2.13.0", "lazy backward 1/0"), raced())["a lazy backward did the tracing"]
    assert found.standing is Standing.KEPT
    assert found.evidence[-1] == (
        "Of 2 failures for another thread's trace, 1 were for that of a backward, 1 for that of a forward or of no"
        " compile."
    )


def test_what_was_open_beside_an_unexplained_failure_is_undecided_and_says_what_would_tell() -> None:
    story = Story("2.13.0")
    story.enters("w0", State.KERNEL)
    last = story.enters("w1", State.COMPILE)
    failed = failure("w1", last.t + 0.001, "'Subgraph' object has no attribute 'dtype'", type_="InductorError")
    found = ledger((story, trial(failed)))
    assert found["inductor's kernel load"].standing is Standing.UNDECIDED
    assert found["inductor's kernel load"].evidence[-1].startswith("What would tell: ")
    assert found["another thread's trace"].standing is Standing.ELIMINATED


def test_without_a_trial_that_went_wrong_nothing_is_eliminated() -> None:
    story, _ = race()
    story.events = [event for event in story.events if event.action is not Action.OBEYED]
    found = ledger((story, trial()))
    assert not standing(found, Standing.ELIMINATED) and not standing(found, Standing.KEPT)
    assert "Nothing went wrong. A witnessed trial that goes wrong would tell." in found["FX annotations"].evidence


def test_what_this_torch_does_not_have_is_untested_with_its_reason() -> None:
    story, failed = race()
    story.unknown = (State.ANNOTATION, State.RECOMPILE_LIMIT, State.LOCK)
    story.events = [event for event in story.events if event.state is not State.LOCK]
    found = ledger((story, trial(failed)))
    assert found["FX annotations"].standing is Standing.UNTESTED
    assert found["FX annotations"].evidence == ("It could not be watched: it has no such name.",)
    assert found["a recompile limit"].standing is Standing.UNTESTED
    assert found["the compile lock and autograd's thread"].standing is Standing.UNTESTED


def test_limits_that_differ_between_threads_are_named() -> None:
    story = Story("2.12.0")
    story.does("main", State.CONFIG, Action.READ, "recompile_limit=64")
    story.does("w0", State.CONFIG, Action.READ, "recompile_limit=8")
    story.obeys("w0", State.RECOMPILE_LIMIT, "recompile_limit=8 reached, runs eagerly")
    found = ledger((story, trial()))["a recompile limit"]
    assert found.standing is Standing.KEPT
    assert "main recompile_limit=64, w0 recompile_limit=8" in found.evidence[1]


def test_a_control_that_fails_as_well_eliminates_the_threads() -> None:
    wrong = "the failure needs two threads"
    story, record = raced()
    speaks = story, replace(record, versions=(("torch", "2.11.0"),))
    assert ledger(speaks, threads=(3, 6), serial=(5, 6))[wrong].standing is Standing.ELIMINATED
    # A command may have run with all its threads as its own control.
    deaf = ledger(raced(), threads=(3, 3), serial=(3, 3))[wrong]
    assert deaf.standing is Standing.UNDECIDED and "does not read its side" in deaf.evidence[-1]
    assert ledger(raced(), threads=(3, 3), serial=(0, 3))[wrong].standing is Standing.KEPT
    assert ledger(raced(), threads=(2, 6), serial=(1, 6))[wrong].standing is Standing.UNDECIDED
    assert ledger(raced(), threads=(6, 6))[wrong].standing is Standing.UNTESTED


@given(st.lists(stories(), max_size=3), st.sampled_from(["w0", "w1"]))
def test_every_hypothesis_has_a_standing_and_evidence(told: Sequence[Story], thread: str) -> None:
    found = ledger(*((story, trial(failure(thread, START + 5))) for story in told))
    assert len(found) == 15
    for each in found.values():
        assert each.standing in ALL and each.evidence
        assert all(text and text.endswith((".", ")")) for text in each.evidence), each


def test_whether_a_call_was_warm_is_untested_where_no_steps_are_reported() -> None:
    story, failed = race()
    found = ledger((story, trial(failed)))["failing calls were warm"]
    assert found.standing is Standing.UNTESTED and found.evidence == ("The reproducer reports no steps, warm or cold.",)


def test_a_process_that_never_imported_torch_says_nothing_about_torch() -> None:
    found = ledger((Story(torch="", unknown=tuple(State)), trial(failure("main", START))))
    assert found["FX annotations"].evidence == ("It could not be watched: the witnessed process did not import torch.",)


def test_one_failure_is_one() -> None:
    story, failed = race()
    said = " ".join(line for each in ledger((story, trial(failed))).values() for line in each.evidence)
    assert "1 failure" in said and "1 failures" not in said


@pytest.mark.parametrize(("mine", "standing"), [("#1", Standing.UNDECIDED), ("#2", Standing.ELIMINATED)])
def test_metrics_of_another_thread_count_only_where_they_are_the_same(mine: str, standing: Standing) -> None:
    story = Story()
    story.does("w1", State.METRICS, Action.ENTER, f"MetricsContext {mine}")
    story.does("w1", State.METRICS, Action.LEAVE, f"MetricsContext {mine}")
    story.does("w0", State.METRICS, Action.ENTER, "MetricsContext #1")
    met = story.does("w1", State.UNCAUGHT, Action.RAISED, "ValueError: of something else")
    found = ledger((story, trial(failure("w1", met.t, "of something else", "", "ValueError"))))
    assert found["dynamo's metrics"].standing is standing
