"""Collisions: whose window the victim's read fell into, and what cannot be said."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisect_env.explanation.collisions import collisions_of
from bisect_env.explanation.records import (
    Action,
    Collision,
    Consequence,
    Event,
    Frame,
    Mechanism,
    State,
    WitnessLog,
)
from bisect_env.explanation.windows import holds, windows_of
from bisect_env.trials.records import Failure, Outcome, PathCount, Signature, TrialRecord
from tests.explanation.logs import FX, READING, START, Story, failure, race, trial
from tests.explanation.test_windows import stories


def found(log: WitnessLog, record: TrialRecord) -> tuple[Collision, ...]:
    return collisions_of(log, windows_of(log), record)


def facts(collision: Collision) -> tuple[object, ...]:
    return collision.mechanism, collision.consequence, collision.victim, collision.culprit


def test_a_warm_call_that_met_another_threads_trace() -> None:
    story, failed = race()
    [only] = found(story.log, trial(failed))
    assert facts(only) == (Mechanism.FOREIGN_TRACE, Consequence.FAILED, "w1", "w0")
    assert only.window is not None and only.window.state is State.TRACING and only.window.opened.stack
    assert only.met is not None and only.met.action is Action.OBEYED
    assert only.message.startswith("RuntimeError: Detected that you are using FX")


def test_the_same_for_a_backward_on_its_first_use() -> None:
    story, failed = race("2.13.0", "lazy_backward")
    assert facts(found(story.log, trial(failed))[0])[0] is Mechanism.FOREIGN_BACKWARD


def test_a_stuck_flag_is_nobodys_trace() -> None:
    story = Story("2.9.1")
    first = story.traces("w0")
    second = story.traces("w1", saved=True)
    first()
    second()
    put_back = story.events[-2]
    story.passes(2)
    met = story.obeys("w0")
    [only] = found(story.log, trial(failure("w0", met.t)))
    assert facts(only) == (Mechanism.STUCK_FLAG, Consequence.FAILED, "w0", "w1")
    assert only.window is not None and only.window.opened == put_back and holds(only.window, met.t)


def test_eager_calls_are_counted_and_come_after_the_failure() -> None:
    story, failed = race("2.13.0")
    end = story.enters("w0", State.COMPILE, "forward")
    story.does("w0", State.COMPILING, Action.SET)
    for _ in range(3):
        story.obeys("w1", State.COMPILING, "took flex_attention")
        story.does("w1", State.UNFUSED, Action.CALL)
    story.does("w0", State.COMPILING, Action.CLEAR)
    assert end
    first, second = found(story.log, trial(failed))
    assert first.consequence is Consequence.FAILED
    assert facts(second) == (Mechanism.FOREIGN_COMPILE, Consequence.EAGER, "w1", "w0") and second.count == 3


def test_an_eager_original_under_another_threads_trace() -> None:
    story = Story()
    end = story.traces("w0")
    story.obeys("w1", value="ran the eager original")
    end()
    [only] = found(story.log, trial())
    assert facts(only) == (Mechanism.FOREIGN_TRACE, Consequence.EAGER, "w1", "w0")


def test_an_unfused_call_past_the_threads_own_limit() -> None:
    story = Story("2.12.0")
    story.does("w1", State.UNFUSED, Action.CALL)
    hit = story.obeys("w1", State.RECOMPILE_LIMIT, "recompile_limit=8 reached, runs eagerly")
    story.does("w1", State.UNFUSED, Action.CALL)
    dense = replace(trial(), paths=(PathCount("w1", 9, (("math_attention", 2),)),))
    by_mechanism = {each.mechanism: each for each in found(story.log, dense)}
    limited = by_mechanism[Mechanism.RECOMPILE_LIMIT]
    assert (limited.met, limited.culprit, limited.count) == (hit, "", 2)
    assert {each.mechanism for each in found(story.log, trial())} == {Mechanism.RECOMPILE_LIMIT}
    assert by_mechanism[Mechanism.UNKNOWN].culprit == ""


def test_one_while_the_thread_itself_compiles_is_no_call() -> None:
    story = Story()
    story.enters("w1", State.COMPILE, "forward")
    story.does("w1", State.UNFUSED, Action.CALL)
    story.leaves("w1", State.COMPILE)
    assert found(story.log, trial()) == ()


def test_the_threads_own_trace_makes_nobody_a_culprit() -> None:
    story = Story()
    story.traces("w0")
    story.traces("w1", saved=True)
    met = story.obeys("w1")
    [only] = found(story.log, trial(failure("w1", met.t)))
    assert facts(only) == (Mechanism.UNKNOWN, Consequence.FAILED, "w1", "")


@pytest.mark.parametrize(
    ("state", "traceback", "mechanism"),
    [
        (State.KERNEL, "torch/_inductor/runtime/static_triton_launcher.py", Mechanism.KERNEL),
        (State.ANNOTATION, 'File "torch/fx/traceback.py", line 12, in annotate', Mechanism.ANNOTATION),
    ],
)
def test_a_failure_without_a_read_is_explained_by_what_two_threads_were_in(
    state: State, traceback: str, mechanism: Mechanism
) -> None:
    story = Story("2.14.1")
    story.enters("w0", state)
    mine = story.enters("w1", state)
    failed = failure("w1", mine.t + 0.001, "'custom'", traceback, "KeyError")
    [only] = found(story.log, trial(failed))
    assert facts(only) == (mechanism, Consequence.FAILED, "w1", "w0")
    alone = Story("2.14.1")
    mine = alone.enters("w1", state)
    [only] = found(alone.log, trial(replace(failed, t=mine.t + 0.001)))
    assert facts(only)[0] is Mechanism.UNKNOWN


def test_a_failure_that_is_not_of_the_flag_is_not_explained_by_it() -> None:
    story, failed = race()
    other = replace(failed, message="'Subgraph' object has no attribute 'dtype'")
    first = found(story.log, trial(other))[0]
    assert facts(first) == (Mechanism.UNKNOWN, Consequence.FAILED, "w1", "")


def test_a_failure_that_tells_an_earlier_traceback_first_is_told_by_its_own_line() -> None:
    message = 'Previous Traceback:\n  File "x.py", line 2, in f\n\nRuntimeError: Metrics have already been set.'
    story, _ = race()
    first = found(story.log, trial(failure("w1", START + 9, message)))[0]
    assert first.message == "RuntimeError: Metrics have already been set."


def test_what_autograds_thread_obeyed_is_the_failure_of_the_worker_it_runs_for() -> None:
    story = Story()
    story.traces("w0")
    met = story.obeys("autograd")
    [only] = found(story.log, trial(failure("w1", met.t + 0.01)))
    assert facts(only) == (Mechanism.FOREIGN_TRACE, Consequence.FAILED, "w1", "w0") and only.met == met


STACKS = """\
Thread 0x00007f01 (most recent call first):
  File "torch/autograd/graph.py", line 829 in _engine_run_backward

