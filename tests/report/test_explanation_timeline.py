"""The picture as text: it fits, it is plain ASCII, and what it shows is where it was."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bisect_env.explanation.records import Account, Action, Collision, Consequence, Mechanism, State, Window
from bisect_env.report import explanation_timeline as timeline
from bisect_env.report.explanation_lanes import Kind, around, instant, lanes, whole
from tests.report.explanations import START, busy, eager, event, hung, log, raced, stuck, window

EVERY = [raced(), stuck(), eager(), hung(), busy(4, 200)]
each_account = pytest.mark.parametrize("account", EVERY, ids=["raced", "stuck", "eager", "hung", "busy"])


@each_account
@pytest.mark.parametrize("width", [60, 80, 120])
def test_it_fits_and_is_plain(account: Account, width: int) -> None:
    (collision,) = account.collisions
    drawn, legend = timeline.draw(account, collision, width)
    assert drawn.isascii() and legend.isascii()
    assert max(map(len, drawn.splitlines())) <= width
    assert any(line.startswith(collision.culprit) for line in drawn.splitlines())


def test_culprit_and_victim_meet_in_one_column() -> None:
    (collision,) = raced().collisions
    lines = timeline.draw(raced(), collision, 80)[0].splitlines()
    (pointer,) = [line for line in lines if "collision" in line]
    at = pointer.index("v")
    (flag,) = [line for line in lines if "#" in line]
    assert flag.split()[0] == "flag" and flag.index("#") == at
    (victim,) = [line for line in lines if line.startswith("worker-1")]
    assert abs(victim.index("X") - at) <= 1
    assert [line.split()[0] for line in lines if line.startswith(("worker-0", " "))][2:] == [
        "worker-0",
        "compile",
        "trace",
        "flag",
    ]


def test_what_goes_on_is_marked_so() -> None:
    account = stuck()
    lines = timeline.draw(account, account.collisions[0], 80)[0].splitlines()
    assert next(line for line in lines if line.startswith("worker-0")).endswith(">")
    assert "< or > at an edge: it goes on" in timeline.draw(account, account.collisions[0], 80)[1]


def test_the_legend_has_what_is_drawn_and_nothing_else() -> None:
    account = eager()
    said = timeline.draw(account, account.collisions[0], 80)[1]
    assert "I is_compiling() is true" in said and "E the call ran eagerly" in said
    assert "holds the compile lock" not in said and "failed" not in said


def test_a_wait_for_the_lock_is_a_bar_until_it_is_acquired() -> None:
    events = (
        event(1.0, "a", State.LOCK, Action.WAIT),
        event(1.5, "a", State.LOCK, Action.ACQUIRE),
        event(2.0, "b", State.LOCK, Action.WAIT),
    )
    account = Account("t", "hang", log((), *events), (), (), ())
    found = {
        lane.thread: [(bar.start - START, bar.end) for row in lane.rows for bar in row.bars if row.kind is Kind.WAIT]
        for lane in lanes(account, whole(account), None)
    }
    assert found == {"a": [(1.0, START + 1.5)], "b": [(2.0, None)]}


def test_a_hang_that_was_found_late_is_shown_where_it_began() -> None:
    account = hung()
    span = around(account, account.collisions[0])
    assert span.end - span.start < 1 and whole(account).end - whole(account).start > 30


def test_many_threads_leave_room_for_the_two_of_the_collision() -> None:
    names = tuple(f"other-{number}" for number in range(20))
    base = raced()
    more = tuple(window(State.COMPILE, name, 1.92, 1.94) for name in names)
    assert base.log is not None
    account = replace(
        base,
        windows=(*more, *base.windows),
        log=log((*more, *base.windows), *base.log.events, threads=(*names, "worker-0", "worker-1")),
    )
    drawn = timeline.draw(account, account.collisions[0], 80)[0]
    assert "worker-0" in drawn and "worker-1" in drawn and "other-0" in drawn and "other-19" not in drawn
    assert "15 further threads did something" in timeline.draw(account, account.collisions[0], 80)[1]


def test_names_that_are_long_or_foreign_keep_their_end() -> None:
    name = "dataloader-thr\N{LATIN SMALL LETTER E WITH ACUTE}ad-number-12"
    base = raced()
    account = replace(
        base,
        collisions=(replace(base.collisions[0], culprit=name),),
        windows=tuple(replace(each, thread=name) for each in base.windows),
        log=None,
    )
    (collision,) = account.collisions
    assert collision.window is not None
    account = replace(account, collisions=(replace(collision, window=replace(collision.window, thread=name)),))
    assert "..ad-number-12" in timeline.draw(account, account.collisions[0], 80)[0]


times = st.floats(0, 5, allow_nan=False)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(list(State)), st.sampled_from("abc"), times, st.none() | times), max_size=12),
    st.integers(40, 140),
)
def test_whatever_was_open_the_picture_holds(opened: list[tuple[State, str, float, float | None]], width: int) -> None:
    """It fits, each thread has one lane, and the collision lies within what is shown."""
    windows: tuple[Window, ...] = tuple(
        window(state, thread, start, None if length is None else start + length)
        for state, thread, start, length in opened
    )
    base = raced()
    account = replace(base, windows=(*base.windows, *windows))
    (collision,) = account.collisions
    span = around(account, collision)
    assert span.start <= instant(collision) <= span.end
    lines = timeline.draw(account, collision, width)[0].splitlines()
    assert max(map(len, lines)) <= max(width, 14 + 9 + 2 + timeline.LEAST)
    found = lanes(account, span, collision)
    assert len({lane.thread for lane in found}) == len(found)
    assert any("#" in line for line in lines)


def drawn_rows(account: Account) -> dict[tuple[str, str], list[tuple[float, float | None, bool]]]:
    return {
        (lane.thread, row.kind): [
            (round(bar.start - START, 3), None if bar.end is None else round(bar.end - START, 3), bar.culprit)
            for bar in row.bars
        ]
        for lane in lanes(account, whole(account), account.collisions[0])
        for row in lane.rows
    }


def test_a_kernel_that_was_unloaded_is_not_drawn_as_one_that_is_still_tuned() -> None:
    tunes = window(State.KERNEL, "w0", 1.0, 2.0, "autotune_to_one_config mul #3f2a")
    unloaded = event(1.9, "w0", State.KERNEL, Action.CALL, "mul #9b01 unloaded")
    launched = event(3.0, "w1", State.KERNEL, Action.CALL, "mul #9b01 launched and not loaded")
    gone = Window(State.KERNEL, "w0", unloaded.t, None, unloaded, None)
    collision = Collision(Mechanism.KERNEL, Consequence.FAILED, "w1", launched, "w0", gone, START + 3.1)
    account = Account("t", "failed", log((tunes,), unloaded, launched), (tunes,), (collision,), ())
    assert drawn_rows(account) == {("w0", Kind.KERNEL): [(1.0, 2.0, False)], ("w0", Kind.LEFT): [(1.9, None, True)]}
    picture, legend = timeline.draw(account, collision, 80)
    assert "#" in picture and "M what it left behind is there" in legend


def test_what_stayed_when_its_window_was_over_is_drawn_until_it_was_met() -> None:
    writes = window(State.ANNOTATION, "w0", 1.0, 1.5, "annotate fallback_to_eager")
    read = event(3.0, "w1", State.ANNOTATION, Action.READ, "fallback_to_eager")
    collision = Collision(Mechanism.ANNOTATION, Consequence.FAILED, "w1", read, "w0", writes, START + 3.1)
    account = Account("t", "failed", log((writes,), read), (writes,), (collision,), ())
    assert drawn_rows(account) == {("w0", Kind.ANNOTATION): [(1.0, 1.5, False)], ("w0", Kind.LEFT): [(1.5, 3.0, True)]}
    assert "M what it left behind is there" in timeline.draw(account, collision, 80)[1]
