"""Annotations that another thread wrote: who took them, who obeyed them, and how one comes to stay."""

from __future__ import annotations

from bisect_env.explanation.collisions import collisions_of
from bisect_env.explanation.records import Action, Collision, Consequence, Event, Frame, Mechanism, State
from bisect_env.explanation.seen import Seen
from bisect_env.explanation.telling import sentences_of
from bisect_env.explanation.windows import windows_of
from bisect_env.trials.records import Failure, Signature, TrialRecord
from tests.explanation.logs import Story, trial

KEY = "fallback_to_eager"
NODE = "flex_attention_backward"
LOWERING = f"LoweringException: AttributeError: no attribute 'dtype'\n  target: {NODE}\n  args[0]: x"
TRACED = (Frame("torch/fx/proxy.py", 246, "create_node"), Frame("torch/_higher_order_ops/flex.py", 9, f"trace_{NODE}"))


def writes(story: Story, thread: str, key: str = KEY) -> None:
    story.enters(thread, State.ANNOTATION, f"annotate {key}")


def ends(story: Story, thread: str, key: str = KEY) -> None:
    story.does(thread, State.ANNOTATION, Action.LEAVE, f"annotate {key}")


def takes(story: Story, thread: str, stack: tuple[Frame, ...] = ()) -> Event:
    return story.does(thread, State.ANNOTATION, Action.READ, KEY, stack)


def obeys(story: Story, thread: str, node: str = NODE) -> Event:
    return story.does(thread, State.ANNOTATION, Action.OBEYED, f"{KEY}: {node}")


def lowering_failed(thread: str, t: float, message: str = LOWERING) -> Failure:
    return Failure(
        thread, Signature("InductorError", message[:40], "torch._inductor.ir"), message, "get_dtype:1", "", t
    )


def found(story: Story, record: TrialRecord) -> tuple[Collision, ...]:
    return collisions_of(story.log, windows_of(story.log), record)


def told(story: Story, record: TrialRecord) -> str:
    seen = Seen.of(story.log, windows_of(story.log))
    return " ".join(sentences_of(seen, found(story, record), record))


def facts(collision: Collision) -> tuple[object, ...]:
    return collision.mechanism, collision.consequence, collision.victim, collision.culprit


def test_an_open_annotation_is_taken_and_obeyed_in_autograds_thread() -> None:
    story = Story("2.13.0")
    writes(story, "w1")
    read = takes(story, "w0")
    ends(story, "w1")
    story.passes(2)
    obeyed = obeys(story, "autograd")
    record = trial(lowering_failed("w0", obeyed.t + 0.01))
    [only] = found(story, record)
    assert facts(only) == (Mechanism.ANNOTATION, Consequence.FAILED, "w0", "w1")
    assert (only.met, only.obeyed) == (read, obeyed)
    said = told(story, record)
    assert "Thread w1 began FX annotations (fallback_to_eager)" in said and "w0 took it onto what it traced" in said
    assert f"autograd, working for w0, obeyed it (fallback_to_eager: {NODE})" in said
    assert "come to stay" not in said


def test_one_that_two_threads_leave_behind_and_who_put_it_back() -> None:
    story = Story("2.14.1")
    writes(story, "w2")
    writes(story, "w0")
    ends(story, "w2")
    ends(story, "w0")
    story.passes(5)
    takes(story, "w1")
    obeyed = obeys(story, "autograd")
    record = trial(lowering_failed("w1", obeyed.t + 0.01))
    [only] = found(story, record)
    assert facts(only) == (Mechanism.ANNOTATION, Consequence.FAILED, "w1", "w0")
    said = told(story, record)
    assert "It had come to stay: w2 began one at 0.0010 s, w0 met it at 0.0020 s and put it back at 0.0040 s" in said
    # Of the thread that put it back itself the other one is named.
    story = Story("2.14.1", events=story.events[:4], now=story.events[3].t)
    takes(story, "w0")
    obeyed = obeys(story, "w0")
    assert found(story, trial(lowering_failed("w0", obeyed.t)))[0].culprit == "w2"


def test_of_several_reads_the_one_under_which_the_node_was_traced_counts() -> None:
    story = Story("2.13.0")
    writes(story, "w1")
    takes(story, "w0")
    ends(story, "w1")
    writes(story, "w2")
    mine = takes(story, "w0", TRACED)
    ends(story, "w2")
    writes(story, "w1")
    takes(story, "w0")
    ends(story, "w1")
    obeyed = obeys(story, "w0")
    [only] = found(story, trial(lowering_failed("w0", obeyed.t)))
    assert only.met == mine and only.culprit == "w2"