Thread 0x00007f02 (most recent call first):
  File "torch/autograd/graph.py", line 829 in _engine_run_backward
"""


def test_threads_that_wait_for_each_other() -> None:
    story = Story()
    story.does("w0", State.LOCK, Action.WAIT)
    story.does("w0", State.LOCK, Action.ACQUIRE)
    story.enters("autograd", State.BACKWARD)
    wait = story.does("autograd", State.LOCK, Action.WAIT)
    hung = trial(outcome=Outcome.HANG, stacks=STACKS, hang_kind="deadlock")
    [only] = found(story.log, hung)
    assert facts(only) == (Mechanism.LOCK_CYCLE, Consequence.HUNG, "autograd", "w0") and only.met == wait
    [only] = found(story.log, replace(hung, stacks=""))
    assert facts(only) == (Mechanism.UNKNOWN, Consequence.HUNG, "autograd", "")


@given(stories(), st.integers(0, 12), st.sampled_from(["w0", "w1", "main"]), st.sampled_from(Outcome))
def test_every_window_contains_its_moment_and_every_culprit_did_something(
    story: Story, moment: int, thread: str, outcome: Outcome
) -> None:
    log = story.log
    record = trial(failure(thread, START + moment), outcome=outcome, stacks=STACKS)
    collisions = found(log, record)
    assert collisions[0].consequence is Consequence.FAILED
    # Of a failure of the main thread at the trial's end it is not known whose it was.
    assert collisions[0].victim == thread or (thread == "main" and moment >= 8)
    for each in collisions:
        assert (each.window is not None) == bool(each.culprit)
        if each.window is not None:
            assert each.met is not None and holds(each.window, each.met.t)
            assert each.culprit == each.window.thread and each.culprit in log.threads
            assert any(event.thread == each.culprit for event in log.events)
        assert each.count >= 1


@given(stories(), st.randoms())
def test_events_of_one_time_may_come_in_any_order(story: Story, chance: random.Random) -> None:
    """Two threads' clocks may agree to the last digit; who is first then is not known, and nothing may break."""
    chance.shuffle(story.events)
    story.events.sort(key=lambda event: event.t)
    log = story.log
    for each in found(log, trial(failure("w1", START + 5))):
        assert each.window is None or holds(each.window, each.met.t if each.met else 0.0)


