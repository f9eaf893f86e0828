"""Sentences: exact, short, and none that says more than was seen."""

from __future__ import annotations

from dataclasses import replace

from bisect_env.explanation.explain import account
from bisect_env.explanation.phrases import place, took
from bisect_env.explanation.records import Action, Frame, State
from bisect_env.trials.records import Outcome, TrialRecord
from tests.explanation.logs import FX, READING, TRACING, Story, failure, race, trial
from tests.explanation.test_collisions import STACKS


def told(story: Story, record: TrialRecord) -> tuple[str, ...]:
    return account(record, story.log).sentences


def test_who_set_it_when_from_where_who_read_it_and_what_came_of_it() -> None:
    story, failed = race()
    first, second = told(story, trial(failed))
    assert first == (
        "Thread w0 set the tracing flag at 1.0060 s from trace (torch/fx/_symbolic_trace.py:781) <- dispatch_trace"
        " <- aot_dispatch_autograd_graph, for the compile of a forward that it began at 1.0040 s; w1 read it at"
        " 1.0070 s in compile_wrapper (torch/_dynamo/eval_frame.py:845) <- caller, 1.0 ms later; the call failed:"
        f" RuntimeError: {FX}"
    )
    assert second == "The flag was cleared at 1.0080 s, after it had been set for 2.0 ms."


def test_a_stuck_flag_has_who_saved_it_and_who_put_it_back() -> None:
    story = Story("2.9.1")
    first = story.traces("w0")
    second = story.traces("w1", saved=True)
    first()
    second()
    story.passes(2)
    met = story.obeys("w0")
    sticking, read = told(story, trial(failure("w0", met.t)))
    assert sticking == (
        "Thread w1 had met the tracing flag set by w0 at 0.0040 s in trace (torch/fx/_symbolic_trace.py:781) <-"
        " dispatch_trace <- aot_dispatch_autograd_graph, and put True back at 0.0070 s in trace"
        " (torch/fx/_symbolic_trace.py:781) <- dispatch_trace <- aot_dispatch_autograd_graph; from 0.0080 s on no"
        " trace was open in any thread, and the flag was still set, for good."
    )
    assert read.startswith("Thread w0 read it at 2.0090 s in compile_wrapper")
    assert "2.0 s after it was put back; the call failed" in read


def test_a_flag_that_sticks_is_told_where_nothing_failed_of_it() -> None:
    story = Story("2.9.1")
    first = story.traces("w0")
    second = story.traces("w1", saved=True)
    first()
    second()
    nothing, sticking = told(story, trial())
    assert nothing == "Nothing failed and no call ran eagerly, in 8 events of 2 threads."
    assert "the flag was still set, for good" in sticking


def test_eager_calls_with_their_number() -> None:
    story = Story("2.13.0")
    story.enters("w0", State.COMPILE, "lazy backward 1/0")
    story.does("w0", State.COMPILING, Action.SET)
    for _ in range(4):
        story.obeys("w1", State.COMPILING, "took flex_attention")
    first, second = told(story, trial())
    assert "set the flag behind is_compiling() at" in first and "for the compile of a lazy backward" in first
    assert first.endswith("the call ran eagerly (took flex_attention), and so did 3 more calls.")
    assert second == "The flag was not cleared any more."


def test_an_unexplained_failure_says_where_the_others_were() -> None:
    story, failed = race()
    [first] = told(story, trial(replace(failed, message="no such attribute", t=failed.t - 0.002)))
    assert "the call failed: RuntimeError: no such attribute." in first
    assert "The last that the witness saw of it was the tracing flag (obeyed, raised)" in first
    assert "w0 held the compile lock since 1.0030 s, w0 had a compile open since 1.0040 s" in first
    assert first.endswith("None of the known mechanisms fits.")


def test_a_hang_is_a_circle_only_where_it_is_seen_to_be_one() -> None:
    story = Story()
    story.does("w0", State.LOCK, Action.WAIT)
    story.does("w0", State.LOCK, Action.ACQUIRE)
    story.enters("autograd", State.BACKWARD)
    story.does("autograd", State.LOCK, Action.WAIT)
    hung = trial(outcome=Outcome.HANG, stacks=STACKS, hang_kind="deadlock")
    first, second, last = told(story, hung)
    assert first == "Thread autograd waited for the compile lock since 0.0040 s; w0 held it since 0.0020 s."
    assert second == (
        "Thread w0, of which nothing was seen since 0.0020 s, waited for autograd's thread autograd, which was in a"
        " backward since 0.0030 s."
    )
    assert last == "So each waits for the other, and the threads stood still (deadlock)."
    first, last = told(story, replace(hung, stacks=""))
    assert "no circle of waits is seen: what w0 waits for is not in the log" in last


def test_what_the_log_lacks_is_said() -> None:
    story, failed = race()
    log = replace(story.log, dropped=7, complete=False)
    *_, dropped, torn = account(trial(failed), log).sentences
    assert "no room for 7 events" in dropped and "before the witness closed its log" in torn


def test_frames_that_only_pass_a_call_on_are_left_out() -> None:
    stack = (TRACING[0], Frame("torch/_compile.py", 53, "inner"), Frame("x.py", 1, "<lambda>"), *TRACING[1:], *READING)
    assert place(stack, 2).endswith(
        "(torch/fx/_symbolic_trace.py:781) <- dispatch_trace <- aot_dispatch_autograd_graph"
    )
    assert place(()) == ""


def test_times_are_in_the_unit_that_suits_them() -> None:
    assert [took(s) for s in (0.00004, 0.0094, 0.0096, 0.9994, 0.9996, 12)] == [
        "less than 0.1 ms", "9.4 ms", "10 ms", "999 ms", "1.0 s", "12.0 s",
    ]  # fmt: skip


def test_the_thread_that_failed_is_named_and_where_it_failed() -> None:
    story = Story()
    end = story.traces("w0")
    story.obeys("Thread-2 (b)")
    end()
    story.does("Thread-2 (b)", State.UNCAUGHT, Action.RAISED, f"RuntimeError: {FX}", READING)
    story.passes(8)
    ended = failure("main", story.now)
    [account_, *_] = told(story, trial(ended))
    assert "; Thread-2 (b) read it at 0.0030 s in compile_wrapper" in account_ and "working for" not in account_


def test_an_exception_that_nothing_explains_is_told_with_the_place_where_it_was_raised() -> None:
    story = Story()
    story.enters("b", State.COMPILE)
    story.does("b", State.UNCAUGHT, Action.RAISED, "KeyError: 'custom'", READING)
    [only] = told(story, trial())
    assert only.startswith("Thread b, at 0.0020 s; the call failed: KeyError: 'custom'.")
    assert "It was raised in compile_wrapper (torch/_dynamo/eval_frame.py:845) <- caller." in only


def test_a_call_that_failed_in_another_thread_is_no_more_than_told() -> None:
    story = Story()
    end = story.traces("w0")
    story.obeys("Thread-2 (b)")
    end()
    crashed = failure("main", story.now + 9, "the process died of SIGSEGV", type_="SIGSEGV")
    [only] = told(story, trial(crashed))
    assert (
        "The last that the witness saw to fail, in thread Thread-2 (b), was the tracing flag (obeyed, raised)" in only
    )
