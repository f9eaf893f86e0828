"""Annotations that another thread wrote: who took them, who obeyed them, and how one comes to stay."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from bisect_env.explanation.annotations import left_behind
from bisect_env.explanation.collisions import collisions_of
from bisect_env.explanation.records import Action, Collision, Consequence, Event, Frame, Mechanism, State
from bisect_env.explanation.seen import Seen
from bisect_env.explanation.telling import sentences_of
from bisect_env.explanation.windows import windows_of
from bisect_env.trials.records import Failure, Signature, TrialRecord
from tests.explanation.logs import START, Story, trial

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


def annotations(steps: Sequence[int]) -> tuple[list[Event], bool, bool]:
    """What `annotate` does in threads that take turns as ``steps`` says: events, whether its key is there, any open."""
    open_: dict[int, list[tuple[bool, dict[str, bool]]]] = {0: [], 1: [], 2: []}
    custom: dict[str, dict[str, bool]] = {}
    events: list[Event] = []
    for number, step in enumerate(steps):
        thread, begin = divmod(step, 2)
        t = START + number
        if begin and not open_[thread]:
            open_[thread].append(("custom" in custom, dict(custom.get("custom", {}))))
            custom.setdefault("custom", {}).update({KEY: True})
            events.append(Event(t, f"w{thread}", State.ANNOTATION, Action.ENTER, f"annotate {KEY}"))
        elif open_[thread]:
            had, old = open_[thread].pop()
            if had:
                custom["custom"] = old
            else:
                custom.pop("custom", None)  # annotate raises a KeyError where it is gone
            events.append(Event(t, f"w{thread}", State.ANNOTATION, Action.LEAVE, f"annotate {KEY}"))
    return events, KEY in custom.get("custom", {}), any(open_.values())


@given(st.lists(st.integers(0, 5), max_size=30))
def test_what_is_left_behind_is_what_annotate_leaves_behind(steps: Sequence[int]) -> None:
    events, there, busy = annotations(steps)
    left = left_behind(events, KEY, START + len(steps))
    assert (left is not None) == (there and not busy)
    if left is not None:
        assert left.wrote.t < left.met.t < left.put_back.t and left.met.thread == left.put_back.thread
        assert left.wrote.thread != left.met.thread