END = START + 9
EXITED = Failure("main", Signature("exit 1", "", ""), "exit status 1", "", "", END)
RAISE = f"""Traceback (most recent call last):
  File "/env/site-packages/{READING[0].path}", line {READING[0].line}, in {READING[0].function}
    raise RuntimeError("...")
RuntimeError: {FX}
"""
PRINTED = failure("main", END, traceback=RAISE)
THREAD = "Thread-2 (b)"


def command(uncaught: str = "", by: str = THREAD, stack: tuple[Frame, ...] = READING) -> Story:
    """w0 traces, a thread of a user's own command meets that, seven seconds before the command ends."""
    story = Story()
    end = story.traces("w0")
    story.obeys(THREAD)
    end()
    if uncaught:
        story.does(by, State.UNCAUGHT, Action.RAISED, uncaught, stack)
    story.passes(7)
    story.does("main", State.TRACE, Action.ENTER)
    return story


@pytest.mark.parametrize(
    ("story", "record"),
    [
        pytest.param(command(f"RuntimeError: {FX}"), trial(PRINTED), id="the witness saw it, and it was printed"),
        pytest.param(command(f"RuntimeError: {FX}"), trial(EXITED), id="the witness saw it, and a status"),
        pytest.param(command(f"E: step 3 <- RuntimeError: {FX}"), trial(EXITED), id="it was raised from it"),
        pytest.param(
            command(f"E: step 3 <- RuntimeError: {FX}", stack=(Frame("train.py", 3, "step"),)), trial(EXITED),
            id="it was raised in the handling of it",
        ),
        pytest.param(command(f"RuntimeError: {FX}", by="main"), trial(PRINTED), id="a pool's, raised again"),
        pytest.param(command(f"RuntimeError: {FX}"), trial(outcome=Outcome.HANG), id="the others waited for ever"),
        pytest.param(command(f"RuntimeError: {FX}"), trial(), id="the command's status hid it"),
        pytest.param(command(), trial(PRINTED), id="the program caught and printed it"),
        pytest.param(
            command(), replace(trial(EXITED), output=f"step 3 failed: {FX}\n"), id="the program caught and told it",
        ),
        pytest.param(
            command(), replace(trial(PRINTED), output=f"Exception in thread {THREAD}:\n{RAISE}"),
            id="the witness was cut off before it",
        ),
    ],
)  # fmt: skip
def test_a_command_that_does_not_say_what_failed_is_explained_however_late_it_ends(
    story: Story, record: TrialRecord
) -> None:
    first = found(story.log, record)[0]
    assert facts(first) == (Mechanism.FOREIGN_TRACE, Consequence.FAILED, THREAD, "w0")
    assert first.met is not None and first.met.action is Action.OBEYED
    assert all(each.consequence is Consequence.HUNG for each in found(story.log, record)[1:])


