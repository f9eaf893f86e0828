"""Windows: of one thread and state they never overlap; a process-global flag ends for all; a stale True sticks."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisect_env.explanation.records import Action, Event, Frame, State, Window
from bisect_env.explanation.windows import OPENS, is_global, stuck_flags, windows_of
from tests.explanation.logs import START, Story

THREADS = st.sampled_from(["w0", "w1", "w2"])


@st.composite
def stories(draw: st.DrawFn) -> Story:
    """Any events whatever, several at the same time."""
    story = Story(draw(st.sampled_from(["2.11.0", "2.14.1"])))
    moments = draw(st.lists(st.integers(0, 12), max_size=40))
    for moment in sorted(moments):
        state, action = draw(st.sampled_from(State)), draw(st.sampled_from(Action))
        story.events.append(Event(START + moment, draw(THREADS), state, action, draw(st.sampled_from(["", "raised"]))))
    return story


def of(story: Story, state: State) -> list[Window]:
    return [window for window in windows_of(story.log) if window.state is state]


@given(stories())
def test_those_of_one_thread_and_state_never_overlap(story: Story) -> None:
    windows = windows_of(story.log)
    for key in {(window.thread, window.state) for window in windows}:
        own = [window for window in windows if (window.thread, window.state) == key]
        for before, after in pairwise(own):
            assert before.end is not None and before.end <= after.start


@given(stories())
def test_each_begins_with_an_event_of_its_thread_and_ends_after_it(story: Story) -> None:
    for window in windows_of(story.log):
        assert window.opened in story.events and window.opened.thread == window.thread
        assert window.opened.action in (Action.SET, *OPENS) and window.opened.t == window.start
        assert (window.end is None) == (window.closed is None)
        if window.closed is not None:
            assert window.closed.t == window.end and window.closed.t >= window.start


@given(stories())
def test_a_flag_is_stuck_only_while_nothing_was_open_when_it_began(story: Story) -> None:
    windows = windows_of(story.log)
    for stuck in stuck_flags(story.log, windows):
        assert stuck.put_back.action is Action.SET and stuck.since >= stuck.put_back.t
        assert stuck.until is None or stuck.until > stuck.since


def test_nested_ones_are_one() -> None:
    story = Story()
    for _ in range(2):
        story.enters("w0", State.COMPILE)
    story.leaves("w0", State.COMPILE)
    last = story.leaves("w0", State.COMPILE)
    assert [(window.thread, window.end) for window in of(story, State.COMPILE)] == [("w0", last.t)]


def test_but_where_events_are_missing_an_end_may_be_among_them() -> None:
    story = Story()
    for _ in range(2):
        story.enters("w0", State.COMPILE)
    last = story.leaves("w0", State.COMPILE)
    story.leaves("w0", State.COMPILE)
    [only] = windows_of(replace(story.log, dropped=1))
    assert (only.opened, only.end) == (story.events[1], last.t)


def test_a_global_flag_that_one_thread_clears_is_cleared_for_all_of_them() -> None:
    story = Story()
    first = story.traces("w0")
    story.traces("w1", saved=True)
    first()
    cleared = story.events[-2]
    assert [(w.thread, w.end, w.closed) for w in of(story, State.TRACING)] == [
        ("w0", cleared.t, cleared),
        ("w1", cleared.t, cleared),
    ]


def test_a_threads_own_flag_is_not() -> None:
    story = Story("2.14.1")
    first = story.traces("w0")
    second = story.traces("w1")
    first()
    second()
    ends = {window.thread: window.end for window in of(story, State.TRACING)}
    assert ends["w0"] != ends["w1"]


@pytest.mark.parametrize(("torch", "whole"), [("2.13.0+cpu", True), ("2.14.0.dev1", False), ("own build", True)])
def test_the_tracing_flag_is_a_threads_own_from_2_14_on(torch: str, whole: bool) -> None:
    assert is_global(Story(torch).log, State.TRACING) is whole
    assert is_global(Story(torch).log, State.COMPILING)


def test_a_stale_true_sticks() -> None:
    """w1 begins while w0 traces, so that it puts True back when nobody traces any more."""
    story = Story()
    first = story.traces("w0")
    second = story.traces("w1", saved=True)
    saved = story.events[-1]
    first()
    second()
    put_back, left = story.events[-2:]
    story.passes(5)
    [stuck] = stuck_flags(story.log, windows_of(story.log))
    assert (stuck.put_back, stuck.saved, stuck.since, stuck.until) == (put_back, saved, left.t, None)
    later = story.traces("w2", saved=True)
    later()
    [stuck] = stuck_flags(story.log, windows_of(story.log))
    assert stuck.put_back == put_back and stuck.until is None
    cleared = story.does("w0", State.TRACING, Action.CLEAR)
    [stuck] = stuck_flags(story.log, windows_of(story.log))
    assert stuck.until == cleared.t


def test_a_stuck_flag_that_is_saved_and_put_back_again_has_its_origin() -> None:
    """As uncompiled flex attention does: it clears the flag for a while, and puts back what it met."""
    story = Story("2.9.1")
    end = story.traces("w0")
    saved = story.does("w1", State.TRACING, Action.CLEAR, "False, was True")
    end()
    first = story.does("w1", State.TRACING, Action.SET, "True, was False")
    again = story.traces("w0", saved=True)
    story.does("w1", State.TRACING, Action.CLEAR, "False, was True")
    again()
    last = story.events[-2]
    stuck = stuck_flags(story.log, windows_of(story.log))[-1]
    assert (stuck.put_back, stuck.handed_on) == (last, 1)
    assert (stuck.first.put_back, stuck.first.saved, stuck.first.saved_from) == (first, saved, "w0")


def test_where_events_are_missing_it_is_told_by_the_line_that_puts_the_old_value_back() -> None:
    begins, puts_back = (Frame("torch/fx/_symbolic_trace.py", line, "trace") for line in (781, 907))
    story = Story()
    story.enters("w0", State.TRACE)
    story.does("w0", State.TRACING, Action.SET, "True, was False", (begins,))
    story.does("w0", State.TRACING, Action.CLEAR, "False, was True", (puts_back,))
    story.leaves("w0", State.TRACE)
    story.does("w1", State.TRACING, Action.SET, "True, was False", (begins,))
    story.passes(1)
    log = replace(story.log, dropped=9)
    assert not stuck_flags(log, windows_of(log)), "its trace may be among the missing events"
    story.does("w1", State.TRACING, Action.SET, "True, was False", (puts_back,))
    log = replace(story.log, dropped=9)
    assert [stuck.put_back for stuck in stuck_flags(log, windows_of(log))] == [story.events[-1]]


def test_one_that_nobody_left_stuck_is_not() -> None:
    story = Story()
    for thread in ("w0", "w1", "w0"):
        story.traces(thread)()
    story.does("w1", State.TRACING, Action.SET)  # As where the flag is set before the trace is entered.
    story.now -= 0.0005
    story.enters("w1", State.TRACE)
    assert not stuck_flags(story.log, windows_of(story.log))
