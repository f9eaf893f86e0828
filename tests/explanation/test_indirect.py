"""Failures that no read of a flag leads to: kernels that two threads share, patches of two traces, hangs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bisect_env.explanation.collisions import collisions_of
from bisect_env.explanation.records import Action, Collision, Consequence, Event, Frame, Mechanism, State
from bisect_env.explanation.seen import Seen
from bisect_env.explanation.telling import sentences_of
from bisect_env.explanation.waiting import cycle, waits
from bisect_env.explanation.windows import windows_of
from bisect_env.trials.records import Failure, Outcome, Signature, TrialRecord
from tests.explanation.logs import START, Story, trial

TUNES = "autotune_to_one_config mul #3f2a"
LAUNCHER = 'File "torch/_inductor/runtime/static_triton_launcher.py", line 261, in run'
PATCHER = "CURRENT_PATCHER is None in finally block"


def failed(thread: str, t: float, message: str = "", traceback: str = LAUNCHER) -> Failure:
    return Failure(thread, Signature("AssertionError", message, ""), message, "run:261", traceback, t)


def found(story: Story, record: TrialRecord) -> tuple[Collision, ...]:
    return collisions_of(story.log, windows_of(story.log), record)


def told(story: Story, record: TrialRecord) -> str:
    return " ".join(sentences_of(Seen.of(story.log, windows_of(story.log)), found(story, record), record))


def facts(collision: Collision) -> tuple[object, ...]:
    return collision.mechanism, collision.consequence, collision.victim, collision.culprit


def tuning(unloads: str = "mul #9b01") -> Story:
    """w2 and w1 tune one kernel at the same time; w2 is done first and unloads what it does not keep."""
    story = Story("2.13.0")
    story.enters("w2", State.KERNEL, TUNES)
    story.enters("w1", State.KERNEL, TUNES)
    story.does("w2", State.KERNEL, Action.CALL, f"{unloads} unloaded")
    story.does("w2", State.KERNEL, Action.LEAVE, TUNES)
    return story


def test_a_kernel_that_another_thread_has_unloaded() -> None:
    story = tuning()
    met = story.does("w1", State.KERNEL, Action.CALL, "mul #9b01 launched and not loaded")
    story.does("w1", State.KERNEL, Action.LEAVE, f"{TUNES}, raised AssertionError")
    record = trial(failed("w1", story.now + 0.01))
    [only] = found(story, record)
    assert facts(only) == (Mechanism.KERNEL, Consequence.FAILED, "w1", "w2") and only.met == met
    said = told(story, record)
    assert "Thread w2 unloaded mul #9b01 at 0.0030 s" in said and "w1 launched it at 0.0050 s, 2.0 ms later" in said


def test_another_object_of_the_same_name_is_another_kernel() -> None:
    story = tuning(unloads="mul #0001")
    story.does("w1", State.KERNEL, Action.CALL, "mul #9b01 launched and not loaded")
    [only] = found(story, trial(failed("w1", story.now)))
    assert only.window is None or only.window.opened.action is not Action.CALL


def test_two_threads_that_tune_one_kernel() -> None:
    story = tuning()
    story.does("w1", State.KERNEL, Action.LEAVE, f"{TUNES}, raised AssertionError")
    record = trial(failed("w1", story.now, "Autotuned launcher config does not match any compile result", ""))
    [only] = found(story, record)
    assert facts(only) == (Mechanism.KERNEL, Consequence.FAILED, "w1", "w2")
    assert "w2 began a kernel's load or tuning (autotune_to_one_config mul #3f2a)" in told(story, record)


def test_a_kernel_that_autograds_thread_launched_for_the_failing_one() -> None:
    story = tuning()
    story.does("autograd", State.KERNEL, Action.CALL, "mul #9b01 launched and not loaded")
    assert facts(found(story, trial(failed("w0", story.now)))[0])[3] == "w2"


def test_a_launch_of_ones_own_comes_before_one_of_autograds_thread() -> None:
    story = tuning()
    met = story.does("w1", State.KERNEL, Action.CALL, "mul #9b01 launched and not loaded")
    story.does("autograd", State.KERNEL, Action.CALL, "add #77aa launched and not loaded")
    assert found(story, trial(failed("w1", story.now)))[0].met == met
    # Where the call asked for a backward, autograd's thread may have done it.
    backward = failed("w1", story.now, traceback=f"{LAUNCHER}\n  in _engine_run_backward")
    assert found(story, trial(backward))[0].met != met


def test_a_thread_that_loads_another_kernel_is_not_blamed() -> None:
    story = Story("2.13.0")
    story.enters("w2", State.KERNEL, "load_kernel add #0001")
    story.does("w1", State.KERNEL, Action.CALL, "mul #9b01 launched and not loaded")
    record = trial(failed("w1", story.now + 0.01))
    assert found(story, record)[0].culprit == ""
    # One that loads the same source's at that moment is.
    story.enters("w0", State.KERNEL, "load_kernel mul #0002")
    story.does("w1", State.KERNEL, Action.CALL, "mul #9b01 launched and not loaded")
    assert found(story, trial(failed("w1", story.now + 0.01)))[0].culprit == "w0"


def test_nothing_is_made_up_where_no_other_thread_touched_a_kernel() -> None:
    story = Story("2.13.0")
    story.does("w1", State.KERNEL, Action.CALL, "mul #9b01 launched and not loaded")
    assert facts(found(story, trial(failed("w1", story.now)))[0]) == (
        Mechanism.UNKNOWN,
        Consequence.FAILED,
        "w1",
        "",
    )


@pytest.mark.parametrize("first", ["w0", "w1"])
def test_a_trace_that_takes_another_ones_patches_off(first: str) -> None:
    story = Story("2.14.1")
    second = "w1" if first == "w0" else "w0"
    story.enters(first, State.PATCHER, "_new_patcher")
    story.enters(second, State.PATCHER, "_new_patcher")
    story.does(first, State.PATCHER, Action.LEAVE, "_new_patcher")
    met = story.does(second, State.PATCHER, Action.LEAVE, "_new_patcher, raised AssertionError")
    record = trial(failed(second, story.now + 0.01, PATCHER, ""))
    [only] = found(story, record)
    assert facts(only) == (Mechanism.PATCHER, Consequence.FAILED, second, first) and only.met == met
    assert f"Thread {first} began the patches of a trace at 0.0010 s" in told(story, record)


def test_patches_of_one_thread_alone_blame_nobody() -> None:
    story = Story("2.14.1")
    story.enters("w1", State.PATCHER, "_new_patcher")
    story.does("w1", State.PATCHER, Action.LEAVE, "_new_patcher, raised AssertionError")
    assert found(story, trial(failed("w1", story.now, PATCHER, "")))[0].mechanism is Mechanism.UNKNOWN


SET_TWICE = "Metric 'is_forward' has already been set in the current context"


def metered(story: Story, thread: str, action: Action, raised: bool = False, one: str = "#3f2a") -> Event:
    return story.does(thread, State.METRICS, action, f"MetricsContext {one}{', raised RuntimeError' * raised}")


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize(
    "message",
    [
        "Metric 'is_forward' has already been set in the current context",
        "Metric(s) {'is_forward'} have already been set in the current context.",
        "Cannot update metrics outside of a MetricsContext",
    ],
)
def test_metrics_of_a_compile_that_began_beside_another_one(left: bool, message: str) -> None:
    story = Story("2.9.1")
    metered(story, "w0", Action.ENTER)
    met = metered(story, "w1", Action.ENTER)
    if left:
        metered(story, "w0", Action.LEAVE)
    metered(story, "w1", Action.LEAVE, raised=True)
    record = trial(failed("w1", story.now + 0.01, message, ""))
    [only] = found(story, record)
    assert facts(only) == (Mechanism.METRICS, Consequence.FAILED, "w1", "w0") and only.met == met
    said = told(story, record)
    assert "Thread w0 went into the one place of all compiles' metrics at 0.0010 s; w1 went there too" in said
    assert ("Thread w0 left it at 0.0030 s, after 2.0 ms." in said) is left


def test_metrics_of_a_thread_that_an_exception_ended() -> None:
    """Of which a traceback was printed that begins with an earlier one."""
    message = "Metric(s) {'is_forward'} have already been set in the current context."
    story = Story("2.9.1")
    metered(story, "w0", Action.ENTER)
    met = metered(story, "w1", Action.ENTER)
    metered(story, "w1", Action.LEAVE, raised=True)
    where = Frame("torch/_dynamo/metrics_context.py", 170, "update")
    story.does("w1", State.UNCAUGHT, Action.RAISED, f"RuntimeError: {message}", (where,))
    printed = f'\n\nPrevious Traceback:\n  File "x.py", line 3, in f\n\nRuntimeError: {message}'
    end = Failure("main", Signature("RuntimeError", message, ""), printed, "", "update:170", START + 9)
    for record in (trial(end), trial()):
        [only] = found(story, record)
        assert facts(only) == (Mechanism.METRICS, Consequence.FAILED, "w1", "w0") and only.met == met
        assert only.message == f"RuntimeError: {message}"


def test_metrics_that_another_compile_joined() -> None:
    story = Story("2.9.1")
    metered(story, "w1", Action.ENTER)
    metered(story, "w0", Action.ENTER)
    metered(story, "w0", Action.LEAVE)
    met = metered(story, "w1", Action.LEAVE, raised=True)
    record = trial(failed("w1", story.now, "Metric 'is_forward' has already been set in the current context", ""))
    [only] = found(story, record)
    assert facts(only) == (Mechanism.METRICS, Consequence.FAILED, "w1", "w0") and only.met == met
    assert "metrics at 0.0020 s; w1 had been there before it, and left at 0.0040 s" in told(story, record)


def test_metrics_of_compiles_after_each_other_blame_nobody() -> None:
    story = Story("2.9.1")
    metered(story, "w0", Action.ENTER)
    metered(story, "w0", Action.LEAVE)
    metered(story, "w1", Action.ENTER)
    metered(story, "w1", Action.LEAVE, raised=True)
    record = trial(failed("w1", story.now, "Metric 'is_forward' has already been set in the current context", ""))
    assert found(story, record)[0].mechanism is Mechanism.UNKNOWN


def test_metrics_that_another_thread_counted_in_a_place_of_its_own_blame_nobody() -> None:
    """As from torch 2.11 on."""
    story = Story("2.14.1")
    metered(story, "w0", Action.ENTER, one="#9b01")
    metered(story, "w1", Action.ENTER)
    metered(story, "w1", Action.LEAVE, raised=True)
    [only] = found(story, trial(failed("w1", story.now + 0.01, SET_TWICE, "")))
    assert facts(only) == (Mechanism.UNKNOWN, Consequence.FAILED, "w1", "")


def test_metrics_of_which_a_message_does_not_speak_blame_nobody() -> None:
    story = Story("2.9.1")
    metered(story, "w0", Action.ENTER)
    metered(story, "w1", Action.ENTER)
    metered(story, "w1", Action.LEAVE, raised=True)
    [only] = found(story, trial(failed("w1", story.now + 0.01, "no peer access in the current context", "")))
    assert facts(only) == (Mechanism.UNKNOWN, Consequence.FAILED, "w1", "")


def test_the_metrics_of_the_failing_thread_are_not_taken_for_those_of_autograds_nor_blamed_for_them() -> None:
    """Autograd's thread works for another one, which caught the exception."""
    story = Story("2.9.1")
    metered(story, "w0", Action.ENTER)
    met = metered(story, "w1", Action.ENTER)
    metered(story, "autograd", Action.ENTER)
    metered(story, "autograd", Action.LEAVE, raised=True)
    metered(story, "w1", Action.LEAVE, raised=True)
    [only] = found(story, trial(failed("w1", story.now + 0.01, SET_TWICE, "")))
    assert facts(only) == (Mechanism.METRICS, Consequence.FAILED, "w1", "w0") and only.met == met
    backward = failed("w1", story.now + 0.01, SET_TWICE, "in _engine_run_backward")
    assert found(story, trial(backward))[0].culprit == "w0"