def test_nobody_is_blamed_where_nobody_else_wrote_it_or_another_node_failed() -> None:
    story = Story("2.13.0")
    writes(story, "w0")
    takes(story, "w0")
    ends(story, "w0")
    obeyed = obeys(story, "w0")
    [alone] = found(story, trial(lowering_failed("w0", obeyed.t)))
    assert alone.mechanism is Mechanism.UNKNOWN and alone.culprit == ""
    story = Story("2.13.0")
    writes(story, "w1")
    takes(story, "w0")
    obeyed = obeys(story, "w0", "another_node")
    first = found(story, trial(lowering_failed("w0", obeyed.t)))[0]
    assert first.mechanism is Mechanism.UNKNOWN
    # A message that is cut before its node is all the same that of what was obeyed last.
    first = found(story, trial(lowering_failed("w0", obeyed.t, "LoweringException: AttributeError")))[0]
    assert first.mechanism is Mechanism.ANNOTATION


def test_a_node_that_only_ran_eagerly_is_told_and_an_annotation_of_ones_own_is_not() -> None:
    story = Story("2.13.0")
    obeys(story, "autograd", "aten.sort")
    assert found(story, trial()) == ()
    writes(story, "w1")
    takes(story, "w0")
    obeys(story, "w0", "aten.mul")
    [only] = found(story, trial())
    assert facts(only) == (Mechanism.ANNOTATION, Consequence.EAGER, "w0", "w1")


def compiles(story: Story, thread: str, what: str, *, reads: bool = False, obeys_it: bool = False) -> Event | None:
    """A compile: a forward that takes the annotation, or a backward that obeys it and raises: that event."""
    story.enters(thread, State.COMPILE, what)
    event = takes(story, thread) if reads else obeys(story, thread) if obeys_it else None
    story.does(thread, State.COMPILE, Action.LEAVE, f"{what}, raised InductorError" if obeys_it else what)
    return event


def left(story: Story, *threads: str) -> None:
    """Threads that write one annotation and end it in the order in which they began: it stays."""
    for thread in threads:
        writes(story, thread)
    for thread in threads:
        ends(story, thread)


def test_who_traced_the_graph_took_it_and_each_failure_has_a_backward_of_its_own() -> None:
    story = Story("2.13.0")
    left(story, "w2", "w1")
    compiles(story, "w1", "forward 0/0", reads=True)
    read = compiles(story, "w0", "forward 0/2", reads=True)
    first = compiles(story, "autograd", "lazy backward 0/2", obeys_it=True)
    second = compiles(story, "autograd", "lazy backward 0/2", obeys_it=True)
    assert first is not None and second is not None
    # Reported late, and at nearly the same time; the third compile began before that and is nobody's of these.
    records = [lowering_failed("w1", second.t + 0.010), lowering_failed("w0", second.t + 0.011)]
    story.passes(0.1)
    compiles(story, "autograd", "lazy backward 0/2", obeys_it=True)
    record = trial(*records)
    one, other = found(story, record)
    assert [(each.victim, each.met) for each in (one, other)] == [("w1", read), ("w0", read)]
    assert one.obeyed == first and other.obeyed == second
    said = told(story, record)
    assert "; w0, whose graph w1 called, took it onto what it traced" in said and "; w0 took it onto" in said
    assert "autograd, working for w1 or another one that failed so, obeyed it" in said
    assert "w1 took it" not in said


def test_a_graph_whose_tracer_took_nothing_of_another_thread_blames_nobody() -> None:
    story = Story("2.13.0")
    left(story, "w2", "w1")
    compiles(story, "w1", "forward 0/0", reads=True)
    compiles(story, "w1", "forward 0/1")
    obeyed = compiles(story, "w1", "lazy backward 0/1", obeys_it=True)
    assert obeyed is not None
    [only] = found(story, trial(lowering_failed("w1", obeyed.t + 0.002)))
    assert only.mechanism is Mechanism.UNKNOWN and only.culprit == "" and only.met == obeyed


def test_nodes_of_a_compile_that_failed_did_not_run_eagerly() -> None:
    story = Story("2.13.0")
    writes(story, "w1")
    compiles(story, "w0", "forward 0/0", reads=True)
    compiles(story, "w0", "lazy backward 0/0", obeys_it=True)
    assert found(story, trial()) == ()