@pytest.mark.parametrize(
    ("record", "says"),
    [
        (trial(EXITED), "no message was printed, and the process ended with exit 1"),
        (replace(trial(EXITED), output="step 3"), "no message was printed, and the process ended with exit 1"),
        (replace(trial(EXITED), output=f"step 3: {FX}\nbye"), f"step 3: {FX}"),
        (
            trial(replace(EXITED, signature=Signature("SIGABRT", "", ""))),
            "no message was printed, and the process ended with SIGABRT",
        ),
    ],
)
def test_the_last_call_that_failed_before_a_silent_end_is_told_with_what_was_said_of_it(
    record: TrialRecord, says: str
) -> None:
    [only] = found(command().log, record)
    assert facts(only) == (Mechanism.FOREIGN_TRACE, Consequence.FAILED, THREAD, "w0") and only.message == says


@pytest.mark.parametrize(
    "record",
    [
        trial(replace(PRINTED, message="no such key", traceback="KeyError: no such key")),
        trial(replace(PRINTED, t=START + 7.9)),
        trial(replace(EXITED, signature=Signature("SIGSEGV", "", ""))),
        trial(replace(EXITED, signature=Signature("SIGABRT", "", ""))),
        replace(trial(replace(EXITED, signature=Signature("SIGSEGV", "", ""))), output=FX),
        trial(replace(EXITED, signature=Signature("output", "", ""), message="loss is nan")),
    ],
)
def test_but_not_where_the_end_has_a_reason_of_its_own(record: TrialRecord) -> None:
    [only] = found(replace(command().log, complete=False), record)
    assert facts(only)[:2] == (Mechanism.UNKNOWN, Consequence.FAILED) and not only.culprit
    assert only.met is not None


def test_of_two_exceptions_that_ended_threads_the_one_that_is_explained_comes_first() -> None:
    story = command()
    story.events.insert(0, Event(START, "reader", State.UNCAUGHT, Action.RAISED, "BrokenPipeError", READING[1:]))
    story.does(THREAD, State.UNCAUGHT, Action.RAISED, f"RuntimeError: {FX}", READING)
    first, second = found(story.log, trial(EXITED))
    assert facts(first) == (Mechanism.FOREIGN_TRACE, Consequence.FAILED, THREAD, "w0")
    assert facts(second) == (Mechanism.UNKNOWN, Consequence.FAILED, "reader", "")
    assert second.met == story.events[0] and second.message == "BrokenPipeError: no message"


def test_a_crash_is_told_beside_the_exceptions_before_it() -> None:
    crashed = Failure("main", Signature("SIGSEGV", "", ""), "the process died of SIGSEGV", "", "", END)
    first, second = found(command(f"RuntimeError: {FX}").log, trial(crashed))
    assert first.mechanism is Mechanism.FOREIGN_TRACE and second.message.startswith("SIGSEGV")


@pytest.mark.parametrize(
    ("uncaught", "message"),
    [
        (f"RuntimeError: {FX} ", f"{FX} \nfrom user code"),
        (f"RuntimeError: {FX}", f"{FX}\r\nfrom user code"),
        (f"ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception) <- RuntimeError: {FX}", FX),
    ],
)
def test_what_was_printed_of_an_exception_is_no_other_failure(uncaught: str, message: str) -> None:
    [only] = found(command(uncaught).log, trial(replace(PRINTED, message=message)))
    assert facts(only) == (Mechanism.FOREIGN_TRACE, Consequence.FAILED, THREAD, "w0") and only.count == 1


def test_what_was_printed_of_the_cause_of_an_exception_is_another_one() -> None:
    assert len(found(command("E: step 3 <- RuntimeError: else").log, trial(replace(PRINTED, message="else")))) == 2


def test_what_the_reproducer_reports_needs_no_other_word() -> None:
    story, failed = race()
    story.does("w1", State.UNCAUGHT, Action.RAISED, "SystemError: later", READING)
    assert len(found(story.log, trial(failed))) == 1
