"""What FX's dictionary of annotations held, by the events alone: the same as `annotate` itself leaves in it."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import example, given
from hypothesis import strategies as st

from bisect_env.explanation.noted import Noted
from bisect_env.explanation.records import Action, Event, State
from tests.explanation.logs import START

KEY = "fallback_to_eager"


def annotations(steps: Sequence[tuple[int, str]]) -> tuple[list[Event], bool, bool]:
    """What `annotate` does in threads that take turns as ``steps`` says: events, whether KEY is there, and open."""
    open_: dict[int, list[tuple[str, bool, dict[str, bool]]]] = {0: [], 1: [], 2: []}
    custom: dict[str, dict[str, bool]] = {}
    events: list[Event] = []
    for number, (step, key) in enumerate(steps):
        thread, begin = divmod(step, 2)
        t = START + number
        if begin and len(open_[thread]) < 2:
            open_[thread].append((key, "custom" in custom, dict(custom.get("custom", {}))))
            custom.setdefault("custom", {}).update({key: True})
            events.append(Event(t, f"w{thread}", State.ANNOTATION, Action.ENTER, f"annotate {key}"))
        elif open_[thread]:
            key, had, old = open_[thread].pop()
            if had:
                custom["custom"] = old
            else:
                custom.pop("custom", None)  # annotate raises a KeyError where it is gone
            events.append(Event(t, f"w{thread}", State.ANNOTATION, Action.LEAVE, f"annotate {key}"))
    busy = any(key == KEY for each in open_.values() for key, _, _ in each)
    return events, KEY in custom.get("custom", {}), busy


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from([KEY, "another"])), max_size=30))
@example([(step, KEY) for step in (1, 5, 1, 4, 0, 5, 0, 4)])  # gone meanwhile, and handed on by who wrote it
def test_what_is_left_behind_is_what_annotate_leaves_behind(steps: Sequence[tuple[int, str]]) -> None:
    events, there, busy = annotations(steps)
    stays = Noted(events).left_behind(KEY, START + len(steps))
    assert (stays is not None) == (there and not busy)
    if stays is not None:
        assert stays.wrote.t < stays.met.t < stays.put_back.t and stays.met.thread == stays.put_back.thread
        assert stays.wrote.thread != stays.met.thread


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from([KEY, "another"])), max_size=30))
def test_what_is_open_is_what_has_no_end_yet(steps: Sequence[tuple[int, str]]) -> None:
    events, _, busy = annotations(steps)
    noted = Noted(events)
    for event in events:
        written = noted.written(KEY, event.t)
        assert all(each.t <= event.t for each in written)
        ended = [each for each in written if (end := noted.end(each)) is not None and end.t <= event.t]
        assert {each.t for each in noted.open(KEY, event.t)} == {each.t for each in written if each not in ended}
    assert bool(noted.open(KEY, START + len(steps))) == busy