def hang(holder_in: str) -> Story:
    """w0 holds the lock; autograd's thread waits for it in a backward; the witness looked at where all stand."""
    story = Story("2.11.0")
    story.does("w0", State.LOCK, Action.ACQUIRE)
    story.enters("autograd", State.BACKWARD, "CompiledFunction.backward")
    story.does("autograd", State.LOCK, Action.WAIT, "held by w0")
    story.passes(5)
    story.does("w0", State.STANDING, Action.SEEN, "", (Frame("torch/autograd/graph.py", 841, holder_in),))
    story.does("autograd", State.STANDING, Action.SEEN, "", (Frame("witness.py", 30, "acquire"),))
    return story


def test_where_the_locks_holder_stood_closes_the_circle_without_the_runners_stacks() -> None:
    story = hang("_engine_run_backward")
    record = trial(outcome=Outcome.HANG, hang_kind="idle")
    [only] = found(story, record)
    assert facts(only)[:2] == (Mechanism.LOCK_CYCLE, Consequence.HUNG)
    said = told(story, record)
    assert "Thread w0, which stood at 5.0040 s in _engine_run_backward (torch/autograd/graph.py:841)" in said
    assert "waited for autograd's thread autograd" in said and "So each waits for the other" in said


def test_a_holder_that_stood_elsewhere_waits_for_nobody() -> None:
    story = hang("compile_inner")
    assert cycle(waits(story.log, windows_of(story.log), "")) == ()
    assert found(story, trial(outcome=Outcome.HANG))[0].mechanism is Mechanism.UNKNOWN


def test_where_the_holder_stood_in_an_earlier_wait_tells_nothing_of_this_one() -> None:
    story = Story("2.11.0")
    story.does("w0", State.STANDING, Action.SEEN, "", (Frame("torch/autograd/graph.py", 841, "_engine_run_backward"),))
    story.passes(9)
    late = hang("compile_inner")
    story.events += [replace(event, t=event.t + 9.1) for event in late.events if event.state is not State.STANDING]
    assert cycle(waits(story.log, windows_of(story.log), "")) == ()


def test_a_thread_of_the_programs_own_is_not_autograds() -> None:
    """Its backward may wait for the lock while the holder runs one of its own, which ends."""
    story = Story("2.11.0")
    story.does("w0", State.LOCK, Action.ACQUIRE)
    story.enters("w1", State.BACKWARD, "CompiledFunction.backward")
    story.does("w1", State.LOCK, Action.WAIT, "held by w0")
    story.passes(5)
    story.does("w0", State.STANDING, Action.SEEN, "", (Frame("torch/autograd/graph.py", 841, "_engine_run_backward"),))
    assert cycle(waits(story.log, windows_of(story.log), "")) == ()