def test_an_annotation_that_may_be_ones_own_blames_no_thread_that_was_done_with_its() -> None:
    """Nodes keep what their own thread wrote, and hand it on when they are traced again, be it in autograd's thread."""
    story = Story("2.13.0")
    writes(story, "w1")
    ends(story, "w1")
    story.passes(5)
    writes(story, "w0")
    ends(story, "w0")
    takes(story, "autograd")
    obeyed = obeys(story, "autograd")
    record = trial(lowering_failed("w0", obeyed.t))
    assert found(story, record)[0].culprit == ""
    # Who never wrote it cannot have it of its own.
    story = Story("2.13.0", events=story.events[:2], now=story.events[1].t)
    takes(story, "w0")
    obeyed = obeys(story, "w0")
    record = trial(lowering_failed("w0", obeyed.t))
    assert found(story, record)[0].culprit == "w1" and "It was still there when it was met." in told(story, record)


def test_of_nested_annotations_the_one_that_is_open_counts() -> None:
    story = Story("2.13.0")
    writes(story, "w1")
    writes(story, "w1")
    ends(story, "w1")
    read = takes(story, "w0")
    ends(story, "w1")
    obeyed = obeys(story, "w0")
    [only] = found(story, trial(lowering_failed("w0", obeyed.t)))
    assert only.window is not None and only.window.start == story.events[0].t
    assert only.window.end is not None and only.window.end > read.t


def test_an_annotation_of_another_key_may_put_it_back() -> None:
    story = Story("2.13.0")
    writes(story, "w1")
    writes(story, "w2", "another")
    ends(story, "w1")
    ends(story, "w2", "another")
    takes(story, "w0")
    obeyed = obeys(story, "w0")
    record = trial(lowering_failed("w0", obeyed.t))
    assert found(story, record)[0].culprit == "w1"
    assert "It had come to stay: w1 began one at 0.0010 s, w2 met it at 0.0020 s" in told(story, record)


def test_what_another_thread_replaced_meanwhile() -> None:
    story = Story("2.14.1")
    writes(story, "w1")
    story.does("w0", State.ANNOTATION, Action.SET, "current_meta, over w1's and its custom")
    met = story.does("w1", State.ANNOTATION, Action.LEAVE, f"annotate {KEY}, raised KeyError")
    takes(story, "w1")
    traceback = 'File "torch/fx/traceback.py", line 320, in annotate'
    record = trial(
        Failure("w1", Signature("KeyError", "'custom'", ""), "'custom'", "annotate:320", traceback, story.now)
    )
    [only] = found(story, record)
    assert facts(only) == (Mechanism.ANNOTATION, Consequence.FAILED, "w1", "w0") and only.met == met
    said = told(story, record)
    assert (
        "Thread w0 replaced what FX notes for all threads (current_meta, over w1's and its custom) at 0.0020 s;"
        " w1 was in annotations of its own at 0.0030 s, 1.0 ms later; the call failed: KeyError: 'custom'." in said
    )
    assert "no end in this log" not in said


def taken_away(story: Story) -> Collision:
    story.does("w1", State.ANNOTATION, Action.LEAVE, f"annotate {KEY}, raised KeyError")
    traceback = 'File "torch/fx/traceback.py", line 320, in annotate'
    failure = Failure("w1", Signature("KeyError", "'custom'", ""), "'custom'", "annotate:320", traceback, story.now)
    [only] = found(story, trial(failure))
    return only


def test_what_another_thread_replaced_before_an_inner_annotation_of_ones_own() -> None:
    story = Story("2.14.1")
    writes(story, "w1")
    story.does("w0", State.ANNOTATION, Action.SET, "current_meta, while w1 annotated and its custom")
    story.enters("w1", State.ANNOTATION, "preserve_node_meta")
    story.does("w1", State.ANNOTATION, Action.LEAVE, "preserve_node_meta")
    assert facts(taken_away(story)) == (Mechanism.ANNOTATION, Consequence.FAILED, "w1", "w0")


def test_who_replaced_it_and_took_nothing_away_is_not_blamed_for_who_ended_an_annotation() -> None:
    story = Story("2.14.1")
    writes(story, "w0")
    writes(story, "w1")
    ends(story, "w0")
    story.does("w2", State.ANNOTATION, Action.SET, "current_meta, while w1 annotated")
    assert facts(taken_away(story)) == (Mechanism.ANNOTATION, Consequence.FAILED, "w1", "w0")
